"""A component's model as a checkpoint, and what other code reads of it."""

from pathlib import Path

from ..components.base import LukeComponent

_OURS_ALONE = {
    "mention_start": '[MASK] entities that begin with their mention\'s pieces (entity_start = "mention")',
    "case_feature": "vectors for the case of words (case_feature = true)",
}


def export_component(component: LukeComponent, output: Path) -> list[str]:
    """Write the checkpoint as the family's own code reads it, in the folder `output`, which is replaced as a whole.
    RETURNS: what that code, or transformers, leaves out, a sentence each."""
    checkpoint = component.to_checkpoint()
    component.encoder.kind.write(checkpoint, output)
    family = getattr(checkpoint.config, "family", "luke")
    if family != "luke":
        return [
            f"transformers has no class for entities on {family}: its class for {family} reads the words alone, `spacy "
            "luke convert` reads all."
        ]
    notes = []
    if component.model.attrs["attention"] != "full":
        notes.append(
            f"'{component.name}' was trained with attention = {component.model.attrs['attention']!r}. transformers "
            "computes the paper's full attention, so it will predict differently; train with full for equal "
            "predictions."
        )
    if checkpoint.task == "entity_pair_classification" and "head.classifier.bias" in checkpoint.tensors:
        notes.append(
            f"The classifier of '{component.name}' has a bias, which LukeForEntityPairClassification of transformers "
            "leaves out, so it may predict differently; `spacy luke convert` reads it."
        )
    notes += [
        f"The encoder of '{component.name}' has {what}, which transformers leaves out, so it predicts differently; "
        "`spacy luke convert` reads it."
        for name, what in _OURS_ALONE.items()
        if getattr(checkpoint.config, name, False)
    ]
    if checkpoint.task == "cloze":
        notes.append(
            "transformers has no class for cloze heads; its LukeModel reads the encoder, `spacy luke convert` all."
        )
    if checkpoint.task == "entity_disambiguation":
        notes.append(
            "transformers has no class for entity disambiguation; the layout is that of the original's code, which "
            "reads it, as does `spacy luke convert`."
        )
    return notes
