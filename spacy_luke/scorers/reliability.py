"""How far scores can be believed: of what a pipeline shows with a score, the share that is right."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .items import ScoredItem

_BINS = 10  # of equal width

Judged = list[tuple[float, bool]]  # score, whether it is right


class ReliabilityBin(NamedTuple):
    """What is shown with a score in (low, high], its mean score, and the share of it that is right."""

    low: float
    high: float
    n: int
    score: float
    right: float


class Reliability(NamedTuple):
    """ece: the expected calibration error (Naeini et al., AAAI 2015): the mean distance of mean score and share that is
    right, over bins as they hold scores; None of no scores. bins: those that hold any."""

    n: int
    ece: float | None
    bins: list[ReliabilityBin]

    def to_dict(self) -> dict[str, object]:
        return {"n": self.n, "ece": self.ece, "bins": [one._asdict() for one in self.bins]}


def measure_reliability(judged: Sequence[tuple[float, bool]], *, bins: int = _BINS) -> Reliability:
    if not judged:
        return Reliability(0, None, [])
    score_N, right_N = (np.array(x, dtype=np.float64) for x in zip(*judged))
    bin_N = np.clip(np.ceil(score_N * bins).astype(int) - 1, 0, bins - 1)
    found = []
    error = 0.0
    for i in np.unique(bin_N).tolist():
        inside = bin_N == i
        n, score, right = int(inside.sum()), float(score_N[inside].mean()), float(right_N[inside].mean())
        found.append(ReliabilityBin(i / bins, (i + 1) / bins, n, score, right))
        error += n / len(score_N) * abs(score - right)
    return Reliability(len(score_N), error, found)


def judged(items: Iterable[ScoredItem]) -> Judged:
    """Of what is shown with a score: the score, and whether it is right."""
    return [(one.score, one.gold) for one in items if one.found and one.score is not None]
