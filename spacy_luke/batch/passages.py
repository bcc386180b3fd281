"""A question and a passage become windows, and windows with their scores become answers.

The input is the paper's (examples/legacy/reading_comprehension/utils/feature.py): [CLS] question [SEP][SEP] passage
[SEP]; of encoders that were trained with one [SEP] in the middle, as BERT, one, and token type 1 from the passage on
where there are types.

N packed pieces of a batch, B windows, P pieces of a passage, E entity tokens, L pieces of a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .packed import Packed, join_items


@dataclass(frozen=True)
class Frame:
    """What stands around the passage in each window of a question. head: pieces before it, [CLS] included; sep: the
    piece at the end; types: whether pieces have token types, and the passage's is 1."""

    head: np.ndarray
    sep: int
    types: bool

    def window(self, pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Pieces of a window, and their token types."""
        types = None
        if self.types:
            types = np.repeat([0, 1], [len(self.head), len(pieces) + 1])
        return np.concatenate([self.head, pieces, [self.sep]]), types


def make_frame(question: np.ndarray, *, cls_id: int, sep_id: int, double: bool, token_types: int) -> Frame:
    """double: whether there are two [SEP] between texts; token_types: of the encoder."""
    seps = [sep_id, sep_id] if double else [sep_id]
    return Frame(np.concatenate([[cls_id], question, seps]), sep_id, token_types > 1 and not double)


def stride_windows(total: int, *, room: int, stride: int) -> list[tuple[int, int]]:
    """Pieces [first, last) of a passage for each window, which begin `stride` pieces apart, as in the original code
    (its `doc_stride`): neighbours share room - stride pieces."""
    windows = []
    for first in range(0, total, min(stride, room)):
        windows.append((first, min(first + room, total)))
        if windows[-1][1] == total:
            break
    return windows


def best_context(windows: Sequence[tuple[int, int]], total: int) -> np.ndarray:
    """For each piece of the passage the window in which it has most context, the first of equal ones: (P,).

    The context is the smaller of the pieces before and after it, plus a hundredth of the window's pieces.
    """
    best_P = np.full(total, -np.inf)
    window_P = np.zeros(total, dtype=np.int64)
    for b, (first, last) in enumerate(windows):
        before = np.arange(last - first)
        context = np.minimum(before, before[::-1]) + 0.01 * (last - first)
        better = context > best_P[first:last]
        best_P[first:last][better] = context[better]
        window_P[first:last][better] = b
    return window_P


@dataclass(frozen=True)
class PassageItem:
    """A window of a question.

    owner: the caller's number of the question; pieces, types: of the window; offset: its first piece of the passage;
    first: that piece's number in the passage; starts_here: (L,), whether an answer may begin at a piece of the passage
    in this window; rows_E, first_E, last_E, types_E: entity tokens, first and last piece in the window, both inclusive;
    gold: first and last piece of the answer in the window, both inclusive, [CLS] where there is none.
    """

    owner: int
    pieces: np.ndarray
    types: np.ndarray | None
    offset: int
    first: int
    starts_here: np.ndarray
    rows_E: np.ndarray
    first_E: np.ndarray
    last_E: np.ndarray
    gold: tuple[int, int] | None = None

    @property
    def cost(self) -> int:
        return len(self.pieces) + len(self.rows_E)


@dataclass(frozen=True)
class PassageBatch(Packed[PassageItem]):
    """Windows of questions."""

    types_N: np.ndarray | None
    rows_E: np.ndarray
    types_E: np.ndarray | None
    gold_B2: np.ndarray | None

    def owners(self) -> np.ndarray:
        """Owner of each piece's scores."""
        return np.repeat([item.owner for item in self.items], self.lengths)


def make_passage_batch(items: Sequence[PassageItem]) -> PassageBatch:
    typed = [(item.types, item.types[item.first_E]) for item in items if item.types is not None]
    types_N, types_E = map(np.concatenate, zip(*typed, strict=True)) if typed else (None, None)
    return PassageBatch(
        **join_items(items, "rows_E", "first_E", "last_E", of="rows_E"),
        types_N=types_N,
        types_E=types_E,
        gold_B2=np.array([item.gold for item in items]) if items[0].gold is not None else None,
    )


def best_spans(
    item: PassageItem, logits_L2: np.ndarray, *, most: int, max_pieces: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The best answers of a window: scores (start logit + end logit), and pieces [first, last) of the passage.

    An answer begins at a piece that has its best context in this window, and has at most `max_pieces` pieces. The
    original code looks only among the 20 best starts and the 20 best ends of the window; here all are compared, which
    finds the same best answer or a better one. Of equal scores the first and the shortest come first.
    """
    starts = np.flatnonzero(item.starts_here) + item.offset
    end = len(logits_L2) - 1  # the last [SEP]
    logits_L2 = logits_L2.astype(np.float64)
    spans = starts[:, None] + np.arange(max_pieces)
    scores = np.where(
        spans < end, logits_L2[starts, 0][:, None] + logits_L2[np.minimum(spans, end), 1], -np.inf
    ).ravel()
    chosen = np.argsort(-scores, kind="stable")[:most]
    chosen = chosen[scores[chosen] > -np.inf]
    first = starts[chosen // max_pieces] - item.offset + item.first
    return scores[chosen], first, first + chosen % max_pieces + 1
