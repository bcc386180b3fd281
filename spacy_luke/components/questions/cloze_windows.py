"""What `luke_cloze` encodes: from a Doc, a query and its candidates to windows.

C candidates, E entity tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...annotations import PLACEHOLDER, Query
from ...batch.entities import EntityItem
from ...batch.passages import make_frame, stride_windows
from ...batch.windows import with_context
from ...text.passages import encode_query, mark_candidates
from ...text.tokenizer import PieceTokenizer

_HIGHLIGHT = "@highlight"  # what stands before each highlight of a ReCoRD passage

Place = tuple[int, int]  # characters [start, end)


@dataclass(frozen=True)
class ClozeInput:
    """What windows are made by. window: pieces of one, all included; mask_row: of [MASK], which all entity tokens
    are."""

    tokenizer: PieceTokenizer
    token_types: int
    window: int
    stride: int
    mask_row: int
    highlight: int
    placeholder: int
    marker: int
    most_query: int | None = None  # pieces of a query, which is cut there


def query_items(
    task: ClozeInput,
    text: str,
    query: Query,
    candidates: Sequence[Place],
    *,
    owner: int,
    gold: np.ndarray | None = None,
    lost: list[int] | None = None,
) -> Iterator[EntityItem]:
    """The windows of a query, each with the placeholder and the candidates that it holds whole: the paper's input
    (examples/legacy/entity_span_qa/utils.py).

    gold: whether each candidate is right. A candidate that is longer than what neighbouring windows share has one of
    its own. lost: gets the candidates that no window can hold. Raises ValueError for a query that is too long.
    """
    if not candidates:
        return
    asked, gap = _read_query(task, query)
    passage = mark_candidates(
        task.tokenizer, text, candidates, marker=task.marker, highlight=_HIGHLIGHT, highlight_piece=task.highlight
    )
    frame = make_frame(
        asked,
        cls_id=task.tokenizer.cls_id,
        sep_id=task.tokenizer.sep_id,
        double=task.tokenizer.doubles_sep,
        token_types=task.token_types,
    )
    total, room = len(passage.ids_N), task.window - len(frame.head) - 1
    windows = stride_windows(total, room=room, stride=task.stride)
    held = [np.flatnonzero((passage.first_C >= a) & (passage.last_C <= b)) for a, b in windows]
    alone = set(range(len(candidates))).difference(*(x.tolist() for x in held))
    for c in sorted(alone):
        own = (int(passage.first_C[c]), int(passage.last_C[c]))
        if own[1] - own[0] <= room:
            windows.append(with_context(own, (0, total), room))
            held.append(np.array([c]))
        elif lost is not None:
            lost.append(c)
    for (first, last), some in zip(windows, held):
        if not len(some):
            continue
        pieces, types = frame.window(passage.ids_N[first:last])
        shift = len(frame.head) - first
        units = np.arange(1, len(some) + 1)
        yield EntityItem(
            owner,
            pieces,
            np.full(len(some) + 1, task.mask_row),
            np.concatenate([[gap], passage.first_C[some] + shift]),
            np.concatenate([[gap], passage.last_C[some] + shift - 1]),
            np.stack([np.zeros_like(units), units], 1),
            gold=None if gold is None else gold[some],
            types=types,
            number_U=some,
        )


def _read_query(task: ClozeInput, query: Query) -> tuple[np.ndarray, int]:
    """Pieces of a query, and the placeholder's place in a window."""
    text = query["query"]
    if text.count(PLACEHOLDER) != 1:
        raise ValueError(f"A query must have {PLACEHOLDER} exactly once, but it is {text!r}.")
    asked, place = encode_query(task.tokenizer, text, placeholder=PLACEHOLDER, piece=task.placeholder)
    if task.most_query is not None and len(asked) > task.most_query:
        if place >= task.most_query:  # else nothing would be asked: the last piece that is kept is the gap
            asked, place = np.append(asked[: task.most_query - 1], asked[place]), task.most_query - 1
        asked = asked[: task.most_query]
    if len(asked) > (most := (task.window - 4) // 2):
        raise ValueError(
            f"The query {query.get('id', '')!r}, {text[:80]!r}, has {len(asked)} pieces, but it may have {most}, half "
            "of a window. Shorten it."
        )
    return asked, place + 1
