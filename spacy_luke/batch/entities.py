"""Windows with entity tokens that a task asks for, and what is classified by them: typing, relations, cloze.

N packed pieces of a batch, B windows, E entity tokens, U units: a unit is one thing that is classified, by K entity
tokens (a mention's one, a pair's two, a placeholder's and a candidate's).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .allowed import AllowedClasses
from .packed import Packed, join_items


@dataclass(frozen=True)
class EntityItem:
    """A window that shall be encoded with its entity tokens.

    owner: the caller's number of what the results belong to; pieces: (n,), [CLS] and [SEP] included; rows_E: rows of
    the module's entity table; first_E, last_E: pieces of each mention in the window, both inclusive, [CLS] is 0;
    units_UK: which of the item's entity tokens a unit reads, in this order; group: where words do not see entities, so
    many consecutive tokens see one another; gold: (U,) classes, -1 for not known, below that numbers of `allowed`; or
    (U, L) of 0 and 1, or probabilities, where a unit may have several labels, and of other numbers where it is not
    known whether one holds; or, where these are taught, (U, L) probabilities of the classes; types: (n,) token types of
    the pieces, zeros where None; number_U: the caller's number of each unit, 0, 1, ... where None; marks_UK: the piece
    in the window that marks the beginning of each mention of a unit, where there are marks and no entity tokens.
    """

    owner: int
    pieces: np.ndarray
    rows_E: np.ndarray
    first_E: np.ndarray
    last_E: np.ndarray
    units_UK: np.ndarray
    group: int = 1
    gold: np.ndarray | None = None
    types: np.ndarray | None = None
    number_U: np.ndarray | None = None
    allowed: AllowedClasses | None = None
    marks_UK: np.ndarray | None = None

    @property
    def cost(self) -> int:
        return len(self.pieces) + len(self.rows_E)


@dataclass(frozen=True)
class EntityBatch(Packed[EntityItem]):
    """units_UK counts the entity tokens of the whole batch, marks_UK its pieces."""

    types_N: np.ndarray | None
    rows_E: np.ndarray
    units_UK: np.ndarray
    group: int
    gold: np.ndarray | None
    allowed_SL: NDArray[np.bool_] | None = None  # the classes that a unit may have whose gold is -2 - s
    marks_UK: np.ndarray | None = None

    @property
    def leaves_open(self) -> bool:
        """Whether it is not known of some label whether it holds."""
        if self.gold is None or self.gold.ndim == 1:
            return self.allowed_SL is not None
        return bool(((self.gold < 0) | (self.gold > 1)).any())

    @property
    def groups(self) -> int:
        """Of units that may have several labels: the most groups of labels of a unit of which at least one holds."""
        return 0 if self.gold is None else max(int(self.gold.max(initial=0)) - 1, 0)

    def owner_U(self) -> np.ndarray:
        """Owner of each unit."""
        return np.repeat([item.owner for item in self.items], [len(item.units_UK) for item in self.items])

    owners = owner_U  # of its scores

    def window_U(self) -> np.ndarray:
        """Window of each unit."""
        return np.repeat(np.arange(len(self.items)), [len(item.units_UK) for item in self.items])

    def number_U(self) -> np.ndarray:
        """The caller's number of each unit."""
        return np.concatenate([np.arange(len(x.units_UK)) if x.number_U is None else x.number_U for x in self.items])


def make_entity_batch(items: Sequence[EntityItem]) -> EntityBatch:
    groups = {item.group for item in items}
    assert len(groups) == 1, groups
    assert all(item.allowed is items[0].allowed for item in items), "numbers of several tables"
    packed = join_items(items, "rows_E", "first_E", "last_E", of="rows_E")
    starts = np.cumsum(packed["counts"]) - np.array(packed["counts"])
    marks, begin = [], 0
    for item in items:
        if item.marks_UK is not None:
            marks.append(item.marks_UK + begin)
        begin += len(item.pieces)
    types = None
    if any(item.types is not None for item in items):
        types = np.concatenate([np.zeros_like(x.pieces) if x.types is None else x.types for x in items])
    return EntityBatch(
        **packed,
        types_N=types,
        units_UK=np.concatenate([item.units_UK + start for item, start in zip(items, starts)]),
        group=items[0].group,
        gold=np.concatenate([item.gold for item in items]) if items[0].gold is not None else None,
        allowed_SL=None if items[0].allowed is None else items[0].allowed.table(),
        marks_UK=np.concatenate(marks) if marks else None,
    )
