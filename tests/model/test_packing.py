"""Groups of windows that share an attention call."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.model.packing import (
    ENTITY_WASTE,
    choose_groups,
    entity_rows,
    pack,
    pack_pairs,
    split_rows,
    tolerated_waste,
    word_rows,
)

CPU = torch.device("cpu")
lengths_of = st.lists(st.integers(1, 9), max_size=12)


@given(lengths_of, st.sampled_from([0.0, 0.1, 0.25, 1.0, 99.0]))
def test_groups_cover_all_windows_within_the_waste(lengths, waste):
    groups = choose_groups(lengths, waste=waste)
    assert [i for first, last in groups for i in range(first, last)] == list(range(len(lengths)))
    for first, last in groups:
        part = lengths[first:last]
        assert part
        assert max(part) * len(part) <= (1 + waste) * sum(part) + 1e-9


def test_equal_neighbours_share_a_call_without_waste():
    assert choose_groups([4, 4, 4, 7, 7, 4], waste=0.0) == [(0, 3), (3, 5), (5, 6)]
    with torch.no_grad():
        assert tolerated_waste(CPU) == 0.0
    assert tolerated_waste(CPU) == tolerated_waste(torch.device("cuda")) == 0.25


@given(lengths_of, st.sampled_from([0.0, 0.5, 99.0]))
def test_words_unpack_to_where_they_were(lengths, waste):
    """The real rows of the groups, put one after another and through the inverse, are all rows in order."""
    check(pack, (lengths,), sum(lengths), waste)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4)), max_size=10), st.sampled_from([0.0, 0.5, 99.0]))
def test_pairs_unpack_to_where_they_were(pairs, waste):
    words, entities = [p[0] for p in pairs], [p[1] for p in pairs]
    check(pack_pairs, (words, entities), sum(words) + sum(entities), waste)


def group_lengths(arguments, group):
    return [sum(x) for x in zip(*arguments)][group.first : group.last]


def rows_of(packing):
    """The packed rows (B, L) of each group, as they are read."""
    shapes = [group.shape for group in packing.groups]
    if packing.moves is not None:
        return split_rows(packing.moves.order_P, shapes)
    return [torch.arange(x.start, x.start + a * b).view(a, b) for x, (a, b) in zip(packing.groups, shapes)]


def entity_tables(rows):
    """The entities (B, S) of each group, -1 where there is none."""
    table_P = torch.full_like(rows.rows_P, -1)
    table_P[rows.place_E] = rows.rows_P[rows.place_E]
    return split_rows(table_P, rows.shapes)


def check(function, arguments, total, waste):
    import spacy_luke.model.packing as module

    before, module.tolerated_waste = module.tolerated_waste, lambda device: waste
    try:
        packing = function(*arguments, device=CPU)
    finally:
        module.tolerated_waste = before
    results, real = [torch.empty(0, dtype=torch.long)], 0
    for group, rows in zip(packing.groups, rows_of(packing), strict=True):
        assert group.longest == max(group_lengths(arguments, group))
        if group.start is not None:
            assert torch.equal(rows.flatten(), torch.arange(group.start, group.start + rows.numel()))
        results.append(rows.flatten())
        real += rows.numel() if group.real_BL is None else int(group.real_BL.sum())
    out = torch.cat(results)
    assert real == total
    if packing.moves is not None:
        assert torch.equal(packing.moves.order_P, out)
        out = out[packing.moves.place_N]
    assert out.tolist() == list(range(total))


@torch.no_grad()
def test_entity_rows():
    packing = pack([4, 4, 2], device=CPU)
    rows = entity_rows(packing, [2, 1, 3])
    assert [x.tolist() for x in entity_tables(rows)] == [[[0, 1], [2, -1]], [[3, 4, 5]]]
    assert (rows.rows_P.tolist(), rows.place_E.tolist()) == ([0, 1, 2, 0, 3, 4, 5], [0, 1, 2, 4, 5, 6])
    rows = entity_rows(packing, [0, 0, 1])
    ((group, most),), (table,) = rows.parts, entity_tables(rows)
    assert most == 1
    assert (group.first, group.last, table.tolist()) == (2, 3, [[0]])
    assert entity_rows(packing, [0, 0, 0]).parts == ()


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([0, 0, 1, 2, 40])), min_size=1, max_size=9),
    st.sampled_from([0.0, 0.5, 9.0]),
)
def test_entity_rows_lose_nothing(windows, waste):
    """Each entity once, with its window's rows; windows with few entities are not padded to those with many."""
    lengths, counts = zip(*windows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spacy_luke.model.packing.tolerated_waste", lambda device: waste)
        packing = pack(lengths, device=CPU)
    window_E = [b for b, count in enumerate(counts) for _ in range(count)]
    row = [sum(lengths[:b]) for b in range(len(lengths))]
    found = []
    rows = entity_rows(packing, counts)
    assert rows.rows_P[rows.place_E].tolist() == list(range(sum(counts)))
    row_N = torch.arange(sum(lengths))
    words_of = [x.tolist() for x in word_rows(row_N, rows)]
    for (group, most), table, words_BL in zip(rows.parts, entity_tables(rows), words_of, strict=True):
        assert table.shape == (group.last - group.first, most)
        real = table[table >= 0].tolist()
        found += real
        assert table.numel() <= (1 + ENTITY_WASTE) * len(real)
        assert len(table) == len(words_BL) == group.last - group.first
        for b, words, entities in zip(range(group.first, group.last), words_BL, table.tolist()):
            assert words[: lengths[b]] == list(range(row[b], row[b] + lengths[b]))
            assert all(window_E[e] == b for e in entities if e >= 0)
        if group.real_BL is not None:
            assert group.real_BL.sum(1).tolist() == list(lengths[group.first : group.last])
        if group.start is not None:
            flat = [word for words in words_BL for word in words]
            assert flat == list(range(group.start, group.start + len(flat)))
    assert found == list(range(sum(counts)))


def test_waste_that_is_asked_for():
    """Instead of the device's."""
    assert len(pack([3, 1, 2], device=CPU).groups) == 3
    (group,) = pack([3, 1, 2], device=CPU, waste=1.0).groups
    assert group.real_BL.sum(1).tolist() == [3, 1, 2]
