"""`spacy luke export`: a pipeline's model goes back to the Hugging Face layout, or to that of ERNIE's authors."""

from pathlib import Path

import spacy
import typer
from wasabi import msg

from ..components.base import LukeComponent, find_component

_OURS_ALONE = {
    "mention_start": '[MASK] entities that begin with their mention\'s pieces (entity_start = "mention")',
    "case_feature": "vectors for the case of words (case_feature = true)",
}


def export_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    output: Path = typer.Argument(..., help="Folder of the checkpoint; it is replaced as a whole"),
    component: str | None = typer.Option(None, help="Name of the component, where there are several"),
) -> None:
    """Write a component's model so that transformers' LUKE classes, or ERNIE's original code, read it."""
    proc = find_component(spacy.load(pipeline), LukeComponent, component)
    checkpoint = proc.to_checkpoint()
    proc.encoder.kind.write(checkpoint, output)
    family = getattr(checkpoint.config, "family", "luke")
    if family != "luke":
        msg.warn(
            f"transformers has no class for entities on {family}: its class for {family} reads the words alone, `spacy "
            "luke convert` reads all."
        )
        msg.good(f"Saved to {output}")
        return
    if proc.model.attrs["attention"] != "full":
        msg.warn(
            f"'{proc.name}' was trained with attention = {proc.model.attrs['attention']!r}. transformers "
            "computes the paper's full attention, so it will predict differently; train with full for equal "
            "predictions."
        )
    if checkpoint.task == "entity_pair_classification" and "head.classifier.bias" in checkpoint.tensors:
        msg.warn(
            f"The classifier of '{proc.name}' has a bias, which LukeForEntityPairClassification of transformers "
            "leaves out, so it may predict differently; `spacy luke convert` reads it."
        )
    for name, what in _OURS_ALONE.items():
        if getattr(checkpoint.config, name, False):
            msg.warn(
                f"The encoder of '{proc.name}' has {what}, which transformers leaves out, so it predicts differently; "
                "`spacy luke convert` reads it."
            )
    if checkpoint.task == "cloze":
        msg.warn(
            "transformers has no class for cloze heads; its LukeModel reads the encoder, `spacy luke convert` all."
        )
    if checkpoint.task == "entity_disambiguation":
        msg.warn(
            "transformers has no class for entity disambiguation; the layout is that of the original's code, which "
            "reads it, as does `spacy luke convert`."
        )
    msg.good(f"Saved to {output}")
