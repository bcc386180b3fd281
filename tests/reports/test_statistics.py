"""Intervals and differences: against plain sums, and against what must come out."""

import numpy as np
import pytest

from spacy_luke.reports.statistics import compare, count_items, draw_sums, f_scores, labels_by_gold, score_labels
from spacy_luke.scorers.items import ScoredItem


def items(*rows):
    """rows: document, label, gold, found."""
    return [ScoredItem(doc, ((i, i + 1),), label, gold, found, 0.5) for i, (doc, label, gold, found) in enumerate(rows)]


RIGHT, WRONG, MISSED = (True, True), (False, True), (True, False)
SOME = items((0, "A", *RIGHT), (0, "B", *WRONG), (1, "A", *MISSED), (2, "A", *RIGHT), (2, "C", *MISSED))


def test_labels():
    assert labels_by_gold(SOME) == ["A", "C", "B"]
    assert labels_by_gold(items((0, "A", *RIGHT)), items((0, "Z", *WRONG))) == ["A", "Z"]


def test_scores():
    total, a, c, b = score_labels(SOME, 3)
    assert (total.label, total.gold, total.found) == ("", 4, 3)
    assert (a.precision, a.recall, a.f.value) == (1.0, pytest.approx(2 / 3), pytest.approx(0.8))
    assert (b.f.value, c.f.value, b.precision, c.recall) == (0, 0, 0, 0)
    assert total.f.value == pytest.approx(2 * 2 / (3 + 4))
    assert total.f.low <= total.f.value <= total.f.high


def test_draws_are_sums_of_documents():
    """Each draw has as many documents as there are, and is the plain sum of them."""
    counts = count_items(SOME, ["A", "B", "C"], 3)
    found = draw_sums(counts, draws=250, seed=3)
    assert found.shape == (250, 4, 3)
    possible = {
        tuple((counts[a] + counts[b] + counts[c]).ravel()) for a in range(3) for b in range(3) for c in range(3)
    }
    drawn = {tuple(x.ravel()) for x in found}
    assert drawn == possible
    np.testing.assert_array_equal(found, draw_sums(counts, draws=250, seed=3))


def test_the_interval_is_that_of_a_share():
    """Of documents with one item each, right with probability 0.7: that of the binomial."""
    random = np.random.default_rng(0)
    n = 400
    rows = [(i, "A", *(RIGHT if right else MISSED)) for i, right in enumerate(random.random(n) < 0.7)]
    recall_items = items(*rows)
    f = score_labels(recall_items, n)[0].f
    share = sum(x.found for x in recall_items) / n
    spread = 1.96 * np.sqrt(share * (1 - share) / n)
    low, high = ((2 * r) / (1 + r) for r in (share - spread, share + spread))
    assert (f.low, f.high) == (pytest.approx(low, abs=0.01), pytest.approx(high, abs=0.01))


def test_the_same_is_not_better():
    label, x = compare(SOME, SOME, 3)[0]
    assert (label, x.difference.value, x.p, x.is_significant) == ("", 0, 1.0, False)


def test_better_everywhere_is_significant():
    first = items(*((i, "A", *(RIGHT if i % 2 else MISSED)) for i in range(40)))
    second = items(*((i, "A", *RIGHT) for i in range(40)))
    x = dict(compare(first, second, 40))["A"]
    assert x.is_significant
    assert x.p == pytest.approx(0.001)
    assert 0 < x.difference.low <= x.difference.value <= x.difference.high
    back = dict(compare(second, first, 40))["A"]
    assert back.difference.value == -x.difference.value


def test_f_of_nothing():
    assert f_scores(np.zeros(3)) == 0
