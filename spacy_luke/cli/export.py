"""`spacy luke export`: a pipeline's model goes back to the Hugging Face layout."""

from pathlib import Path
from typing import Optional

import spacy
import typer
from wasabi import msg

from ..checkpoint.checkpoint import write_huggingface
from ..components.base import LukeComponent, find_component


def export_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    output: Path = typer.Argument(..., help="Folder of the checkpoint; it is replaced as a whole"),
    component: Optional[str] = typer.Option(None, help="Name of the component, where there are several"),
) -> None:
    """Write a component's model so that transformers' LUKE classes read it."""
    try:
        proc = find_component(spacy.load(pipeline), LukeComponent, component)
        write_huggingface(proc.to_checkpoint(), output)
    except (ValueError, OSError) as error:
        msg.fail("Nothing was written.", str(error), exits=1)
    if proc.model.attrs["attention"] != "full":
        msg.warn(
            f"'{proc.name}' was trained with attention = {proc.model.attrs['attention']!r}. transformers "
            "computes the paper's full attention, so it will predict differently; train with full for equal predictions."
        )
    msg.good(f"Saved to {output}")
