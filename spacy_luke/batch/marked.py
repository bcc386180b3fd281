"""A window around mentions, with markers: the paper's input of typing and relation classification.

K mentions; numbers of pieces are those of a `CutText`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..text.segments import CutText
from .windows import with_context

Stretch = tuple[int, int]


@dataclass(frozen=True)
class MarkedWindow:
    """pieces: (n,), markers included, [CLS] and [SEP] not; first_K, last_K: of each mention, both inclusive, markers
    included; numbers: (n,) which piece of the text each is, -1 of a marker; they ascend."""

    pieces: np.ndarray
    first_K: list[int]
    last_K: list[int]
    numbers: np.ndarray


def mark_window(text: CutText, *, room: int, limit: Stretch, markers: Sequence[int]) -> MarkedWindow | None:
    """The pieces around mentions, as many as fit, each mention between two markers of its own (LUKE, sections 4.1,
    4.2).

    room: pieces of a window, [CLS] and [SEP] not counted. limit: pieces [first, last) that context may come from; the
    mentions lie inside. markers: a piece for each mention, or none at all. Mentions that are farther apart than a
    window are read in two stretches, one around each.

    RETURNS: None where the mentions do not fit into a window, or one has no pieces.
    """
    edges = list(zip(text.first_K, text.last_K, strict=True))
    if any(first >= last for first, last in edges):
        return None
    stretches = _stretches(edges, limit, room - 2 * len(markers))
    if stretches is None:
        return None
    parts, numbers, first_K, last_K, done = [], [], [0] * len(edges), [0] * len(edges), 0
    for begin, end, members in stretches:
        at = begin
        for piece, is_end, k in _edges_in_order(edges, members):
            parts.append(text.ids(at, piece))
            numbers.append(np.arange(at, piece))
            done, at = done + piece - at, piece
            if markers:
                parts.append(np.array([markers[k]]))
                numbers.append(np.array([-1]))
                done += 1
            if is_end:
                last_K[k] = done - 1
            else:
                first_K[k] = done - len(markers[:1])
        parts.append(text.ids(at, end))
        numbers.append(np.arange(at, end))
        done += end - at
    return MarkedWindow(np.concatenate(parts), first_K, last_K, np.concatenate(numbers))


def _stretches(edges: Sequence[Stretch], limit: Stretch, room: int) -> list[tuple[int, int, list[int]]] | None:
    """Pieces [first, last) that are read, and the mentions in them."""
    own = (min(first for first, _ in edges), max(last for _, last in edges))
    limit = (min(limit[0], own[0]), max(limit[1], own[1]))
    if own[1] - own[0] <= room:
        return [(*with_context(own, limit, room), list(range(len(edges))))]
    if len(edges) != 2:
        return None
    one, two = sorted(range(2), key=lambda k: edges[k])
    sizes = [edges[k][1] - edges[k][0] for k in (one, two)]
    if sum(sizes) > room or edges[one][1] > edges[two][0]:
        return None
    left = max(sizes[0], min(room // 2, room - sizes[1]))
    return [
        (*with_context(edges[one], (limit[0], edges[two][0]), left), [one]),
        (*with_context(edges[two], (edges[one][1], limit[1]), room - left), [two]),
    ]


def _edges_in_order(edges: Sequence[Stretch], members: Sequence[int]) -> list[tuple[int, bool, int]]:
    """(piece, whether a mention ends before it or begins with it, which). At one place mentions end before others
    begin, and the longer one is outside."""
    begins = [((edges[k][0], 1, edges[k][0] - edges[k][1], k), (edges[k][0], False, k)) for k in members]
    ends = [((edges[k][1], 0, edges[k][1] - edges[k][0], -k), (edges[k][1], True, k)) for k in members]
    return [edge for _, edge in sorted(begins + ends)]
