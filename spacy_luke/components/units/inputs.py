"""From mentions of a Doc, alone or in pairs, to what is encoded.

M mentions of a Doc, U units (a mention to be typed, a pair to be related), K mentions of a unit, B windows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from spacy.tokens import Doc

from ...batch.allowed import AllowedClasses
from ...batch.entities import EntityItem
from ...batch.marked import mark_window
from ...batch.windows import Document, plan_windows
from ...bridge.documents import mention_edges, read_document
from ...text.segments import CutText, TextCutter, WordCutter
from ...text.tokenizer import PieceTokenizer
from ..known_entities import KnownEntities, KnownFinder

_PAIR = 2  # mentions
_PARTS = (4, 8)  # of a window, at whose multiples others begin: the farther apart a pair is, the more of them


@dataclass(frozen=True)
class Input:
    """What a task gives the encoder beside words: for each of the K places of a unit the row of its entity token
    ([MASK], [MASK2]) and, where the text is marked, the piece around its mention. An ERNIE encoder has no such tokens
    (rows is empty), but gets the known entities of the text."""

    tokenizer: PieceTokenizer
    attention: str
    room: int  # pieces of a window without [CLS] and [SEP]
    context: str
    overlap: int
    rows: Sequence[int]
    markers: Sequence[int]
    tokens: int  # entity tokens of a window that are encoded at once, so that memory does not grow with the units
    pairwise: bool = True  # with one_way: entity tokens for each unit; otherwise one for each mention in each place
    known: KnownEntities | None = None
    punctuation_apart: bool = False  # mentions have no pieces of what is attached to their words
    widest: int = 0  # pieces of a window whose mentions do not fit into `room`; 0: there is none
    allowed: AllowedClasses | None = None  # what numbers below -1 stand for in the gold of units with one class


def unit_items(
    task: Input,
    doc: Doc,
    mentions: Sequence[tuple[int, int]],
    units_UK: np.ndarray,
    *,
    owner: int,
    gold: np.ndarray | None = None,
    lost: list[int] | None = None,
) -> Iterator[EntityItem]:
    """What is encoded of a Doc for its units.

    mentions: words [start, end); units_UK: mentions of each unit; gold: of the units. With "full" each unit has a
    window of its own, marked; with "one_way" a window serves all units whose mentions it holds, and pairs that are
    farther apart share windows between these, or of two halves. What none of them holds either, such as pairs of
    several sentences where context is a sentence, gets a window of its own. lost: gets the numbers of units that cannot
    be encoded: a mention without pieces, or mentions that do not fit into a window.
    """
    if not len(units_UK):
        return
    document = read_document(doc, task.tokenizer, punctuation_apart=task.punctuation_apart)
    alone = np.arange(len(units_UK))
    if task.attention == "one_way":
        shared = _Shared(task, document.pieces.ids_N, *_pieces(document, np.array(mentions)), owner, gold)
        windows, rest_U = _shared_windows(document, shared, units_UK)
        far, alone = _halves(shared, units_UK, rest_U)
        served: dict[Stretches, np.ndarray] = {}
        for stretches, held in [*windows, *far]:
            served[stretches] = np.append(served[stretches], held) if stretches in served else held
        for stretches, held in served.items():
            yield from shared.items(stretches, held, units_UK)
    cutter = None
    finder = KnownFinder(task.known, doc, document)
    for u in alone.tolist():
        places = [mentions[m] for m in units_UK[u]]
        if task.attention == "full":
            cutter = cutter or _cutter(task, doc, document)
            text = cutter.cut(places)
        else:
            first_K, last_K = _pieces(document, np.array(places))
            text = CutText(document.pieces.ids_N, (), first_K.tolist(), last_K.tolist())
        limit = _limit(task, document, text, places)
        window = mark_window(text, room=task.room, limit=limit, markers=task.markers)
        if window is None and task.widest > task.room:
            window = mark_window(text, room=task.widest, limit=limit, markers=task.markers)
        if window is None:
            if lost is not None:
                lost.append(u)
            continue
        rows_E, first_E, last_E = np.array(task.rows, dtype=np.int64), np.array(window.first_K), np.array(window.last_K)
        marks_UK = None
        if not task.rows:  # ERNIE: the entities of the text that are in the window, not tokens of the unit
            marks_UK = first_E[None] + 1
            rows_E, first_E = finder.find(places).inside(text.number, window.numbers)
            last_E = first_E
        yield EntityItem(
            owner,
            task.tokenizer.window(window.pieces),
            rows_E,
            first_E + 1,
            last_E + 1,
            np.arange(len(task.rows))[None],
            group=max(len(task.rows), 1) if task.pairwise else 1,
            gold=None if gold is None else gold[u : u + 1],
            number_U=np.array([u]),
            allowed=task.allowed,
            marks_UK=marks_UK,
        )


Stretches = tuple[tuple[int, int], ...]  # pieces of the text that a window has, one stretch behind the other
Held = tuple[Stretches, np.ndarray]  # of a window, and the units that it serves


@dataclass(frozen=True)
class _Shared:
    """Windows of a Doc's pieces that serve several units. first_M, last_M: pieces of the mentions, end exclusive."""

    task: Input
    ids_N: np.ndarray
    first_M: np.ndarray
    last_M: np.ndarray
    owner: int
    gold: np.ndarray | None

    def items(self, stretches: Stretches, held: np.ndarray, units_UK: np.ndarray) -> Iterator[EntityItem]:
        """The window with the entity tokens of its units, as many at once as `tokens` says."""
        task = self.task
        pieces = task.tokenizer.window(np.concatenate([self.ids_N[a:b] for a, b in stretches]))
        most = max(task.tokens // len(task.rows), 1)
        for a in range(0, len(held), most):
            number_U = held[a : a + most]
            token_M, rows, tokens_UK = _tokens(task, units_UK[number_U])
            first_E = self.first_M[token_M]
            offset_E, done = np.zeros_like(first_E), 1  # [CLS]
            for begin, end in stretches:
                offset_E = np.where((begin <= first_E) & (first_E < end), done - begin, offset_E)
                done += end - begin
            yield EntityItem(
                self.owner,
                pieces,
                rows,
                first_E + offset_E,
                self.last_M[token_M] - 1 + offset_E,
                tokens_UK,
                group=len(task.rows) if task.pairwise else 1,
                gold=None if self.gold is None else self.gold[number_U],
                number_U=number_U,
                allowed=task.allowed,
            )


def _shared_windows(document: Document, shared: _Shared, units_UK: np.ndarray) -> tuple[list[Held], np.ndarray]:
    """Windows that serve several units, and the units that none of them holds: those of `plan_windows`, and where a
    unit crosses these, windows at fixed places in between, so that which one reads a unit depends on no other unit."""
    task = shared.task
    windows = plan_windows(document, room=task.room, context=task.context, share=True, overlap=task.overlap)
    first_M, last_M = shared.first_M, shared.last_M
    if not len(windows):
        return [], np.arange(len(units_UK))
    home_M = np.maximum(np.searchsorted(windows.core_start_B, first_M, side="right") - 1, 0)
    holder_U = np.full(len(units_UK), -1)
    for home_U in (home_M[units_UK[:, k]] for k in reversed(range(units_UK.shape[1]))):
        begins = first_M[units_UK] >= windows.start_B[home_U][:, None]
        ends = last_M[units_UK] <= windows.end_B[home_U][:, None]
        holder_U[(begins & ends & (last_M > first_M)[units_UK]).all(1)] = -2
        holder_U = np.where(holder_U == -2, home_U, holder_U)
    start_B, end_B = windows.start_B, windows.end_B
    total, begin_U = len(shared.ids_N), first_M[units_UK].min(1)
    size_U = last_M[units_UK].max(1) - begin_U
    for part in _PARTS if task.context == "document" else ():
        starts_U = _fixed_starts(begin_U, size_U, size=task.room, step=task.room // part, total=total)
        between_U = (holder_U < 0) & (last_M > first_M)[units_UK].all(1) & (size_U <= task.room - 2 * task.room // part)
        between_U &= (starts_U <= begin_U) & (begin_U + size_U <= starts_U + task.room)
        starts, place_U = np.unique(starts_U[between_U], return_inverse=True)
        holder_U[between_U] = len(start_B) + place_U.reshape(-1)
        start_B, end_B = np.append(start_B, starts), np.append(end_B, np.minimum(starts + task.room, total))
    held: list[Held] = [
        (((int(start_B[b]), int(end_B[b])),), np.flatnonzero(holder_U == b))
        for b in np.unique(holder_U[holder_U >= 0]).tolist()
    ]
    return held, np.flatnonzero(holder_U < 0)


def _halves(shared: _Shared, units_UK: np.ndarray, rest_U: np.ndarray) -> tuple[list[Held], np.ndarray]:
    """Of pairs that are farther apart than half of a window, windows of two halves, each around a mention and at a
    fixed place, so that many pairs share them, and which one reads a pair depends on no other pair. And the units that
    these do not hold either."""
    task, half = shared.task, shared.task.room // 2
    if task.context != "document" or units_UK.shape[1] != _PAIR or half < 1:
        return [], rest_U
    size_M = shared.last_M - shared.first_M
    start_M = _fixed_starts(shared.first_M, size_M, size=half, step=half // 2, total=len(shared.ids_N))
    fits_M = (size_M > 0) & (start_M <= shared.first_M) & (shared.last_M <= start_M + half)
    held: dict[tuple[int, int], list[int]] = {}
    alone: list[int] = []
    for u in rest_U.tolist():
        one, two = units_UK[u]
        if fits_M[one] and fits_M[two]:
            a, b = sorted((int(start_M[one]), int(start_M[two])))
            held.setdefault((a, b), []).append(u)
        else:
            alone.append(u)
    windows: list[Held] = []
    for (a, b), units in held.items():
        ends = [min(x + half, len(shared.ids_N)) for x in (a, b)]
        stretches = ((a, ends[0]), (b, ends[1])) if b > ends[0] else ((a, ends[1]),)
        windows.append((stretches, np.array(units)))
    return windows, np.array(alone, dtype=np.int64)


def _fixed_starts(begin: np.ndarray, length: np.ndarray, *, size: int, step: int, total: int) -> np.ndarray:
    """Where windows of `size` pieces begin that have what they are for nearly in their middle: multiples of step."""
    step = max(step, 1)
    middle = begin - (size - length) // 2
    starts: np.ndarray = np.clip((middle + step // 2) // step * step, 0, max(total - size, 0))
    return starts


def _tokens(task: Input, units_UK: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entity tokens of units that share a window: the mention of each, its row, and those that each unit reads."""
    if task.pairwise:
        tokens_UK = np.arange(units_UK.size).reshape(units_UK.shape)
        return units_UK.reshape(-1), np.tile(np.array(task.rows), len(units_UK)), tokens_UK
    mentions: list[np.ndarray] = []
    rows, tokens, held = [], [], 0
    for k, row in enumerate(task.rows):
        some, index_U = np.unique(units_UK[:, k], return_inverse=True)
        tokens.append(index_U.reshape(-1) + held)
        mentions.append(some)
        rows.append(np.full(len(some), row))
        held += len(some)
    return np.concatenate(mentions), np.concatenate(rows), np.stack(tokens, 1)


def _pieces(document: Document, mentions_M2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First piece of each mention, and one past its last."""
    return document.pieces.of_mentions(*mentions_M2.T)


def _cutter(task: Input, doc: Doc, document: Document) -> TextCutter | WordCutter:
    if doc.has_unknown_spaces:
        return WordCutter(document.pieces)
    edges = mention_edges(doc, punctuation_apart=task.punctuation_apart)
    return TextCutter(task.tokenizer, document.pieces, doc.text, *edges)


def _limit(task: Input, document: Document, text: CutText, places: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Pieces [first, last) of the cut text that context may come from."""
    if task.context == "document":
        return 0, len(text)
    sentence_W = document.sentence_W
    low = min(sentence_W[start] for start, _ in places)
    high = max(sentence_W[end - 1] for _, end in places)
    begin, end = np.searchsorted(sentence_W, low), np.searchsorted(sentence_W, high, side="right") - 1
    pieces = document.pieces
    return text.number(int(pieces.first_W[begin])), text.number(int(pieces.last_W[end]))
