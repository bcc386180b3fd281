"""The commands of spaCy's command line, ours among them."""

import typer.main
from spacy.cli._util import app as spacy_app

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)


def find_command(words):
    """The command of spaCy's CLI that `python -m spacy WORDS` runs, and the words after its name."""
    command = typer.main.get_command(spacy_app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words
