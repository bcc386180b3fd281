"""Windows of many documents become batches of similar length, without padding.

N packed pieces of a batch, B windows, E spans.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .allowed import ANY, AllowedClasses, is_surely
from .packed import Packed, join_items
from .windows import Spans


@dataclass(frozen=True)
class SpanItem:
    """A window that shall be encoded with some of its spans: the unit of batches.

    owner: index of its document in the caller's list; spans: [first, last) in the order of the spans object.
    """

    owner: int
    pieces: np.ndarray  # [CLS] and [SEP] included
    spans: Spans
    first: int
    last: int
    budget: int
    gold_E: np.ndarray | None = None  # class of each of its spans, 0 for none, -1 for not known; only in training
    allowed: AllowedClasses | None = None  # what numbers below -1 in gold_E stand for
    taught_EL: NDArray[np.float32] | None = None  # what another pipeline says of its spans: probabilities of classes

    @property
    def cost(self) -> int:
        return len(self.pieces) + min(self.last - self.first, self.budget)


@dataclass(frozen=True)
class SpanBatch(Packed[SpanItem]):
    """Windows and their spans."""

    start_E: np.ndarray  # words of the span in its document, the end exclusive
    end_E: np.ndarray
    budget_B: np.ndarray  # spans a window may keep
    gold_E: np.ndarray | None
    allowed_SL: NDArray[np.bool_] | None = None  # the classes that a span may have whose gold_E is -2 - s
    chance: float = 0.0  # least probability of a proposed span that is kept; in predictions alone
    taught_EL: NDArray[np.float32] | None = None  # of the items; rows of -1 where nothing is said

    def gold_mentions_E(self) -> NDArray[np.bool_]:
        """Which spans are mentions by gold, or more probably than not by what is taught, of whatever label."""
        assert self.gold_E is not None, "a batch without gold"
        surely_E = is_surely(self.gold_E, self.allowed_SL)
        if self.taught_EL is None:
            return surely_E
        return surely_E | ((self.taught_EL[:, 0] >= 0) & (self.taught_EL[:, 0] < 0.5))

    def known_E(self) -> NDArray[np.bool_]:
        """Of which spans something is learned."""
        assert self.gold_E is not None, "a batch without gold"
        known_E: NDArray[np.bool_] = self.gold_E != ANY
        return known_E if self.taught_EL is None else known_E | (self.taught_EL[:, 0] >= 0)


def make_batch(items: Sequence[SpanItem], *, chance: float = 0.0) -> SpanBatch:
    spans: dict[str, Any] = {
        name: np.concatenate([getattr(item.spans, name)[item.first : item.last] for item in items])
        for name in ("first_E", "last_E", "start_E", "end_E")
    }
    has_gold, allowed = items[0].gold_E is not None, items[0].allowed
    assert all(item.allowed is allowed for item in items), "numbers of several tables"
    return SpanBatch(
        **join_items(items),
        **spans,
        counts=[item.last - item.first for item in items],
        budget_B=np.array([item.budget for item in items], dtype=np.int64),
        gold_E=np.concatenate([item.gold_E for item in items]) if has_gold else None,
        allowed_SL=None if allowed is None else allowed.table(),
        chance=chance,
        taught_EL=_taught(items),
    )


def _taught(items: Sequence[SpanItem]) -> NDArray[np.float32] | None:
    width = next((item.taught_EL.shape[1] for item in items if item.taught_EL is not None), None)
    if width is None:
        return None
    shapes = ((item.last - item.first, width) for item in items)
    return np.concatenate(
        [
            np.full(shape, -1, dtype=np.float32) if item.taught_EL is None else item.taught_EL
            for item, shape in zip(items, shapes, strict=True)
        ]
    )


def split_spans(first: int, last: int, *, most: int | None) -> list[range]:
    """Runs of at most `most` spans, cut as the reference cuts them: k = ceil(n / most) runs of ceil(n / k)."""
    count = last - first
    if most is None or count <= most:
        return [range(first, last)]
    size = math.ceil(count / math.ceil(count / most))
    return [range(a, min(a + size, last)) for a in range(first, last, size)]


class Costly(Protocol):
    """What is batched by its length, and counts for what it costs: pieces and entity tokens."""

    @property
    def pieces(self) -> np.ndarray: ...

    @property
    def cost(self) -> int: ...


One = TypeVar("One", bound=Costly)
Batch = TypeVar("Batch")


def batch_items(
    items: Iterable[One], *, size: int, make: Callable[[Sequence[One]], Batch], buffer: int = 32
) -> Iterator[Batch]:
    """Batches of about `size` pieces and spans; items of similar length stand together.

    make: packs some of them. At most about `buffer` batches' worth of items is held at
    once, so that memory does not grow with the text.
    """
    held: list[One] = []
    cost = 0
    for item in items:
        held.append(item)
        cost += item.cost
        if cost >= size * buffer:
            yield from _drain(held, size, make)
            held, cost = [], 0
    yield from _drain(held, size, make)


def _drain(items: list[One], size: int, make: Callable[[Sequence[One]], Batch]) -> Iterator[Batch]:
    batch: list[One] = []
    cost = 0
    for item in sorted(items, key=lambda x: len(x.pieces), reverse=True):
        if batch and cost + item.cost > size:
            yield make(batch)
            batch, cost = [], 0
        batch.append(item)
        cost += item.cost
    if batch:
        yield make(batch)
