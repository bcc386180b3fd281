"""`spacy luke probe`: which entities a pretrained checkpoint takes a masked mention for, and what is near an entity."""

from pathlib import Path

import typer
from wasabi import msg

from ..checkpoint.checkpoint import read_checkpoint
from ..checkpoint.sources import find_source
from ..pages.probe import render_probe
from ..pages.style import probability, save_page
from ..pretraining.luke.probe import Probe, Ranked
from .terminal import show_heading, show_table


def probe_cli(
    checkpoint: str = typer.Argument(..., help="A folder, an archive, package:NAME/FOLDER, or a hub name"),
    text: str = typer.Argument(..., help="A text with a mention in brackets: 'She was born in [Paris].'"),
    near: list[str] = typer.Option([], help="Show the neighbours of this entity; default: of each mention's first one"),
    top: int = typer.Option(10, min=1, help="Entities in a list"),
    hide: bool = typer.Option(False, "--hide", help="Mask the words of the mentions, too"),
    output: Path | None = typer.Option(None, "--output", "-o", dir_okay=False, help="HTML page that shows the same"),
) -> None:
    """Predict the entities of masked mentions, and list the nearest entities in the table."""
    answers = Probe(read_checkpoint(find_source(checkpoint))).ask(text, near=near, top=top, hide=hide)
    for prediction in answers.predictions:
        _print(f"[{answers.text[prediction.start : prediction.end]}]", prediction.entities, "probability")
    for title, ranked in answers.neighbours.items():
        _print(f"near {title}", ranked, "cosine")
    if output is not None:
        save_page(render_probe(answers, title=checkpoint, hide=hide), output)
        msg.good(f"Open {output} in a browser to see them beside the text")


def _print(title: str, ranked: Ranked, number: str) -> None:
    show_heading(title)
    show_table(("entity", number), [(name, probability(value)) for name, value in ranked])
