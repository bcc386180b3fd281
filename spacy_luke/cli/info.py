"""`spacy luke info`: what is installed, what this machine computes with, and what a pipeline is made of."""

from pathlib import Path

import spacy
import srsly
import typer

from ..bridge.machine import describe_machine
from ..pages.terminal import draw_table, terminal_width
from ..pipelines.info import about_pipeline, folder_of, parts_of, versions
from ..pipelines.loading import import_code
from .given import CODE


def info_cli(
    pipeline: str | None = typer.Argument(None, help="Folder or name of a pipeline"),
    as_json: bool = typer.Option(False, "--json", help="The same as JSON, for programs and for reports of faults"),
    code: Path | None = CODE,
) -> None:
    """Say which versions are installed, which chip, number formats and kernels this machine computes with, and of a
    pipeline its components with what is not the default, the digests of their weights, its training, scores and
    card."""
    tables = {"versions": versions(), "machine": describe_machine()}
    parts = []
    if pipeline is not None:
        import_code(code)
        nlp = spacy.load(pipeline)
        tables["pipeline"] = about_pipeline(nlp, folder_of(pipeline))
        parts = parts_of(nlp)
    if as_json:
        found: dict[str, object] = {name: dict(rows) for name, rows in tables.items()}
        if pipeline is not None:
            found["components"] = [part._asdict() for part in parts]
        typer.echo(srsly.json_dumps(found, indent=2))
        return
    width = terminal_width()
    for name, rows in tables.items():
        typer.echo(draw_table((name, ""), rows, width=width) + "\n")
    if parts:
        header = ("component", "factory", "finds", "not the default", "weights")
        typer.echo(draw_table(header, parts, width=width))
