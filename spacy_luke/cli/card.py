"""`spacy luke card`: the card of a pipeline, which `spacy package` takes along."""

from pathlib import Path

import typer
from wasabi import msg

from ..pipelines.card import CARD, read_about, write_card
from ..pipelines.loading import import_code
from .given import CODE


def card_cli(
    pipeline: Path = typer.Argument(..., exists=True, file_okay=False, help="Folder of a pipeline"),
    about: Path = typer.Option(..., exists=True, dir_okay=False, help="JSON file with description, licence, sources"),
    metrics: list[Path] = typer.Option(
        [], exists=True, dir_okay=False, help="JSON file of `evaluate` or benchmarks/ready.py; may be repeated"
    ),
    output: Path | None = typer.Option(
        None,
        "--output",
        "-o",
        help="Folder of a copy that gets the card, an older one there is replaced; default: change this one",
    ),
    code: Path | None = CODE,
) -> None:
    """Write README.md with what a pipeline finds, its scores, data, licences and limits into its folder,
    LICENSES_SOURCES beside it, and name, licence, sources and the scores of --metrics into its meta.json. `spacy
    package` takes all of them along."""
    import_code(code)
    card = write_card(pipeline, read_about(about), metrics, output=output)
    msg.good(f"Saved the card to {(output or pipeline) / CARD}: {len(card.split()):,} words")
