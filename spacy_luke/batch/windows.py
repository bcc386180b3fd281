"""Documents of any length become windows, and windows get their candidate spans.

P pieces and W words of a document, S sentences, B windows, E spans. A window holds pieces [start, end) of its document;
the spans that begin in its core [core_start, core_end) are its own. Cores divide the document, so that every span
belongs to exactly one window.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..text.align import Pieces

CONTEXTS = ("document", "sentence")


@dataclass(frozen=True)
class Document:
    """What is read of a text: its pieces, and which words begin sentences and may begin or end a mention."""

    pieces: Pieces
    sentence_W: np.ndarray  # index of each word's sentence, ascending
    bounds_W: np.ndarray  # True: the word may be the first or last of a mention (it has pieces and is not blank)
    signs_W: np.ndarray  # True: the word shares a piece with another one, and has neither letters nor digits

    @cached_property
    def bounds(self) -> "Bounds":
        words = np.flatnonzero(self.bounds_W)
        first, last = self.pieces.of_mentions(words, words + 1)
        sentence, signs = self.sentence_W[words], self.signs_W[words]
        begins, ends = (
            _one_of_equals(x, sentence, signs, last=is_last) for x, is_last in ((first, False), (last, True))
        )
        return Bounds(words, first, last, sentence, begins, ends)


def _one_of_equals(piece_n: np.ndarray, sentence_n: np.ndarray, signs_n: np.ndarray, *, last: bool) -> np.ndarray:
    """Of words of one sentence that share their first piece the first one with letters or digits, or with `last` of
    those that share their last piece the last one; the first one where none has any. bool (n,)"""
    if not len(piece_n):
        return np.ones(0, bool)
    runs = np.flatnonzero(np.append(True, (np.diff(piece_n) != 0) | (np.diff(sentence_n) != 0)))
    if len(runs) == len(piece_n):
        return np.ones(len(piece_n), bool)
    number_n, none = np.arange(len(piece_n)), -1 if last else len(piece_n)
    choose = np.maximum if last else np.minimum
    chosen = choose.reduceat(np.where(signs_n, none, number_n), runs)
    return np.isin(number_n, np.where(chosen == none, runs, chosen))


@dataclass(frozen=True)
class Bounds:
    """The words that may begin or end a mention: their indices, first piece, one past the last piece, sentence.

    Words that share pieces, as unknown signs and splitters of words make them, give spans of the same pieces, which no
    encoder can tell apart. begins, ends: whether spans that are enumerated begin or end with the word, so that of those
    spans one is there: the longest without punctuation and symbols at its ends."""

    words: np.ndarray
    first: np.ndarray
    last: np.ndarray
    sentence: np.ndarray
    begins: np.ndarray
    ends: np.ndarray

    def enumerates(self, first: Any, last: Any) -> Any:
        """Whether spans from the word `first` to the word `last`, both of these words, are those that are enumerated:
        indices, or arrays of them."""
        return self.begins[np.searchsorted(self.words, first)] & self.ends[np.searchsorted(self.words, last)]


@dataclass(frozen=True)
class WindowPlan:
    start_B: np.ndarray
    end_B: np.ndarray
    core_start_B: np.ndarray
    core_end_B: np.ndarray

    def __len__(self) -> int:
        return len(self.start_B)


@dataclass(frozen=True)
class Spans:
    """Candidate spans in order of first and last word. Words are the document's, the end exclusive; pieces are counted
    in the window with [CLS] as 0, both inclusive."""

    start_E: np.ndarray
    end_E: np.ndarray
    window_E: np.ndarray
    first_E: np.ndarray
    last_E: np.ndarray

    def __len__(self) -> int:
        return len(self.start_E)


def plan_windows(document: Document, *, room: int, context: str, share: bool, overlap: int) -> WindowPlan:
    """Windows of at most `room` pieces ([CLS] and [SEP] not counted) for the sentences of a document.

    context="document": each sentence stands in the longest stretch of its document that fits, as in the paper: with n
    pieces of its own, half = int((room - n) / 2); the shorter side gives what it has up to half, the other the rest
    (section 4.3; examples/legacy/ner of the reference code). context="sentence": no words of other sentences.
    share: consecutive sentences may share a window (only right where spans do not change word states); a document that
    fits is then one window, a longer one gets cores of at most room - overlap pieces, and around each core inside the
    document whole sentences stand, as many as fit: less is found beside halves of sentences, which training rarely
    shows (benchmarks/results/lengths.md).
    A sentence longer than the room is cut into cores of room - overlap pieces with the context it can have.
    """
    if context not in CONTEXTS:
        raise ValueError(f"context must be one of {CONTEXTS}, but it is {context!r}.")
    if not 0 < overlap < room:
        raise ValueError(f"overlap must lie between 0 and the window's {room} pieces, but it is {overlap}.")
    first_S, last_S = _sentence_pieces(document)
    total = len(document.pieces.ids_N)
    share = share and context == "document"
    stretches, limits = [], []
    if share and 0 < total <= room:
        stretches, limits = [(0, total)], [(0, total)]
    else:
        ends_S = np.append(first_S[1:], total)
        for first, end, last in zip(first_S.tolist(), ends_S.tolist(), last_S.tolist()):
            last = max(end, last)  # the sentence's last piece may also be the next one's first
            limit = (0, total) if context == "document" else (first, last)
            for own in _cut(first, end, last, room=room, overlap=overlap):
                if share and stretches and own[1] - stretches[-1][0] <= room - overlap:
                    stretches[-1] = (stretches[-1][0], own[1])
                else:
                    stretches.append(own)
                    limits.append(limit)
    starts = [own[0] for own in stretches]
    edges = np.append(first_S, total) if share else np.arange(total + 1)
    table = np.array(
        [
            (*_whole(with_context(own, limit, room), own, edges), first, end)
            for own, limit, first, end in zip(stretches, limits, starts, [*starts[1:], total])
        ],
        dtype=np.int64,
    )
    return WindowPlan(*table.reshape(-1, 4).T)


def _sentence_pieces(document: Document) -> tuple[np.ndarray, np.ndarray]:
    """First piece of each sentence with pieces, and one past the last piece of its words."""
    pieces, sentence_W = document.pieces, document.sentence_W
    if not len(sentence_W):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    begins = np.flatnonzero(np.diff(sentence_W, prepend=-1))
    ends = np.append(begins[1:], len(sentence_W)) - 1
    first_S, last_S = pieces.first_W[begins].copy(), pieces.last_W[ends]
    first_S[0] = 0  # pieces before the first word (none of a spaCy Doc's, but nothing is left out)
    keep = np.append(np.diff(first_S) > 0, first_S[-1] < len(pieces.ids_N))
    return first_S[keep], last_S[keep]


def _cut(first: int, end: int, last: int, *, room: int, overlap: int) -> list[tuple[int, int]]:
    """A sentence's pieces [first, last), whole or in parts that begin before `end`, where the next sentence begins."""
    if last - first <= room:
        return [(first, last)]
    step = room - overlap
    return [(a, min(a + step, last)) for a in range(first, end, step)]


def with_context(own: tuple[int, int], limit: tuple[int, int], room: int) -> tuple[int, int]:
    """Pieces with their context, at most `room` of them, inside the limit."""
    size = own[1] - own[0]
    left, right, half = own[0] - limit[0], limit[1] - own[1], int((room - size) / 2)
    if left < right:
        before = min(left, half)
        after = min(right, room - before - size)
    else:
        after = min(right, half)
        before = min(left, room - after - size)
    return own[0] - before, own[1] + after


def _whole(window: tuple[int, int], own: tuple[int, int], edges: np.ndarray) -> tuple[int, int]:
    """Pieces with the part of their context that lies between edges; where there is no edge, with all of it."""
    start, end = np.searchsorted(edges, window[0]), np.searchsorted(edges, window[1], side="right") - 1
    first, last = int(edges[start]), int(edges[end])
    return (first if first <= own[0] else window[0], last if last >= own[1] else window[1])


def enumerate_spans(
    document: Document,
    windows: WindowPlan,
    *,
    first_window: int = 0,
    last_window: int | None = None,
    max_pieces: int | None = None,
    max_words: int | None = None,
) -> Spans:
    """Every span of words inside one sentence, within the limits, of the windows [first_window, last_window); of those
    that have the same pieces one (`Bounds`)."""
    bounds = document.bounds
    last_window = len(windows) if last_window is None else last_window
    if last_window <= first_window or not len(bounds.words):
        return _spans(document, windows, np.empty(0, np.int64), np.empty(0, np.int64))
    low = np.searchsorted(bounds.first, windows.core_start_B[first_window], side="left")
    high = np.searchsorted(bounds.first, windows.core_end_B[last_window - 1], side="left")
    begin = np.arange(low, high)
    # For each first word, the last words that a span may have: bounded by sentence, window and the two limits.
    window = np.searchsorted(windows.core_start_B, bounds.first[begin], side="right") - 1
    reach = np.searchsorted(bounds.sentence, bounds.sentence[begin], side="right")
    piece_limit = windows.end_B[window]
    if max_pieces is not None:
        piece_limit = np.minimum(piece_limit, bounds.first[begin] + max_pieces)
    reach = np.minimum(reach, np.searchsorted(bounds.last, piece_limit, side="right"))
    if max_words is not None:
        reach = np.minimum(reach, np.searchsorted(bounds.words, bounds.words[begin] + max_words, side="left"))
    counts = np.maximum(reach - begin, 0)
    begins = np.repeat(begin, counts)
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    one = bounds.begins[begins] & bounds.ends[begins + offsets]
    return _spans(document, windows, bounds.words[begins[one]], bounds.words[(begins + offsets)[one]] + 1)


def place_spans(
    document: Document, windows: WindowPlan, starts: np.ndarray, ends: np.ndarray
) -> tuple[Spans, np.ndarray]:
    """Given spans of words [start, end), in their windows; of those that have the same pieces one (`Bounds`).

    RETURNS: the spans that can be placed, ordered by first and last word without duplicates, and those that cannot, an
    array (n, 2): with no piece at their first or last word, or longer than what their window holds.
    """
    wrong = (starts < 0) | (ends <= starts) | (ends > len(document.bounds_W))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"A span must have words [start, end) with 0 <= start < end <= {len(document.bounds_W)}, the document's "
            f"words, but span {i} is [{starts[i]}, {ends[i]}). Correct the suggester."
        )
    given = np.unique(np.stack([starts, ends], 1).astype(np.int64).reshape(-1, 2), axis=0)
    if not len(given) or not len(windows):
        return _spans(document, windows, np.empty(0, np.int64), np.empty(0, np.int64)), given
    starts, ends = given.T
    first, last = document.pieces.of_mentions(starts, ends)
    window = np.clip(np.searchsorted(windows.core_start_B, first, side="right") - 1, 0, None)
    fits = document.bounds_W[starts] & document.bounds_W[ends - 1] & (last <= windows.end_B[window])
    one = np.flatnonzero(fits)[_one_of_equal_spans(document, starts[fits], ends[fits], first[fits], last[fits])]
    return _spans(document, windows, starts[one], ends[one]), given[~fits]


def _one_of_equal_spans(
    document: Document, start_n: np.ndarray, end_n: np.ndarray, first_n: np.ndarray, last_n: np.ndarray
) -> np.ndarray:
    """Of spans in one sentence with the same pieces that which `enumerate_spans` has, or else the longest. RETURNS:
    their indices, ascending."""
    enumerated_n = document.bounds.enumerates(start_n, end_n - 1)
    keys = (document.sentence_W[start_n], first_n, last_n)
    order_n = np.lexsort((start_n - end_n, ~enumerated_n, *keys))
    new_n = np.any([np.diff(key[order_n], prepend=-1) != 0 for key in keys], axis=0)
    return np.sort(order_n[new_n])


def _spans(document: Document, windows: WindowPlan, starts: np.ndarray, ends: np.ndarray) -> Spans:
    first, end = document.pieces.of_mentions(starts, ends)
    last = end - 1
    if not len(starts):
        return Spans(starts, ends, starts, starts, starts)
    window = np.searchsorted(windows.core_start_B, first, side="right") - 1
    offset = 1 - windows.start_B[window]  # [CLS] is 0
    return Spans(starts, ends, window, first + offset, last + offset)


def budgets(document: Document, windows: WindowPlan, *, spans_per_word: float) -> np.ndarray:
    """How many proposed spans each window keeps: a share of the words that begin in its core, and one more. (B,)"""
    first = document.bounds.first
    words_B = np.searchsorted(first, windows.core_end_B) - np.searchsorted(first, windows.core_start_B)
    budget_B: np.ndarray = np.ceil(spans_per_word * words_B).astype(np.int64) + 1
    return budget_B
