"""`python -m spacy luke ...`: one module a command. spaCy finds `app` by the entry point `spacy_cli`."""

from inspect import signature

import typer
from spacy.cli._util import app as spacy_app

from .add_digests import add_digests_cli
from .annotate import annotate_cli
from .build_corpus import build_corpus_cli
from .build_entity_vocab import build_entity_vocab_cli
from .build_kb import build_kb_cli
from .build_mentions import build_mentions_cli
from .build_shards import build_shards_cli
from .build_vectors import build_vectors_cli
from .card import card_cli
from .compact_kb import compact_kb_cli
from .convert import convert_cli
from .corpus import corpus_command
from .distill import distill_cli
from .embed_entities import embed_entities_cli
from .errors import with_one_message
from .evaluate import evaluate_cli
from .examples import EXAMPLES
from .export import export_cli
from .info import info_cli
from .init_config import init_config_cli
from .pretrain import pretrain_cli
from .pretrain_ernie import pretrain_ernie_cli
from .probe import probe_cli
from .quantize import quantize_cli
from .serve import serve_cli
from .starter_kb import starter_kb_cli
from .terminal import begin
from .train import train_cli
from .train_kge import train_kge_cli
from .tune import tune_cli

app = typer.Typer(name="luke", help="LUKE and its relatives: data, checkpoints, pipelines.", no_args_is_help=True)
app.callback()(begin)
OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}  # of any setting of the config
# name, function, the first line of an error
COMMANDS = (
    ("info", info_cli, "Nothing can be said."),
    ("corpus", corpus_command, "Nothing was written."),
    ("init-config", init_config_cli, "No config was written."),
    ("convert", convert_cli, "Nothing was written."),
    ("export", export_cli, "Nothing was written."),
    ("train", train_cli, "Training stopped."),
    ("pretrain", pretrain_cli, "Pretraining stopped."),
    ("pretrain-ernie", pretrain_ernie_cli, "Pretraining stopped."),
    ("probe", probe_cli, "Nothing was asked."),
    ("evaluate", evaluate_cli, "Nothing was scored."),
    ("tune", tune_cli, "Nothing was changed."),
    ("quantize", quantize_cli, "Nothing was written."),
    ("distill", distill_cli, "Training stopped."),
    ("card", card_cli, "No card was written."),
    ("annotate", annotate_cli, "Nothing was annotated."),
    ("serve", serve_cli, "Nothing is served."),
    ("build-mentions", build_mentions_cli, "Nothing was written."),
    ("build-kb", build_kb_cli, "Nothing was written."),
    ("compact-kb", compact_kb_cli, "Nothing was written."),
    ("starter-kb", starter_kb_cli, "Nothing was written."),
    ("build-vectors", build_vectors_cli, "Nothing was written."),
    ("build-corpus", build_corpus_cli, "Nothing was written."),
    ("build-entity-vocab", build_entity_vocab_cli, "Nothing was written."),
    ("build-shards", build_shards_cli, "Nothing was written."),
    ("embed-entities", embed_entities_cli, "Nothing was written."),
    ("add-digests", add_digests_cli, "Not all stores are as they should be."),
    ("train-kge", train_kge_cli, "No vectors were written."),
)
for name, function, failed in COMMANDS:
    settings = OVERRIDES if "ctx" in signature(function).parameters else {}
    command = with_one_message(function, failed=failed)
    app.command(name, context_settings=settings, epilog=f"Example: {EXAMPLES[name]}")(command)

spacy_app.add_typer(app, name="luke")
