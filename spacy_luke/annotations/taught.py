"""What the components of one pipeline, the teacher, say of a text, for those of another one, which learn to say it too.

P places, L labels.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from .keys import TAUGHT
from .rows import get_rows, set_rows

_DIGITS = 5  # of probabilities, as they are stored


@dataclass(frozen=True)
class Taught:
    """component: its name. labels: of the columns, "" for "none of them". places_PK: characters [start, end) of spans,
    (P, 2), or of heads and tails, (P, 4). probability_PL: of each label; rows of spans sum to 1."""

    component: str
    labels: tuple[str, ...]
    places_PK: NDArray[np.int64]
    probability_PL: NDArray[np.float32]


def get_taught(doc: Doc, component: str) -> Taught | None:
    """What was said by a component of this name; None where nothing was. Of Docs that were joined: all of it."""
    rows = [row for row in get_rows(doc, TAUGHT) or [] if row["component"] == component]
    if not rows:
        return None
    labels = tuple(rows[0]["labels"])
    if any(tuple(row["labels"]) != labels for row in rows):
        raise ValueError(f"Parts of this Doc were taught other labels by '{component}': {[x['labels'] for x in rows]}.")
    places = [place for row in rows for place in row["places"]]
    probabilities = [some for row in rows for some in row["probabilities"]]
    places_PK = np.array(places, dtype=np.int64).reshape(len(places), -1 if places else 2)
    return Taught(component, labels, places_PK, np.array(probabilities, np.float32).reshape(-1, len(labels)))


def set_taught(doc: Doc, said: Iterable[Taught]) -> None:
    """In the place of all that the Doc has of it."""
    rows = [
        {
            "component": one.component,
            "labels": list(one.labels),
            "places": one.places_PK.tolist(),
            "probabilities": one.probability_PL.astype(np.float64).round(_DIGITS).tolist(),
        }
        for one in said
    ]
    set_rows(doc, TAUGHT, rows or None)
