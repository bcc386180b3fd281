"""The label that means "no entity" or "no relation": found by its name, and first among the labels of a checkpoint."""

import re

from .contents import Checkpoint

# Names of it, as _simple has them. AllenNLP's vocabularies order labels by frequency.
_SPANS = ("nil", "o", "none", "null", "noentity", "nonentity", "notanentity", "na", "outside")
_PAIRS = ("norelation", "na", "other", "none", "null", "nil", "norel", "unrelated", "noneoftheabove")
_KNOWN = {"span_classification": _SPANS, "entity_pair_classification": _PAIRS, "pair_classification": _PAIRS}
_EXAMPLES = {"span_classification": "NIL", "entity_pair_classification": "no_relation"}  # of tasks that need one


def means_none(label: str, *, task: str) -> bool:
    """Whether a label is known to mean none in a task, whatever its case, and the signs between its words."""
    return _simple(label) in _KNOWN.get(task, ())


def put_none_first(checkpoint: Checkpoint) -> None:
    """Move the label that means none, and its part of the classifier, to the front. Where no label is known to, and the
    task needs one, the report says that the first is taken."""
    labels, task = checkpoint.labels or [], checkpoint.task
    if not labels or task not in _KNOWN or means_none(labels[0], task=task):
        return
    places = {_simple(label): i for i, label in reversed(list(enumerate(labels)))}
    found = [places[name] for name in _KNOWN[task] if name in places]
    if not found:
        if task in _EXAMPLES:
            checkpoint.report.append(
                f"took the first label, {labels[0]}, for the one that means none, as none of {labels[:10]} is known to;"
                f" where it is another, give all labels in their order (--labels), and call that one {_EXAMPLES[task]}"
            )
        return
    order = [found[0], *(i for i in range(len(labels)) if i != found[0])]
    for name in ("head.classifier.weight", "head.classifier.bias"):
        if name in checkpoint.tensors:
            checkpoint.tensors[name] = checkpoint.tensors[name][order]
    checkpoint.labels = [labels[i] for i in order]
    checkpoint.report.append(f"moved the label {labels[found[0]]}, which means none, to the front")


def _simple(label: str) -> str:
    return re.sub(r"[\W_]+", "", label).casefold()
