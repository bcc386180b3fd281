"""What all batches of tasks are: windows one behind another, with their entity tokens or spans, without padding.

N packed pieces of a batch, E entity tokens or spans.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np


class Window(Protocol):
    """owner: the caller's number of what the results belong to; pieces: [CLS] and [SEP] included."""

    @property
    def owner(self) -> int: ...

    @property
    def pieces(self) -> np.ndarray: ...


Item = TypeVar("Item", bound=Window, covariant=True)


@dataclass(frozen=True)
class Packed(Generic[Item]):
    """All arrays are made from lengths, never from a padding value. lengths, counts: pieces and tokens of each window;
    first_E, last_E: pieces of each token in its window, both inclusive, [CLS] is 0."""

    pieces_N: np.ndarray
    lengths: Sequence[int]
    counts: Sequence[int]
    first_E: np.ndarray
    last_E: np.ndarray
    items: Sequence[Item]

    def __post_init__(self) -> None:
        assert len(self.pieces_N) == sum(self.lengths), (len(self.pieces_N), sum(self.lengths))
        assert len(self.first_E) == sum(self.counts), (len(self.first_E), sum(self.counts))

    def window_E(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def owner_E(self) -> np.ndarray:
        return np.repeat([item.owner for item in self.items], self.counts)

    def rows(self, positions_E: np.ndarray) -> np.ndarray:
        """Packed rows of positions counted in the tokens' windows."""
        starts_B = np.cumsum(self.lengths) - np.array(self.lengths)
        rows_E: np.ndarray = np.repeat(starts_B, self.counts) + positions_E
        return rows_E


def join_items(items: Sequence[Window], *names: str, of: str = "") -> dict[str, Any]:
    """The fields of a batch that are its items' arrays, one behind another: the pieces, and those that are named.

    of: the array that has an element for each entity token; "": the caller knows how many there are.
    """
    counts = {"counts": [len(getattr(item, of)) for item in items]} if of else {}
    arrays = {name: np.concatenate([getattr(item, name) for item in items]) for name in names}
    pieces_N = np.concatenate([item.pieces for item in items])
    return {"pieces_N": pieces_N, "lengths": [len(x.pieces) for x in items], "items": tuple(items), **counts, **arrays}
