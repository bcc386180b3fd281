"""Greedy choice of spans without overlap against a quadratic one."""

import numpy as np
import pytest

from spacy_luke.batch.decode import first_equal, greedy_flat


def greedy_by_pairs(start, end, score):
    """Best first, the earlier of equals; taken if it overlaps none that is taken."""
    taken = []
    for i in sorted(range(len(start)), key=lambda i: (-score[i], i)):
        if all(end[i] <= start[j] or end[j] <= start[i] for j in taken):
            taken.append(i)
    return sorted(taken, key=lambda i: start[i])


@pytest.mark.parametrize("seed", range(40))
def test_equals_plain_greedy(seed):
    chosen = np.random.default_rng(seed)
    n, words = int(chosen.integers(1, 80)), int(chosen.integers(1, 60))
    start = chosen.integers(0, words, n)
    end = start + chosen.integers(1, 9, n)
    score = chosen.normal(size=n) if seed % 2 else chosen.integers(-2, 3, n).astype(float)  # with many equals
    got = greedy_flat(start, end, score)
    assert got.dtype == np.int64
    assert got.tolist() == greedy_by_pairs(start.tolist(), end.tolist(), score.tolist())


def test_worked_example():
    start, end = np.array([0, 1, 3, 3, 6]), np.array([2, 4, 4, 6, 7])
    score = np.array([1.0, 3.0, 2.5, 2.0, -1.0])
    assert greedy_flat(start, end, score).tolist() == [1, 4]
    assert greedy_flat(start, end, np.array([1.0, 0.5, 2.5, 2.0, 2.0])).tolist() == [0, 2, 4]
    assert greedy_flat(start, end, np.zeros(5)).tolist() == [0, 2, 4]


def test_nothing():
    empty = np.empty(0, np.int64)
    assert greedy_flat(empty, empty, np.empty(0)).tolist() == []


@pytest.mark.parametrize("seed", range(10))
def test_first_equal_equals_a_search(seed):
    table = np.random.default_rng(seed).integers(0, 4, (60, 3))
    rows = table.tolist()
    assert first_equal(*table.T).tolist() == [rows.index(row) for row in rows]


def test_first_equal_of_rows_that_differ():
    assert first_equal(np.array([3, 0, 3]), np.array([1, 1, 0])) is None
    assert first_equal(np.empty(0, np.int64)) is None
