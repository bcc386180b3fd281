"""`python -m spacy luke ...`: one module a command. spaCy finds `app` by the entry point `spacy_cli`."""

import typer
from spacy.cli._util import app as spacy_app

from .corpus import corpus_command

app = typer.Typer(name="luke", help="LUKE and its relatives: data, checkpoints, pipelines.", no_args_is_help=True)
app.command("corpus")(corpus_command)

spacy_app.add_typer(app, name="luke")
