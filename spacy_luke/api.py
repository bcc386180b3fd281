"""What programs may rely on: `from spacy_luke.api import ...`; all else may change between versions.

Components, readers, scorers, architectures and optimizers are made by spaCy from their registered names, and need no
import. `spacy_luke.save` is here too; `import spacy_luke` alone loads neither spaCy nor torch.
"""

from .aliases.build import build_store as build_alias_store
from .aliases.store import AliasStore
from .annotations import (
    Answer,
    KnownEntity,
    LinkCandidate,
    Query,
    Question,
    Relation,
    Scope,
    ScoredSpan,
    get_answers,
    get_candidates,
    get_candidates_given,
    get_fillers,
    get_knowledge,
    get_pairs,
    get_queries,
    get_questions,
    get_relations,
    get_scopes,
    get_second,
    register_extensions,
    set_candidates_given,
    set_knowledge,
    set_pairs,
    set_queries,
    set_questions,
    set_relations,
    set_scopes,
    set_second,
)
from .checkpoint.checkpoint import read_checkpoint
from .checkpoint.contents import Checkpoint, ErnieCheckpoint, LukeCheckpoint
from .checkpoint.ernie import read_ernie, write_ernie
from .checkpoint.export import write_huggingface
from .checkpoint.sources import find_source
from .checkpoint.text_encoder import TextEncoder
from .components.linker.embed_entities import embed_entities
from .corpus.build_shards import build_shards
from .corpus.from_docs import build_from_docs
from .corpus.from_dumps import build_from_dumps
from .corpus.linked_corpus import LinkedCorpus
from .corpus.shards import Shards
from .corpus.vocabulary import build_entity_vocab, save_entity_vocab
from .entity_vocab import EntityVocab
from .facts.build import build_facts
from .facts.settings import FactSettings
from .facts.store import FactGraph
from .kb.build import KBSettings, build_kb
from .kb.change import add_to_kb, change_kb, compact_kb
from .kb.knowledge_base import EntityKB
from .kge.train import train_graph
from .kge.triples import Graph, read_graph
from .model.config import LukeConfig
from .model.ernie import ErnieConfig, ErnieEncoder, Knowledge
from .model.luke import LukeEncoder, Mentions, Windows
from .pages.findings import Findings, read_findings
from .pages.page import render_page
from .pages.schema import AnnotatedText, as_form
from .pipelines.annotation import Annotator, annotate_each, annotate_file
from .pipelines.comparison import Measured
from .pipelines.conversion import Converted, build_pipeline, convert
from .pipelines.distillation import Distilled, distill
from .pipelines.evaluation import ComponentScores, Evaluation, evaluate
from .pipelines.gold import Given, read_gold
from .pipelines.quantization import Quantized, dequantize, dequantize_pipeline, quantize, quantize_pipeline
from .pipelines.saving import save
from .pipelines.tuning import Tuned, tune_pipeline
from .pretraining.ernie.job import pretrain_ernie
from .pretraining.luke.job import pretrain_luke
from .pretraining.luke.probe import Probe
from .readers.datasets.table import dataset_docs, read_dataset
from .readers.docbin import write_docbin
from .readers.records import make_doc
from .stores.parallel import Engine
from .streams.annotated import AnnotatedParts
from .streams.inputs import find_inputs
from .streams.run import ApplySettings, RunState, apply_pipeline
from .text.tokenizer import PieceTokenizer
from .training.loop import train
from .vectors.build import build_vectors
from .vectors.store import EntityVectors

__all__ = [
    "AliasStore",
    "AnnotatedParts",
    "AnnotatedText",
    "Annotator",
    "Answer",
    "ApplySettings",
    "Checkpoint",
    "ComponentScores",
    "Converted",
    "Distilled",
    "Engine",
    "EntityKB",
    "EntityVectors",
    "EntityVocab",
    "ErnieCheckpoint",
    "ErnieConfig",
    "ErnieEncoder",
    "Evaluation",
    "FactGraph",
    "FactSettings",
    "Findings",
    "Given",
    "Graph",
    "KBSettings",
    "Knowledge",
    "KnownEntity",
    "LinkCandidate",
    "LinkedCorpus",
    "LukeCheckpoint",
    "LukeConfig",
    "LukeEncoder",
    "Measured",
    "Mentions",
    "PieceTokenizer",
    "Probe",
    "Quantized",
    "Query",
    "Question",
    "Relation",
    "RunState",
    "Scope",
    "ScoredSpan",
    "Shards",
    "TextEncoder",
    "Tuned",
    "Windows",
    "add_to_kb",
    "annotate_each",
    "annotate_file",
    "apply_pipeline",
    "as_form",
    "build_alias_store",
    "build_entity_vocab",
    "build_facts",
    "build_from_docs",
    "build_from_dumps",
    "build_kb",
    "build_pipeline",
    "build_shards",
    "build_vectors",
    "change_kb",
    "compact_kb",
    "convert",
    "dataset_docs",
    "dequantize",
    "dequantize_pipeline",
    "distill",
    "embed_entities",
    "evaluate",
    "find_inputs",
    "find_source",
    "get_answers",
    "get_candidates",
    "get_candidates_given",
    "get_fillers",
    "get_knowledge",
    "get_pairs",
    "get_queries",
    "get_questions",
    "get_relations",
    "get_scopes",
    "get_second",
    "make_doc",
    "pretrain_ernie",
    "pretrain_luke",
    "quantize",
    "quantize_pipeline",
    "read_checkpoint",
    "read_dataset",
    "read_ernie",
    "read_findings",
    "read_gold",
    "read_graph",
    "register_extensions",
    "render_page",
    "save",
    "save_entity_vocab",
    "set_candidates_given",
    "set_knowledge",
    "set_pairs",
    "set_queries",
    "set_questions",
    "set_relations",
    "set_scopes",
    "set_second",
    "train",
    "train_graph",
    "tune_pipeline",
    "write_docbin",
    "write_ernie",
    "write_huggingface",
]
