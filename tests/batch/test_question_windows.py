"""Windows of passages, and answers from their scores, against plain twins of the original's rules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.batch.passages import PassageItem, best_context, best_spans, make_frame, stride_windows


def plain_context(windows, piece):
    """The original's rule for one piece."""
    best = None
    for b, (first, last) in enumerate(windows):
        if first <= piece < last:
            context = min(piece - first, last - 1 - piece) + 0.01 * (last - first)
            if best is None or context > best[0]:
                best = (context, b)
    return best[1]


@given(st.integers(0, 90), st.integers(1, 40), st.integers(1, 40))
def test_windows(total, room, stride):
    windows = stride_windows(total, room=room, stride=stride)
    assert all(0 < last - first <= room for first, last in windows)
    assert {i for first, last in windows for i in range(first, last)} == set(range(total))
    assert [first for first, _ in windows] == [i * min(stride, room) for i in range(len(windows))]
    assert sum(last == total for _, last in windows) == min(len(windows), 1)
    assert best_context(windows, total).tolist() == [plain_context(windows, i) for i in range(total)]


def make_item(length, offset, starts_here):
    none = np.empty(0, np.int64)
    return PassageItem(0, np.arange(length), None, offset, 100, np.array(starts_here), none, none, none)


def plain_spans(item, logits, *, max_pieces, beam=None):
    """All answers of a window, or those between the best `beam` starts and ends, as the original code looks for
    them."""
    starts, ends = (sorted(range(len(logits)), key=lambda k: -logits[k, i])[:beam] for i in range(2))
    places = range(item.offset, len(logits) - 1)
    return {
        (start - item.offset + 100, end - item.offset + 101): float(logits[start, 0]) + float(logits[end, 1])
        for start in starts
        for end in ends
        if start in places and end in places and item.starts_here[start - item.offset]
        if start <= end < start + max_pieces
    }


@given(st.integers(1, 12), st.integers(1, 4), st.integers(1, 6), st.integers(0, 10**6))
def test_best_spans(length, offset, max_pieces, seed):
    random = np.random.default_rng(seed)
    item = make_item(offset + length + 1, offset, random.random(length) < 0.7)
    logits = random.normal(scale=3, size=(len(item.pieces), 2)).astype(np.float32)
    scores, first, last = best_spans(item, logits, most=8, max_pieces=max_pieces)
    expected = plain_spans(item, logits, max_pieces=max_pieces)
    found = dict(zip(zip(first.tolist(), last.tolist()), scores.tolist(), strict=True))
    assert len(found) == len(scores) == min(8, len(expected))
    assert all(expected[place] == score for place, score in found.items())
    assert sorted(found.values(), reverse=True) == sorted(expected.values(), reverse=True)[:8]
    beam = plain_spans(item, logits, max_pieces=max_pieces, beam=5)
    if beam:  # what the original looks at is never better
        assert max(beam.values()) <= scores[0]


def test_equal_scores_are_in_order():
    item = make_item(5, 1, [True] * 3)
    _, first, last = best_spans(item, np.zeros((5, 2), np.float32), most=10, max_pieces=2)
    assert list(zip(first.tolist(), last.tolist())) == [(100, 101), (100, 102), (101, 102), (101, 103), (102, 103)]


@pytest.mark.parametrize(
    ("double", "token_types", "pieces", "types"),
    [
        (True, 1, [0, 5, 6, 2, 2, 8, 9, 2], None),
        (True, 2, [0, 5, 6, 2, 2, 8, 9, 2], None),
        (False, 2, [0, 5, 6, 2, 8, 9, 2], [0, 0, 0, 0, 1, 1, 1]),
        (False, 1, [0, 5, 6, 2, 8, 9, 2], None),
        (False, 0, [0, 5, 6, 2, 8, 9, 2], None),
    ],
)
def test_frame(double, token_types, pieces, types):
    """Two separators and no types in RoBERTa's input, one and types in BERT's."""
    frame = make_frame(np.array([5, 6]), cls_id=0, sep_id=2, double=double, token_types=token_types)
    got, got_types = frame.window(np.array([8, 9]))
    assert got.tolist() == pieces
    assert (None if got_types is None else got_types.tolist()) == types
