"""`python -m spacy luke ...`: one module a command. spaCy finds `app` by the entry point `spacy_cli`

It imports this with every command of its own too: what a command of ours needs is imported when that is called."""

from importlib import import_module
from inspect import signature

import typer
from spacy.cli._util import app as spacy_app

from .commands import CommandGroup
from .errors import with_one_message
from .examples import EXAMPLES
from .terminal import begin

_OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}  # of any setting of the config
# Name: the first line of an error. The command a-b is the function a_b_cli of the module a_b.
COMMANDS = {
    "info": "Nothing can be said.",
    "corpus": "Nothing was written.",
    "init-config": "No config was written.",
    "convert": "Nothing was written.",
    "export": "Nothing was written.",
    "fetch-encoder": "Nothing was written.",
    "train": "Training stopped.",
    "pretrain": "Pretraining stopped.",
    "pretrain-ernie": "Pretraining stopped.",
    "probe": "Nothing was asked.",
    "evaluate": "Nothing was scored.",
    "tune": "Nothing was changed.",
    "quantize": "Nothing was written.",
    "dequantize": "Nothing was written.",
    "distill": "Training stopped.",
    "card": "No card was written.",
    "annotate": "Nothing was annotated.",
    "apply": "Not all was annotated.",
    "serve": "Nothing is served.",
    "graph": "No graph was written.",
    "build-mentions": "Nothing was written.",
    "page-names": "Nothing was written.",
    "build-kb": "Nothing was written.",
    "compact-kb": "Nothing was written.",
    "starter-kb": "Nothing was written.",
    "build-vectors": "Nothing was written.",
    "build-corpus": "Nothing was written.",
    "build-entity-vocab": "Nothing was written.",
    "build-shards": "Nothing was written.",
    "embed-entities": "Nothing was written.",
    "add-digests": "Not all stores are as they should be.",
    "train-kge": "No vectors were written.",
}


def _make(name: str) -> typer.Typer:
    module = name.replace("-", "_")
    function = getattr(import_module(f".{module}", __name__), f"{module}_cli")
    settings = _OVERRIDES if "ctx" in signature(function).parameters else {}
    command = with_one_message(function, failed=COMMANDS[name])
    one = typer.Typer(add_completion=False)
    one.command(name, context_settings=settings, epilog=f"Example: {EXAMPLES[name]}")(command)
    return one


class _Group(CommandGroup):
    names = tuple(COMMANDS)
    make = staticmethod(_make)


app = typer.Typer(
    name="luke", cls=_Group, help="LUKE and its relatives: data, checkpoints, pipelines.", no_args_is_help=True
)
app.callback()(begin)
spacy_app.add_typer(app, name="luke")
