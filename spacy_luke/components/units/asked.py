"""What is asked about a Doc: its mentions, and units of them that get labels; and what is gold of these.

M mentions of a Doc, U units, K mentions of a unit, L labels.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..labelled import LabelSurvey
from ..mentions import WordRange


@dataclass(frozen=True)
class Units:
    """mentions: words [start, end); units_UK: numbers of the mentions of each unit, of a pair (head, tail)."""

    mentions: list[WordRange]
    units_UK: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.units_UK)

    @classmethod
    def alone(cls, mentions: Iterable[WordRange]) -> "Units":
        """Each mention once, a unit of its own."""
        own = list(dict.fromkeys(mentions))
        return cls(own, np.arange(len(own))[:, None])

    @classmethod
    def given(cls, pairs: Sequence[tuple[WordRange, WordRange]]) -> "Units":
        """Pairs that are given, each once and without those of a mention with itself."""
        mentions = list(dict.fromkeys(mention for pair in pairs for mention in pair))
        number = {mention: m for m, mention in enumerate(mentions)}
        pairs = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]
        pairs_P2 = np.array([[number[head], number[tail]] for head, tail in pairs], dtype=np.int64).reshape(-1, 2)
        return cls(mentions, pairs_P2)

    @classmethod
    def of(cls, places: Sequence[tuple[int, ...]]) -> "Units":
        """Units by the words of their mentions, each once: (start, end), or (head's start, end, tail's start, end)."""
        units = [[(a, b) for a, b in zip(words[::2], words[1::2], strict=True)] for words in places]
        mentions = list(dict.fromkeys(mention for unit in units for mention in unit))
        number = {mention: m for m, mention in enumerate(mentions)}
        rows = [[number[mention] for mention in unit] for unit in units]
        return cls(mentions, np.array(rows, dtype=np.int64).reshape(len(rows), -1 if rows else 1))

    def places(self, unit: int) -> tuple[WordRange, ...]:
        """The mentions of a unit."""
        return tuple(self.mentions[m] for m in self.units_UK[unit].tolist())

    def numbers(self) -> dict[tuple[WordRange, ...], int]:
        """The number of each unit, by its mentions."""
        return {tuple(self.mentions[m] for m in unit): u for u, unit in enumerate(self.units_UK.tolist())}

    def only(self, kept_U: Sequence[bool]) -> "Units":
        """Those units that are kept, of the same mentions."""
        return Units(self.mentions, self.units_UK[np.array(kept_U, dtype=bool)])


@dataclass(frozen=True)
class Gold:
    """labels: of those units that have some, by the units' numbers, or of all; missing: why other labels are of no
    unit."""

    units: Units
    labels: dict[int, list[str]]
    missing: Counter[str]


@dataclass
class UnitSurvey(LabelSurvey):
    """units: how many are asked about."""

    units: int = 0
