"""`spacy luke add-digests`: stores of names of earlier versions, for `entity_annotator`, become those of today."""

from pathlib import Path

import typer
from wasabi import msg

from ..aliases.add_digests import add_digests, find_unchecked


def add_digests_cli(
    path: Path = typer.Argument(..., exists=True, help="File of a store of names, or folder of a saved pipeline"),
) -> None:
    """Check stores of names of version 1, as far as they can be, and add the digests that are read at each opening."""
    found = list(find_unchecked(path))
    for file in found:
        add_digests(file)
        msg.good(f"{file}: digests added")
    if not found:
        msg.info(f"{path} holds no store of names of version 1")
