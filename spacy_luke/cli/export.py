"""`spacy luke export`: a pipeline's model goes back to the Hugging Face layout."""

from pathlib import Path
from typing import Optional

import spacy
import typer
from wasabi import msg

from ..checkpoint.checkpoint import write_huggingface
from ..checkpoint.files import write_folder_atomically
from ..components.base import LukeComponent


def export_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    output: Path = typer.Argument(..., help="Folder of the checkpoint; it is replaced as a whole"),
    component: Optional[str] = typer.Option(None, help="Name of the component, where there are several"),
) -> None:
    """Write a component's model so that transformers' LUKE classes read it."""
    nlp = spacy.load(pipeline)
    names = [name for name, proc in nlp.pipeline if isinstance(proc, LukeComponent)]
    if component is None and len(names) != 1:
        raise ValueError(f"{pipeline} has the LUKE components {names}; expected one, or --component to name it.")
    if component is not None and component not in names:
        raise ValueError(f"{pipeline} has no LUKE component {component!r}; it has {names}.")
    proc = nlp.get_pipe(component or names[0])
    assert isinstance(proc, LukeComponent)
    with write_folder_atomically(output) as folder:
        write_huggingface(proc.to_checkpoint(), folder)
    if proc.model.attrs["attention"] != "full":
        msg.warn(
            f"'{component or names[0]}' was trained with attention = {proc.model.attrs['attention']!r}. transformers "
            "computes the paper's full attention, so it will predict differently; train with full for equal predictions."
        )
    msg.good(f"Saved to {output}")
