"""Where the tokens of a pass are in their windows, for families of encoders whose attention asks for it.

A word is at its piece; an entity is at the pieces of its mention, of which `Spots` have both ends, so that a family may
take the mean of its pieces, its centre, or its nearest piece. What a family makes of two sets of spots (biases,
buckets, a mask) is the same in all layers: `PassPlaces` makes it once a pass.

N packed tokens (NW words, NE entities); B windows of a group, S tokens that see L tokens of their window.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import torch
from torch import Tensor

from .packing import EntityRows, Packing, group_rows, split_rows
from .recompute import is_recomputing

R = TypeVar("R")  # what a family makes of two sets of spots
T = TypeVar("T")


@dataclass(frozen=True)
class Spots:
    """First and last piece of tokens in their windows, from 0 ([CLS]), both inclusive; a word's are the same."""

    first: Tensor
    last: Tensor


class PassPlaces(Generic[R]):
    """The places of one pass. relate: what a family makes of spots that see, (B, S) or (1, S), and spots that are seen,
    (B, L) or (1, L). words, entities: spots of the packed tokens, (NW,) and (NE,); no entities in a pass over words
    alone. Spots in place of padding are those of any token: what they give is masked, but must be finite."""

    def __init__(self, relate: Callable[[Spots, Spots], R], words: Spots, entities: Spots | None = None):
        self.relate, self.words = relate, words
        self._entities = entities
        self._made: dict[Hashable, object] = {}
        self._keeps = not is_recomputing()  # a layer that is computed again makes all that it needs itself

    @property
    def entities(self) -> Spots:
        assert self._entities is not None
        return self._entities

    def among_words(self, packing: Packing) -> list[R]:
        """Of the words of each group of windows: the windows of a group have the same, (1, L)."""
        return [self._of_words(group.longest) for group in packing.groups]

    def among_all(self, packing: Packing) -> list[R]:
        """Of words and entities, in each group of windows made of both (`pack_pairs`)."""
        return self._once("all", lambda: self._among_all(packing))

    def entity_keys(self, packing: Packing) -> list[Tensor]:
        """Which tokens of each group made of both are entities, (B, L)."""
        return self._once("keys", lambda: self._entity_keys(packing))

    def to_words(self, rows: EntityRows) -> list[R]:
        """Of the entities of each group of windows, for their words."""
        return self._once("to_words", lambda: self._to_words(rows))

    def in_groups(self, size: int) -> R:
        """Of so many consecutive entities that see one another: of spots (NE / size, size)."""
        return self._once("groups", lambda: self._in_groups(size))

    def in_windows(self, lengths: Sequence[int], counts: Sequence[int]) -> list[tuple[R, R]]:
        """Of the entities of each window, for its words and for one another. lengths, counts: words and entities."""
        return self._once("windows", lambda: self._in_windows(lengths, counts))

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        if not self._keeps:
            return make()
        if key not in self._made:
            self._made[key] = make()
        return cast(T, self._made[key])

    def _row(self, length: int) -> Spots:
        pieces_1L = torch.arange(length, device=self.words.first.device)[None]
        return Spots(pieces_1L, pieces_1L)

    def _of_words(self, length: int) -> R:
        row = self._row(length)
        return self._once(length, lambda: self.relate(row, row))

    def _among_all(self, packing: Packing) -> list[R]:
        ends = (torch.cat(ends) for ends in zip(*((x.first, x.last) for x in (self.words, self.entities))))
        spots = [Spots(*grouped) for grouped in zip(*(group_rows(x, packing) for x in ends), strict=True)]
        return [self.relate(x, x) for x in spots]

    def _entity_keys(self, packing: Packing) -> list[Tensor]:
        kinds_N = torch.zeros_like(torch.cat([self.words.first, self.entities.first]), dtype=torch.bool)
        kinds_N[len(self.words.first) :] = True
        return group_rows(kinds_N, packing)

    def _to_words(self, rows: EntityRows) -> list[R]:
        parts = (
            split_rows(x.index_select(0, rows.rows_P), rows.shapes) for x in (self.entities.first, self.entities.last)
        )
        spots = [Spots(*ends) for ends in zip(*parts, strict=True)]
        groups = (group for group, _ in rows.parts)
        return [self.relate(x, self._row(group.longest)) for x, group in zip(spots, groups, strict=True)]

    def _in_groups(self, size: int) -> R:
        spots = Spots(*(x.unflatten(0, (-1, size)) for x in (self.entities.first, self.entities.last)))
        return self.relate(spots, spots)

    def _in_windows(self, lengths: Sequence[int], counts: Sequence[int]) -> list[tuple[R, R]]:
        ends = (x.split(list(counts)) for x in (self.entities.first, self.entities.last))
        spots = [Spots(first[None], last[None]) for first, last in zip(*ends, strict=True)]
        return [(self.relate(x, self._row(n)), self.relate(x, x)) for x, n in zip(spots, lengths, strict=True)]
