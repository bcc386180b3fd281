"""Batches of windows with entity tokens: every unit comes out once, reading the tokens that it asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.batch.batches import batch_items
from spacy_luke.batch.entities import EntityItem, make_entity_batch


@st.composite
def items(draw, *, gold="classes", group=1):
    """Windows whose pieces, rows and places tell where they come from."""
    made = []
    for owner in range(draw(st.integers(1, 6))):
        n, tokens = draw(st.integers(3, 12)), group * draw(st.integers(1, 4))
        units = draw(st.integers(0, 5))
        chosen = np.random.default_rng(owner)
        first = chosen.integers(0, n, tokens)
        made.append(
            EntityItem(
                owner,
                1000 * owner + np.arange(n),
                100 * owner + np.arange(tokens),
                first,
                np.minimum(first + chosen.integers(0, 3, tokens), n - 1),
                chosen.integers(0, tokens, (units, 2)),
                group=group,
                gold={
                    "none": None,
                    "classes": chosen.integers(-1, 4, units),
                    "labels": chosen.integers(0, 2, (units, 3)).astype(np.float32),
                }[gold],
                types=np.full(n, owner % 2) if draw(st.booleans()) else None,
                number_U=7 * np.arange(units) if draw(st.booleans()) else None,
            )
        )
    return made


def told(item, unit):
    """What a unit reads, by the caller's numbers."""
    reads = []
    for token in item.units_UK[unit]:
        first, last = item.first_E[token], item.last_E[token]
        reads.append((int(item.rows_E[token]), tuple(item.pieces[first : last + 1].tolist())))
    number = unit if item.number_U is None else int(item.number_U[unit])
    return item.owner, number, tuple(reads), None if item.gold is None else tuple(np.ravel(item.gold[unit]).tolist())


def told_by(batch):
    first, last = batch.rows(batch.first_E), batch.rows(batch.last_E)
    assert len(batch.owner_U()) == len(batch.number_U()) == len(batch.units_UK)
    for u, tokens in enumerate(batch.units_UK.tolist()):
        reads = [(int(batch.rows_E[e]), tuple(batch.pieces_N[first[e] : last[e] + 1].tolist())) for e in tokens]
        gold = None if batch.gold is None else tuple(np.ravel(batch.gold[u]).tolist())
        yield int(batch.owner_U()[u]), int(batch.number_U()[u]), tuple(reads), gold


@pytest.mark.parametrize("gold", ["none", "classes", "labels"])
@given(data=st.data(), size=st.sampled_from([1, 15, 40, 1000]), group=st.sampled_from([1, 2]))
def test_batches_lose_nothing(gold, data, size, group):
    made = data.draw(items(gold=gold, group=group))
    batches = list(batch_items(iter(made), size=size, make=make_entity_batch))
    assert sorted(unit for batch in batches for unit in told_by(batch)) == sorted(
        told(item, u) for item in made for u in range(len(item.units_UK))
    )
    for batch in batches:
        assert sum(batch.lengths) == len(batch.pieces_N)
        assert sum(batch.counts) == len(batch.rows_E)
        assert batch.group == group
        assert all(count % group == 0 for count in batch.counts)  # no group is divided, or shared by two windows
        cost = sum(item.cost for item in batch.items)
        assert cost <= size or len(batch.items) == 1
        if batch.types_N is not None:
            expected = [np.zeros(len(x.pieces)) if x.types is None else x.types for x in batch.items]
            assert np.array_equal(batch.types_N, np.concatenate(expected))
        else:
            assert all(item.types is None for item in batch.items)


def test_items_of_two_kinds_are_not_mixed():
    made = [
        EntityItem(0, np.arange(4), np.arange(2), np.ones(2, int), np.ones(2, int), np.array([[0, 1]]), group=group)
        for group in (1, 2)
    ]
    with pytest.raises(AssertionError):
        make_entity_batch(made)


def test_nothing():
    assert list(batch_items([], size=10, make=make_entity_batch)) == []
