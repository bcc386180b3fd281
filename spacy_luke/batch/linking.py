"""Windows with the mentions that shall be linked, and the candidates of those that are scored.

P pieces of a document, N packed pieces of a batch, B windows, M mentions of a document, E entity tokens, C candidates
of the scored tokens, U vectors that a batch reads, V numbers of an entity vector, F features of a candidate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .packed import Packed, join_items
from .windows import Document, plan_windows, with_context

WINDOW_SPLITS = ("cores", "simple", "per_mention")
MASKED = -1  # in place of an entity's row: it is not known


@dataclass(frozen=True)
class LinkWindow:
    """Pieces [start, end) of a document with mentions; mentions_E: the caller's numbers of them; decided_E: whether it
    is this window that decides a mention, the others are context."""

    start: int
    end: int
    mentions_E: np.ndarray
    decided_E: np.ndarray


@dataclass(frozen=True)
class LinkItem:
    """A window as the encoder shall see it.

    owner: the caller's number; pieces: [CLS] and [SEP] included; first_E, last_E: pieces of each entity token in the
    window, both inclusive, [CLS] is 0; entities_E: rows of the batch's vectors, MASKED where the entity is not known;
    owner_C: the token (counted in the window) of each candidate, ascending; rows_C: rows of the batch's vectors;
        features_CF;
    gold_S: of each scored token the place of its gold entity among its own candidates, -1 for none.
    """

    owner: int
    pieces: np.ndarray
    first_E: np.ndarray
    last_E: np.ndarray
    entities_E: np.ndarray
    owner_C: np.ndarray
    rows_C: np.ndarray
    features_CF: np.ndarray
    gold_S: np.ndarray | None = None

    @property
    def cost(self) -> int:
        return len(self.pieces) + len(self.first_E)


@dataclass(frozen=True)
class LinkVectors:
    """Vectors of the entities that are read, and their biases: rows of them stand for entities in items."""

    vectors_UV: np.ndarray
    bias_U: np.ndarray


@dataclass(frozen=True)
class LinkBatch(Packed[LinkItem]):
    """scored_S: the entity tokens, counted in the batch, that have candidates to be scored; owner_C counts these.
    words: word states of a former pass over the same windows, where words do not see entities."""

    entities_E: np.ndarray
    scored_S: np.ndarray
    owner_C: np.ndarray
    rows_C: np.ndarray
    features_CF: np.ndarray
    gold_S: np.ndarray | None
    vectors: LinkVectors
    words: Any | None = None

    def gold_C(self) -> np.ndarray:
        """Of each scored token the place of its gold entity among all candidates, -1 for none."""
        assert self.gold_S is not None
        starts_S = np.searchsorted(self.owner_C, np.arange(len(self.scored_S)))
        return np.where(self.gold_S >= 0, starts_S + self.gold_S, -1)


def make_link_batch(items: Sequence[LinkItem], vectors: LinkVectors, *, words: Any | None = None) -> LinkBatch:
    packed = join_items(items, "first_E", "last_E", "entities_E", "rows_C", "features_CF", of="first_E")
    starts = np.cumsum(packed["counts"]) - np.array(packed["counts"])
    owner_C = np.concatenate([item.owner_C + start for item, start in zip(items, starts)])
    scored_S, place_C = np.unique(owner_C, return_inverse=True)
    return LinkBatch(
        **packed,
        scored_S=scored_S,
        owner_C=place_C.reshape(-1),
        gold_S=None if items[0].gold_S is None else np.concatenate([item.gold_S for item in items]),
        vectors=vectors,
        words=words,
    )


def plan_link_windows(
    document: Document,
    first_M: np.ndarray,
    last_M: np.ndarray,
    *,
    room: int,
    split: str,
    overlap: int,
    most: int,
    alone: bool = False,
) -> list[LinkWindow]:
    """Windows of at most `room` pieces for mentions of pieces [first, last).

    A document that fits is one window. A longer one is cut by `split`: "cores" has windows that overlap, and a mention
    is decided in the one whose core it begins in; "simple" has ceil(P / room) parts of equal length, which do not end
    inside a mention; "per_mention" has a window around each mention, which is its first one (both as
    `_create_input_dict`'s callers in the reference's dataloader.py, except that there the first mention of a document
    may be cut).
    alone: a window around each mention always, as "per_mention" cuts them (the 2019 paper's input).
    most: mentions of a window; where there are more, those that it decides are divided among several inputs.
    A mention that is longer than a window has none.
    """
    total = len(document.pieces.ids_N)
    if not len(first_M):
        return []
    if alone or (total > room and split == "per_mention"):
        windows = _around_mentions(first_M, last_M, total=total, room=room)
    elif total <= room:
        windows = [_window(0, total, first_M, last_M, np.ones(len(first_M), bool))]
    elif split == "simple":
        windows = _equal_parts(first_M, last_M, total=total, room=room)
    else:
        windows = _cores(document, first_M, last_M, room=room, overlap=overlap)
    return [part for window in windows for part in _divide(window, first_M, most=most)]


def _window(start: int, end: int, first_M: np.ndarray, last_M: np.ndarray, decided_M: np.ndarray) -> LinkWindow:
    inside = np.flatnonzero((first_M >= start) & (last_M <= end))
    return LinkWindow(start, end, inside, decided_M[inside])


def _around_mentions(first_M: np.ndarray, last_M: np.ndarray, *, total: int, room: int) -> list[LinkWindow]:
    windows = []
    for number, own in enumerate(zip(first_M.tolist(), last_M.tolist())):
        if own[1] - own[0] > room:
            continue
        start, end = with_context(own, (0, total), room)
        inside = np.flatnonzero((first_M >= start) & (last_M <= end))
        mentions_E = np.concatenate([[number], inside[inside != number]])
        windows.append(LinkWindow(start, end, mentions_E, np.arange(len(mentions_E)) == 0))
    return windows


def _equal_parts(first_M: np.ndarray, last_M: np.ndarray, *, total: int, room: int) -> list[LinkWindow]:
    size = math.ceil(total / math.ceil(total / room))
    windows, start = [], 0
    while start < total:
        end = min(total, start + size)
        while (cut := first_M[(first_M < end) & (last_M > end) & (first_M > start)]).size:
            end = int(cut.min())
        windows.append(_window(start, end, first_M, last_M, np.ones(len(first_M), bool)))
        start = end
    decided = np.concatenate([window.mentions_E for window in windows])
    return windows + _own_windows(np.setdiff1d(np.arange(len(first_M)), decided), first_M, last_M, total, room)


def _cores(document: Document, first_M: np.ndarray, last_M: np.ndarray, *, room: int, overlap: int) -> list[LinkWindow]:
    plan = plan_windows(document, room=room, context="document", share=True, overlap=overlap)
    home_M = np.maximum(np.searchsorted(plan.core_start_B, first_M, side="right") - 1, 0)
    windows = []
    for b in range(len(plan)):
        windows.append(_window(int(plan.start_B[b]), int(plan.end_B[b]), first_M, last_M, home_M == b))
    crossing = np.flatnonzero(last_M > plan.end_B[home_M])
    windows += _own_windows(crossing, first_M, last_M, len(document.pieces.ids_N), room)
    return [window for window in windows if window.decided_E.any()]


def _own_windows(
    numbers: np.ndarray, first_M: np.ndarray, last_M: np.ndarray, total: int, room: int
) -> list[LinkWindow]:
    """For mentions that cross the ends of windows, windows around them that decide them alone."""
    windows = []
    for number in numbers.tolist():
        own = (int(first_M[number]), int(last_M[number]))
        if own[1] - own[0] <= room:
            windows.append(
                _window(*with_context(own, (0, total), room), first_M, last_M, np.arange(len(first_M)) == number)
            )
    return windows


def _divide(window: LinkWindow, first_M: np.ndarray, *, most: int) -> list[LinkWindow]:
    """A window of at most `most` mentions: those that it decides, and the context mentions that are nearest to them."""
    if len(window.mentions_E) <= most:
        return [window]
    places = np.flatnonzero(window.decided_E)
    parts = []
    for a in range(0, len(places), most):
        own = places[a : a + most]
        first_E = first_M[window.mentions_E]
        distance_E = np.where(np.isin(np.arange(len(first_E)), own), -1, np.abs(first_E[:, None] - first_E[own]).min(1))
        keep = np.sort(np.argsort(distance_E, kind="stable")[:most])
        decided_E = np.isin(keep, own)
        parts.append(LinkWindow(window.start, window.end, window.mentions_E[keep], decided_E))
    return parts
