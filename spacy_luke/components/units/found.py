"""The relations that `luke_relation` finds in a Doc.

R relations.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ...annotations import RelationRow
from .asked import Units


@dataclass(frozen=True)
class FoundRelations:
    """Relations of a Doc: pairs of mentions (R, 2), class and probability of each."""

    asked: Units
    pair_R2: NDArray[np.int64]
    label_R: NDArray[np.int64]
    probability_R: NDArray[np.float64]

    @classmethod
    def joined(cls, asked: Units, parts: Sequence[NDArray[np.float64]]) -> "FoundRelations":
        """parts: rows of (number of the pair, class, probability), in any order."""
        table = np.concatenate(parts) if parts else np.empty((0, 3))
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        return cls(asked, asked.units_UK[table[:, 0].astype(np.int64)], table[:, 1].astype(int), table[:, 2])

    def rows(self, doc: Doc, classes: Sequence[str | None]) -> list[RelationRow]:
        """As they stand on the Doc. classes: their labels by number."""
        places = [(doc[a:b].start_char, doc[a:b].end_char) for a, b in self.asked.mentions]
        found = zip(self.pair_R2.tolist(), self.label_R.tolist(), self.probability_R.tolist(), strict=True)
        rows = []
        for (head, tail), label, probability in found:
            (a, b), (c, d) = places[head], places[tail]
            rows.append(RelationRow(a, b, c, d, classes[label] or "", probability))
        return rows
