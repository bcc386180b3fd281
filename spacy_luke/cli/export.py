"""`spacy luke export`: a pipeline's model goes back to the Hugging Face layout, or to that of ERNIE's authors."""

from pathlib import Path

import spacy
import typer
from wasabi import msg

from ..components.base import LukeComponent, find_component
from ..pipelines.export import export_component
from ..pipelines.loading import import_code
from .given import CODE


def export_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    output: Path = typer.Argument(..., help="Folder of the checkpoint; it is replaced as a whole"),
    component: str | None = typer.Option(None, help="Name of the component, where there are several"),
    code: Path | None = CODE,
) -> None:
    """Write a component's model so that transformers' LUKE classes, or ERNIE's original code, read it."""
    import_code(code)
    for note in export_component(find_component(spacy.load(pipeline), LukeComponent, component), output):
        msg.warn(note)
    msg.good(f"Saved to {output}")
