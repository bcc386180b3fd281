"""What another pipeline says of the words of a Doc, as a component learns it.

P places, L classes of the component.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from spacy.training import Example

from ..annotations import get_taught

Words = tuple[int, ...]  # [start, end) of a span, or of head and tail


@dataclass(frozen=True)
class TaughtPlaces:
    """places: words of the predicted Doc. probability_PL: of each class."""

    places: list[Words]
    probability_PL: NDArray[np.float32]


def read_taught(example: Example, classes: Sequence[str], *, name: str) -> TaughtPlaces | None:
    """What the gold Doc says that a teacher's component of this name says; None where it says nothing. Places that are
    no whole words of the predicted Doc are left out.

    classes: "" stands for "none of them". Raises ValueError where the teacher knows other ones.
    """
    said = get_taught(example.reference, name)
    if said is None:
        return None
    if set(said.labels) != set(classes):
        raise ValueError(
            f"'{name}' cannot learn what its teacher says: it has the classes {sorted(classes)}, the teacher "
            f"{sorted(said.labels)}. Give [initialize.components.{name}.labels] the teacher's, or let `spacy luke "
            "distill` do it."
        )
    doc = example.predicted
    first = {word.idx: word.i for word in doc}
    last = {word.idx + len(word): word.i + 1 for word in doc}
    kept: list[int] = []
    places: list[Words] = []
    for i, place in enumerate(said.places_PK.tolist()):
        pairs = list(zip(place[::2], place[1::2], strict=True))
        if all(a in first and b in last for a, b in pairs):
            kept.append(i)
            places.append(tuple(edge for a, b in pairs for edge in (first[a], last[b])))
    columns = [said.labels.index(label) for label in classes]
    return TaughtPlaces(places, said.probability_PL[kept][:, columns])
