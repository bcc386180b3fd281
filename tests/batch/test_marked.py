"""Windows around mentions, with markers, against a twin that writes markers into a list of pieces."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.batch.marked import mark_window
from spacy_luke.text.segments import CutText

MARKERS = [1, 2, 3]


def text_of(size, edges):
    """A text of the pieces 10, 11, ..., cut around mentions [first, last)."""
    return CutText(np.arange(10, 10 + size), (), [a for a, _ in edges], [b for _, b in edges])


def context_by_hand(own, limit, room):
    """One piece after the other: the shorter side first, up to half of what is left, then the other side (a window's
    rule for sentences, LUKE, section 4.3)."""
    (first, last), half = own, (room - (own[1] - own[0])) // 2
    left, right = first - limit[0], limit[1] - last
    for side, most in (("left", half), ("right", room)) if left < right else (("right", half), ("left", room)):
        while most and last - first < room and (first > limit[0] if side == "left" else last < limit[1]):
            first, last, most = (first - 1, last, most - 1) if side == "left" else (first, last + 1, most - 1)
    return first, last


def window_by_hand(size, edges, *, room, limit, markers):
    """The window's pieces, markers among them, and the mentions; each marker knows how it stands among its
    neighbours."""
    room -= 2 * len(markers)
    low, high = min(a for a, _ in edges), max(b for _, b in edges)
    limit = (min(low, limit[0]), max(high, limit[1]))
    if any(a >= b for a, b in edges):
        return None
    if high - low <= room:
        stretches = [context_by_hand((low, high), limit, room)]
    else:
        if len(edges) != 2 or (edges[0][0] < edges[1][1] and edges[1][0] < edges[0][1]):
            return None
        one, two = sorted(edges)
        need = (one[1] - one[0], two[1] - two[0])
        if sum(need) > room:
            return None
        share = room // 2
        share = need[0] if share < need[0] else room - need[1] if room - share < need[1] else share
        stretches = [
            context_by_hand(one, (limit[0], two[0]), share),
            context_by_hand(two, (one[1], limit[1]), room - share),
        ]
    tokens = []  # ("piece", i), ("begin", k), ("end", k)
    for begin, end in stretches:
        for i in range(begin, end + 1):
            ends = [k for k, (_, b) in enumerate(edges) if b == i and edges[k][0] >= begin]
            begins = [k for k, (a, _) in enumerate(edges) if a == i and edges[k][1] <= end]
            tokens += [("end", k) for k in sorted(ends, key=lambda k: (edges[k][1] - edges[k][0], -k))]
            tokens += [("begin", k) for k in sorted(begins, key=lambda k: (edges[k][0] - edges[k][1], k))]
            tokens += [("piece", i)] if i < end else []
    if not markers:
        pieces = [i for kind, i in tokens if kind == "piece"]
        return [10 + i for i in pieces], [(pieces.index(a), pieces.index(b - 1)) for a, b in edges]
    ids = [10 + i if kind == "piece" else markers[i] for kind, i in tokens]
    return ids, [(tokens.index(("begin", k)), tokens.index(("end", k))) for k in range(len(edges))]


def check(size, edges, *, room, limit=None, markers=()):
    limit = (0, size) if limit is None else limit
    markers = list(markers)[: len(edges)]
    found = mark_window(text_of(size, edges), room=room, limit=limit, markers=markers)
    expected = window_by_hand(size, edges, room=room, limit=limit, markers=markers)
    assert (found is None) == (expected is None), (found, expected)
    if found is None:
        return None
    pieces, first_K, last_K = found.pieces, found.first_K, found.last_K
    assert found.numbers.tolist() == [x - 10 if x >= 10 else -1 for x in pieces.tolist()]
    assert pieces.tolist() == expected[0]
    assert list(zip(first_K, last_K)) == expected[1]
    assert len(pieces) <= room
    for k, (a, b) in enumerate(edges):  # whatever stands around it, a mention is read whole, in its own markers
        inside = pieces[first_K[k] : last_K[k] + 1].tolist()
        assert [x for x in inside if x >= 10] == list(range(10 + a, 10 + b))
        assert not markers or inside[0] == inside[-1] == markers[k]
    return pieces.tolist()


spans = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted).map(tuple)


@given(
    size=st.integers(30, 60),
    edges=st.lists(spans, min_size=1, max_size=3),
    room=st.integers(1, 70),
    limit=st.tuples(st.integers(0, 30), st.integers(0, 60)),
    is_marked=st.booleans(),
)
def test_any_mentions(size, edges, room, limit, is_marked):
    limit = (limit[0], min(size, max(limit)))
    check(size, edges, room=room, limit=limit, markers=MARKERS if is_marked else ())


@given(st.integers(0, 40), st.integers(1, 6), st.integers(0, 40), st.integers(1, 6), st.integers(6, 30), st.booleans())
def test_mentions_far_apart(before, own, between, other, room, swap):
    """Two stretches: both mentions, nothing read twice, and the window as full as it can be."""
    edges = [(before, before + own), (before + own + between, before + own + between + other)]
    edges = edges[::-1] if swap else edges
    size = before + own + between + other + 5
    pieces = check(size, edges, room=room, markers=MARKERS)
    assert (pieces is None) == (own + other + 4 > room)
    if pieces is not None:
        assert len(pieces) == min(room, size + 4)
        assert len(set(pieces)) == len(pieces) - 2
        breaks = [a for a, b in zip(plain(pieces), plain(pieces)[1:]) if b != a + 1]
        assert len(breaks) <= (own + between + other + 4 > room)


def plain(pieces):
    return [x for x in pieces if x >= 10]


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([(2, 4)], [10, 11, 1, 12, 13, 1, 14, 15, 16]),
        ([(2, 4), (4, 5)], [10, 11, 1, 12, 13, 1, 2, 14, 2, 15, 16]),  # side by side
        ([(4, 5), (2, 4)], [10, 11, 2, 12, 13, 2, 1, 14, 1, 15, 16]),  # the tail first
        ([(1, 6), (2, 4)], [10, 1, 11, 2, 12, 13, 2, 14, 15, 1, 16]),  # one inside the other
        ([(2, 4), (1, 6)], [10, 2, 11, 1, 12, 13, 1, 14, 15, 2, 16]),
        ([(1, 4), (1, 2)], [10, 1, 2, 11, 2, 12, 13, 1, 14, 15, 16]),  # with one border in common
        ([(3, 4), (1, 4)], [10, 2, 11, 12, 1, 13, 1, 2, 14, 15, 16]),
        ([(1, 4), (3, 6)], [10, 1, 11, 12, 2, 13, 1, 14, 15, 2, 16]),  # crossing
        ([(2, 4), (2, 4)], [10, 11, 1, 2, 12, 13, 2, 1, 14, 15, 16]),  # equal
        ([(0, 1), (6, 7)], [1, 10, 1, 11, 12, 13, 14, 15, 2, 16, 2]),  # at both ends of the text
        ([(0, 7)], [1, 10, 11, 12, 13, 14, 15, 16, 1]),
    ],
)
def test_markers(edges, expected):
    assert check(7, edges, room=40, markers=MARKERS) == expected


def test_room_exactly_full():
    for edges in ([(3, 8)], [(3, 5), (6, 8)]):
        size = 5 + 2 * len(edges)
        assert plain(check(20, edges, room=size, markers=MARKERS)) == [13, 14, 15, 16, 17]
        assert len(check(20, edges, room=size + 1, markers=MARKERS)) == size + 1
    assert check(20, [(3, 8)], room=6, markers=MARKERS) is None
    assert check(20, [(3, 5), (7, 9)], room=8, markers=MARKERS) == [1, 13, 14, 1, 2, 17, 18, 2]
    assert check(20, [(3, 5), (7, 9)], room=7, markers=MARKERS) is None
    assert check(20, [(3, 6), (5, 9)], room=9, markers=MARKERS) is None  # overlapping, together too long
    assert check(20, [(3, 5), (5, 7)], room=4) == [13, 14, 15, 16]
    assert check(20, [(0, 1), (9, 10), (19, 20)], room=19) is None  # three are never divided
    assert check(20, [(0, 20)], room=20) == list(range(10, 30))


def test_limits():
    assert check(20, [(5, 7)], room=40, limit=(4, 9)) == [14, 15, 16, 17, 18]
    assert check(20, [(5, 7)], room=4, limit=(0, 8)) == [14, 15, 16, 17]
    assert check(20, [(5, 7)], room=40, limit=(6, 6)) == [15, 16]  # a mention that reaches out of it is read whole
    assert check(20, [(2, 3), (15, 16)], room=8, limit=(2, 16)) == [12, 13, 14, 15, 22, 23, 24, 25]


@pytest.mark.parametrize("edges", [[(3, 3)], [(3, 5), (4, 4)], [(0, 0), (1, 2)]])
def test_mentions_without_pieces(edges):
    assert check(9, edges, room=40, markers=MARKERS) is None


def test_numbers_of_a_cut_text():
    """Places are those of the text as it is after the cuts."""
    text = CutText(np.arange(10, 20), [(2, 3, np.array([90, 91, 92])), (5, 6, np.array([95]))], [2, 7], [4, 9])
    whole = [10, 11, 90, 91, 92, 13, 14, 95, 16, 17, 18, 19]
    assert text.ids(0, len(text)).tolist() == whole
    for a, b in combinations(range(len(whole) + 1), 2):
        assert text.ids(a, b).tolist() == whole[a:b]
    assert [text.number(p) for p in range(11)] == [0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12]
    window = mark_window(text, room=12, limit=(1, 11), markers=[1, 2])
    assert window.pieces.tolist() == [1, 90, 91, 1, 92, 13, 14, 2, 95, 16, 2, 17]
    assert (window.first_K, window.last_K) == ([0, 7], [3, 10])
    assert window.numbers.tolist() == [-1, 2, 3, -1, 4, 5, 6, -1, 7, 8, -1, 9]
