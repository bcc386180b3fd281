"""Batches hold every window and span once, in arrays made from lengths."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.batch.batches import SpanItem, batch_items, make_batch, split_spans
from spacy_luke.batch.windows import enumerate_spans, plan_windows
from tests.batch.documents import documents


def items_of(owner, document, *, budget=1000, gold=False):
    windows = plan_windows(document, room=12, context="document", share=False, overlap=4)
    spans = enumerate_spans(document, windows)
    for k in range(len(windows)):
        (own,) = np.nonzero(spans.window_E == k)
        if len(own):
            pieces = np.concatenate([[0], document.pieces.ids_N[windows.start_B[k] : windows.end_B[k]], [2]])
            classes = (own + owner) % 4 - 1 if gold else None
            yield SpanItem(owner, pieces, spans, int(own[0]), int(own[-1]) + 1, budget, classes)


def all_items(texts, **kwargs):
    return [item for owner, text in enumerate(texts) for item in items_of(owner, text, **kwargs)]


def described(batches):
    """Each span of the batches: owner, words, the ids of its pieces found through the packed rows, and its gold."""
    found = Counter()
    for batch in batches:
        first, last = batch.rows(batch.first_E), batch.rows(batch.last_E)
        for e, owner in enumerate(batch.owner_E()):
            pieces = tuple(batch.pieces_N[first[e] : last[e] + 1].tolist())
            gold = None if batch.gold_E is None else int(batch.gold_E[e])
            found[int(owner), int(batch.start_E[e]), int(batch.end_E[e]), pieces, gold] += 1
    return found


def expected_spans(texts, gold):
    found = Counter()
    for item in all_items(texts, gold=gold):
        for n, e in enumerate(range(item.first, item.last)):
            spans = item.spans
            pieces = tuple(item.pieces[spans.first_E[e] : spans.last_E[e] + 1].tolist())
            label = None if item.gold_E is None else int(item.gold_E[n])
            found[item.owner, int(spans.start_E[e]), int(spans.end_E[e]), pieces, label] += 1
    return found


@given(st.lists(documents(), max_size=4), st.sampled_from([1, 40, 200]), st.sampled_from([1, 2, 32]), st.booleans())
def test_batches_lose_nothing(texts, size, buffer, gold):
    items = all_items(texts, gold=gold)
    batches = list(batch_items(iter(items), size=size, make=make_batch, buffer=buffer))
    assert described(batches) == expected_spans(texts, gold)
    assert sorted(map(id, items)) == sorted(id(item) for batch in batches for item in batch.items)
    for batch in batches:
        assert len(batch.items) == 1 or sum(item.cost for item in batch.items) <= size
        assert list(batch.lengths) == sorted(batch.lengths, reverse=True)
        assert list(batch.lengths) == [len(item.pieces) for item in batch.items]
        assert batch.pieces_N.tolist() == [p for item in batch.items for p in item.pieces.tolist()]
        assert list(batch.counts) == [item.last - item.first for item in batch.items]
        assert batch.window_E().tolist() == [k for k, n in enumerate(batch.counts) for _ in range(n)]
        assert batch.budget_B.tolist() == [item.budget for item in batch.items]


@given(documents(), st.sampled_from([1, 5, 128]))
def test_passes_of_a_window_join_to_the_whole(document, most):
    """Items of one window, cut by `split_spans`, hold all of its spans."""
    items = [
        SpanItem(0, item.pieces, item.spans, run.start, run.stop, 10, None)
        for item in items_of(0, document)
        for run in split_spans(item.first, item.last, most=most)
    ]
    assert described(batch_items(items, size=100, make=make_batch)) == expected_spans([document], False)


def test_reading_ahead_is_bounded():
    """With a buffer of two batches, no more than about two batches' items are taken before one is given."""
    from tests.batch.documents import simple_document

    taken = []

    def stream():
        for item in all_items([simple_document([[1] * 6] * 400)]):
            taken.append(item)
            yield item

    batches = batch_items(stream(), size=100, make=make_batch, buffer=2)
    first = next(batches)
    assert len(first.items) > 1
    assert sum(item.cost for item in taken) <= 2 * 100 + taken[0].cost
    assert len(taken) < 20
    assert sum(len(batch.items) for batch in batches) + len(first.items) == len(taken) == 400


def test_cost_counts_spans_within_the_budget():
    from tests.batch.documents import simple_document

    (item,) = all_items([simple_document([[1] * 4])])
    assert item.cost == 6 + 10
    (item,) = all_items([simple_document([[1] * 4])], budget=3)
    assert item.cost == 6 + 3


def test_no_items():
    assert list(batch_items([], size=10, make=make_batch)) == []


@pytest.mark.parametrize("most", [1, 2, 3, 7, 128])
@pytest.mark.parametrize("count", [1, 2, 5, 6, 7, 100, 127, 128, 129, 256, 257, 1000])
def test_split_spans_equals_the_reference(count, most):
    """k = ceil(n / most) chunks of ceil(n / k), as slices; slices beyond the end are empty."""
    spans = list(range(10, 10 + count))
    chunks = math.ceil(count / most)
    size = math.ceil(count / chunks)
    reference = [spans[c * size : (c + 1) * size] for c in range(chunks)]
    assert [list(run) for run in split_spans(10, 10 + count, most=most)] == [part for part in reference if part]


def test_split_spans_without_limit():
    assert split_spans(3, 5000, most=None) == [range(3, 5000)]


def test_make_batch_checks_itself():
    from tests.batch.documents import simple_document

    item = all_items([simple_document([[1, 2]])])[0]
    batch = make_batch([item, item])
    assert batch.rows(batch.first_E).tolist() == [1, 1, 2, 6, 6, 7]
    with pytest.raises(AssertionError):
        type(batch)(**{**vars(batch), "lengths": [1, 2]})
