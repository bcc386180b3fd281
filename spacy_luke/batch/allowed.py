"""What a unit, a span or a pair, may be: one class, any, or one of some, as one number.

S sets of classes, L classes.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

ANY = -1  # nothing is known
FIRST_SET = -2  # the number of the first set; the next is -3


class AllowedClasses:
    """Numbers for what units may be: a class itself, from 0; -1 for any; -2 - s for one of those in row s of a table.
    Data sets make few different sets, so that a number a unit and a small table say it all."""

    def __init__(self, n_classes: int):
        self.n_classes = n_classes
        self._rows: dict[frozenset[int], int] = {}

    def number(self, classes: Iterable[int]) -> int:
        """The number of "one of these"."""
        chosen = frozenset(classes)
        assert chosen, "one of nothing"
        assert chosen <= set(range(self.n_classes)), (sorted(chosen), self.n_classes)
        if len(chosen) == self.n_classes:
            return ANY
        if len(chosen) == 1:
            return next(iter(chosen))
        return FIRST_SET - self._rows.setdefault(chosen, len(self._rows))

    def classes(self, number: int) -> frozenset[int]:
        """The reverse of `number`."""
        if number == ANY:
            return frozenset(range(self.n_classes))
        return frozenset({number}) if number >= 0 else list(self._rows)[FIRST_SET - number]

    def table(self) -> NDArray[np.bool_] | None:
        """Whether a set has a class, (S, L); None where there is no set."""
        if not self._rows:
            return None
        table_SL = np.zeros((len(self._rows), self.n_classes), dtype=bool)
        for chosen, row in self._rows.items():
            table_SL[row, sorted(chosen)] = True
        return table_SL


def is_surely(gold_U: NDArray[np.int64], allowed_SL: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Which units have a class that is not the first, "none", whichever it is, (U,)."""
    some_U: NDArray[np.bool_] = gold_U > 0
    if allowed_SL is not None:
        is_set_U = gold_U <= FIRST_SET
        some_U[is_set_U] = ~allowed_SL[FIRST_SET - gold_U[is_set_U], 0]
    return some_U
