"""What can be said of scores on few documents: intervals by the bootstrap, and whether two pipelines differ.

Documents are drawn, with replacement, since what is in one document is not independent (Berg-Kirkpatrick et al., EMNLP
2012; Koehn, EMNLP 2004). Shapes: D documents, L labels, R draws, 3 counts: right, wrong, missed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..scorers.items import ScoredItem

_DRAWS = 1000
DRAWS_AT_ONCE = 100
LEVEL = 0.95
Floats = NDArray[np.float64]


class Measure(NamedTuple):
    """A score from 0 to 1, and the interval in which 95 of 100 draws of the documents have it."""

    value: float
    low: float
    high: float


class LabelScore(NamedTuple):
    """Of a label, or of all ("")."""

    label: str
    gold: int
    found: int
    precision: float
    recall: float
    f: Measure


class Difference(NamedTuple):
    """Of the second pipeline's F1 from the first's. p: how often draws of the documents say the opposite, both ways."""

    first: Measure
    second: Measure
    difference: Measure
    p: float

    @property
    def is_significant(self) -> bool:
        return self.p < 1 - LEVEL


def count_items(items: Sequence[ScoredItem], labels: Sequence[str], documents: int) -> Floats:
    """(D, L + 1, 3): of each document and label, at last of all labels, what is right, wrong, missed."""
    place = {label: i for i, label in enumerate(labels)}
    counts_DL3 = np.zeros((documents, len(labels) + 1, 3))
    for item in items:
        kind = 2 if not item.found else 0 if item.gold else 1
        counts_DL3[item.doc, place[item.label], kind] += 1
        counts_DL3[item.doc, -1, kind] += 1
    return counts_DL3


def labels_by_gold(*items: Sequence[ScoredItem]) -> list[str]:
    """All labels, those with most gold of the first items first."""
    gold: dict[str, int] = {}
    for number, some in enumerate(items):
        for item in some:
            gold[item.label] = gold.get(item.label, 0) + (item.gold and not number)
    return sorted(gold, key=lambda label: (-gold[label], label))


def draw_sums(counts_DL3: Floats, *, draws: int = _DRAWS, seed: int = 0) -> Floats:
    """(R, L, 3): sums of counts over documents that are drawn; the same draws for the same number of documents."""
    D, L, _ = counts_DL3.shape
    random = np.random.default_rng(seed)
    flat_DX = counts_DL3.reshape(D, -1)
    sums = [
        random.multinomial(D, np.full(D, 1 / D), size=min(DRAWS_AT_ONCE, draws - i)).astype(np.float64) @ flat_DX
        for i in range(0, draws, DRAWS_AT_ONCE)
    ]
    return np.concatenate(sums).reshape(draws, L, 3)


def f_scores(counts: Floats) -> Floats:
    """(..., 3) -> (...): F1, 0 where there is nothing."""
    right, wrong, missed = np.moveaxis(counts, -1, 0)
    found: Floats = 2 * right / np.maximum(2 * right + wrong + missed, 1e-12)
    return found


def score_labels(items: Sequence[ScoredItem], documents: int) -> list[LabelScore]:
    """Of all, then of each label, with intervals of F1."""
    labels = labels_by_gold(items)
    counts_DL3 = count_items(items, labels, documents)
    total_L3 = counts_DL3.sum(0)
    value_L, drawn_RL = f_scores(total_L3), f_scores(draw_sums(counts_DL3))
    scores = [
        LabelScore(
            label,
            int(right + missed),
            int(right + wrong),
            right / max(right + wrong, 1),
            right / max(right + missed, 1),
            _measure(value_L[i], drawn_RL[:, i]),
        )
        for i, (label, (right, wrong, missed)) in enumerate(zip([*labels, ""], total_L3, strict=True))
    ]
    return [scores[-1], *scores[:-1]]


def compare(first: Sequence[ScoredItem], second: Sequence[ScoredItem], documents: int) -> list[tuple[str, Difference]]:
    """F1 of two pipelines on the same documents, over all labels ("") and for each, by the same draws for both."""
    labels = labels_by_gold(first, second)
    totals, draws = [], []
    for items in (first, second):
        counts_DL3 = count_items(items, labels, documents)
        totals.append(f_scores(counts_DL3.sum(0)))
        draws.append(f_scores(draw_sums(counts_DL3)))
    rows = []
    for i, label in enumerate([*labels, ""]):
        a, b = (_measure(total[i], drawn[:, i]) for total, drawn in zip(totals, draws, strict=True))
        difference_R = draws[1][:, i] - draws[0][:, i]
        tails = ((difference_R <= 0).mean(), (difference_R >= 0).mean())
        p = min(1.0, 2 * max(float(min(tails)), 1 / (2 * len(difference_R))))
        rows.append((label, Difference(a, b, _measure(b.value - a.value, difference_R), p)))
    return [rows[-1], *rows[:-1]]


def _measure(value: float, drawn_R: Floats) -> Measure:
    low, high = np.quantile(drawn_R, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Measure(float(value), float(low), float(high))
