"""The systems of speed.py: a base-size encoder with random weights in each, and the same documents for all.

B windows of a batch, L pieces, E spans.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spacy
import torch
from hf_systems import LABELS, LONGEST, Entities, System, autocast, sentences_of
from ner_systems import spacy_ner_config, transformer_config
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.checkpoint.checkpoint import read_checkpoint
from spacy_luke.model.int8 import LARGEST
from spacy_luke.readers.conll import ColumnDocument

# ---- ours


def make_luke(folder: Path, attention: str, *, spans_per_word: float = 0.5, train_precision: str = "float32") -> Any:
    """Initialised from a checkpoint, with its head where that fits (attention "full"). spans_per_word: one-way's."""
    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-luke.SpanClassifier.v1",
        "attention": attention,
        "spans_per_word": spans_per_word if attention == "one_way" else None,
        "encoder": {"@architectures": "spacy-luke.LukeEncoder.v1", "train_precision": train_precision},
    }
    ner = nlp.add_pipe("luke_ner", config={"model": model, "max_span_pieces": LONGEST})
    gold = Doc(nlp.vocab, words=["Paris"])
    gold.set_ents([Span(gold, 0, 1, label="LOC")])
    example = Example(Doc(nlp.vocab, words=["Paris"]), gold)
    ner.initialize(lambda: [example], nlp=nlp, labels=LABELS[1:], weights=lambda: read_checkpoint(folder))
    return ner


def luke_system(name: str, ner: Any, *, context: str) -> System:
    def run(
        documents: Sequence[ColumnDocument], *, batch: int | None, precision: str, sentences: Any = None
    ) -> Entities:
        ner.cfg["context"] = context
        if precision != "int8":
            ner.encoder_node.attrs["predict_precision"] = precision
        elif not ner.encoder.is_int8:  # from then on, so that int8 is the last format
            ner.encoder.quantize(LARGEST)
        docs = [make_doc(ner.vocab, x) for x in documents]
        return [entities_of(doc) for doc in ner.pipe(docs, batch_size=64)]

    return System(name, run, formats=("float32", "bfloat16", "int8"))


# ---- peers


def make_spacy_ner(folder: Path) -> Any:
    nlp = spacy.blank("en")
    nlp.add_pipe("transformer", config={"model": transformer_config(str(folder))})
    ner = nlp.add_pipe("ner", config={"model": spacy_ner_config()})
    for label in LABELS[1:]:
        ner.add_label(label)
    gold = Doc(nlp.vocab, words=["Paris"])
    gold.set_ents([Span(gold, 0, 1, label="LOC")])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=["Paris"]), gold)])
    return nlp


def spacy_ner_system(name: str, nlp: Any) -> System:
    """batch: pieces that spacy-transformers encodes at once (max_batch_items)."""

    def run(documents: Sequence[ColumnDocument], *, batch: int, precision: str, sentences: Any = None) -> Entities:
        nlp.get_pipe("transformer").cfg["max_batch_items"] = batch
        return [entities_of(doc) for doc in nlp.pipe([make_doc(nlp.vocab, x) for x in documents], batch_size=128)]

    return System(name, run, batches=(1024, 4096, 16384), formats=("float32",))  # its wrapper passes numpy arrays


def span_marker_system(name: str, folder: Path, *, context: str) -> System:
    """SpanMarker with its own defaults: spans of up to 8 words, 128 in a sample."""
    from datasets import Dataset
    from span_marker import SpanMarkerModel

    model = SpanMarkerModel.from_pretrained(str(folder), labels=["O", *LABELS[1:]]).eval()
    model.config.trained_with_document_context = context == "document"

    def run(
        documents: Sequence[ColumnDocument], *, batch: int, precision: str, sentences: int | None = None
    ) -> Entities:
        rows = [(i, first, words) for i, d in enumerate(documents) for first, words in sentences_of(d)][:sentences]
        columns: dict[str, list[Any]] = {"tokens": [x[2] for x in rows]}
        if context == "document":
            columns.update(document_id=[x[0] for x in rows], sentence_id=[x[1] for x in rows])
        with warnings.catch_warnings(), autocast(precision):
            warnings.simplefilter("ignore")
            predicted = model.predict(Dataset.from_dict(columns), batch_size=batch)
        answers: Entities = [set() for _ in documents]
        for (i, first, _), entities in zip(rows, predicted, strict=True):
            answers[i] |= {(first + x["word_start_index"], first + x["word_end_index"], x["label"]) for x in entities}
        return answers

    return System(name, run, batches=(1, 4, 16))


# ---- random checkpoints


def write_checkpoints(folder: Path, vocabulary: Path, *, size: dict[str, int], seed: int) -> tuple[Path, Path]:
    """Random encoders of one size with the real vocabulary: folders for LUKE and for RoBERTa."""
    import json

    from transformers import (
        LukeConfig,
        LukeForEntitySpanClassification,
        LukeTokenizer,
        RobertaConfig,
        RobertaModel,
        RobertaTokenizerFast,
    )

    luke, roberta = folder / "luke", folder / "roberta"
    luke.mkdir()
    entities = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}
    (luke / "entity_vocab.json").write_text(json.dumps(entities))
    files = {"vocab_file": str(vocabulary / "vocab.json"), "merges_file": str(vocabulary / "merges.txt")}
    tokenizer = LukeTokenizer(
        entity_vocab_file=str(luke / "entity_vocab.json"), task="entity_span_classification", **files
    )
    if len(tokenizer) < 50_000:  # transformers 5 leaves a vocabulary given as a file unread
        raise SystemExit(
            f"Expected RoBERTa's 50,267 pieces, but LukeTokenizer has {len(tokenizer)}. Use transformers 4.53.2."
        )
    shared = {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5, **size}
    labels = {"id2label": dict(enumerate(LABELS)), "label2id": {x: i for i, x in enumerate(LABELS)}}
    torch.manual_seed(seed)
    model = LukeForEntitySpanClassification(
        LukeConfig(vocab_size=len(tokenizer), entity_vocab_size=len(entities), entity_emb_size=256, **labels, **shared)
    )
    with torch.no_grad():  # larger matrices would make all spans of twelve layers alike, a small head all labels
        for key, x in model.named_parameters():
            x.normal_(std=0.5 if key.startswith("classifier") else 0.02)
            x.add_(1.0 if key.endswith("LayerNorm.weight") else 0.0)
    model.save_pretrained(luke)
    tokenizer.save_pretrained(luke)
    fast = RobertaTokenizerFast(add_prefix_space=True, **files)
    RobertaModel(RobertaConfig(vocab_size=len(fast), **shared)).save_pretrained(roberta)
    fast.save_pretrained(roberta)
    return luke, roberta


# ---- small parts


def make_doc(vocab: Any, document: ColumnDocument) -> Doc:
    starts = set(document.sentence_starts)
    return Doc(vocab, words=document.words, sent_starts=[i in starts for i in range(len(document.words))])


def entities_of(doc: Doc) -> set[tuple[int, int, str]]:
    return {(x.start, x.end, x.label_) for x in doc.ents}
