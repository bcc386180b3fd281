"""`spacy luke export`: a pipeline's model goes back to the Hugging Face layout."""

from pathlib import Path
from typing import Optional

import spacy
import typer
from spacy.language import Language
from wasabi import msg

from ..checkpoint.checkpoint import write_huggingface
from ..components.base import LukeComponent


def find_component(nlp: Language, name: Optional[str] = None) -> LukeComponent:
    """The pipeline's LUKE component of that name, or its only one. Raises ValueError where there is no such thing."""
    found = {key: proc for key, proc in nlp.pipeline if isinstance(proc, LukeComponent)}
    if name is None and len(found) != 1:
        raise ValueError(f"The pipeline has the LUKE components {list(found)}; expected one, or --component to name it.")
    if name is not None and name not in found:
        raise ValueError(f"The pipeline has no LUKE component {name!r}; it has {list(found)}.")
    return found[name] if name is not None else next(iter(found.values()))


def export_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    output: Path = typer.Argument(..., help="Folder of the checkpoint; it is replaced as a whole"),
    component: Optional[str] = typer.Option(None, help="Name of the component, where there are several"),
) -> None:
    """Write a component's model so that transformers' LUKE classes read it."""
    try:
        proc = find_component(spacy.load(pipeline), component)
        write_huggingface(proc.to_checkpoint(), output)
    except (ValueError, OSError) as error:
        msg.fail("Nothing was written.", str(error), exits=1)
    if proc.model.attrs["attention"] != "full":
        msg.warn(
            f"'{proc.name}' was trained with attention = {proc.model.attrs['attention']!r}. transformers "
            "computes the paper's full attention, so it will predict differently; train with full for equal predictions."
        )
    msg.good(f"Saved to {output}")
