"""`python -m spacy luke ...`: one module a command. spaCy finds `app` by the entry point `spacy_cli`."""

import typer
from spacy.cli._util import app as spacy_app

from .annotate import annotate_cli
from .build_corpus import build_corpus_cli
from .build_entity_vocab import build_entity_vocab_cli
from .build_kb import build_kb_cli
from .build_mentions import build_mentions_cli
from .build_shards import build_shards_cli
from .build_vectors import build_vectors_cli
from .convert import convert_cli
from .corpus import corpus_command
from .embed_entities import embed_entities_cli
from .evaluate import evaluate_cli
from .export import export_cli
from .pretrain import pretrain_cli
from .pretrain_ernie import pretrain_ernie_cli
from .probe import probe_cli
from .train import train_cli
from .train_kge import train_kge_cli
from .tune import tune_cli

app = typer.Typer(name="luke", help="LUKE and its relatives: data, checkpoints, pipelines.", no_args_is_help=True)
app.command("corpus")(corpus_command)
app.command("convert")(convert_cli)
app.command("export")(export_cli)
app.command("train", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(train_cli)
app.command("pretrain", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(pretrain_cli)
app.command("pretrain-ernie", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(
    pretrain_ernie_cli
)
app.command("probe")(probe_cli)
app.command("evaluate")(evaluate_cli)
app.command("tune")(tune_cli)
app.command("annotate")(annotate_cli)
app.command("build-mentions")(build_mentions_cli)
app.command("build-kb")(build_kb_cli)
app.command("build-vectors")(build_vectors_cli)
app.command("build-corpus")(build_corpus_cli)
app.command("build-entity-vocab")(build_entity_vocab_cli)
app.command("build-shards")(build_shards_cli)
app.command("embed-entities")(embed_entities_cli)
app.command("train-kge")(train_kge_cli)

spacy_app.add_typer(app, name="luke")
