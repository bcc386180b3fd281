"""Calibrated scores: what is shown with a score of 0.8 is right in 8 of 10 cases.

The log-odds of a score are divided by a temperature, and shifted (Platt, 1999; Guo et al., ICML 2017). Both are fitted
to dev data: `python -m spacy luke tune`.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from torch import Tensor

from .factories import Setting
from .storage import StoredComponent

Logits = TypeVar("Logits", Tensor, NDArray[np.float32], NDArray[np.float64])

_NEAREST = 1e-7  # to 0 and 1 of a score whose log-odds are taken
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.05, 20.0  # temperature that is fitted
SHOWN_FROM = 0.05  # least probability of labels, each by itself, that a calibration is fitted to
_STEPS = 100  # of Newton's method, of which it takes about ten

_ABOUT_TEMPERATURE = (
    "what the log-odds of scores are divided by: above 1 scores become less sure. `python -m spacy luke tune` fits it "
    "and `shift`, so that scores are shares of what is right"
)


class Calibrated(StoredComponent):
    """The settings of a component whose scores are calibrated."""

    temperature: Setting[float] = Setting(1.0, _ABOUT_TEMPERATURE, least=LOWEST_TEMPERATURE, most=HIGHEST_TEMPERATURE)
    shift: Setting[float] = Setting(0.0, "what is added to the log-odds of scores, after `temperature`")

    def fit_calibration(
        self, scores: Sequence[float], right: Sequence[bool], *, nlp: Language | None, least: int
    ) -> dict[str, float]:
        """Take the temperature and shift that fit scores which were not calibrated, and RETURN them; nothing where
        there are fewer than `least`, or none. nlp: see `settle`."""
        if len(scores) < max(least, 1):
            return {}
        temperature, shift = fit_calibration(scores, right)
        self.settle(nlp, temperature=temperature, shift=shift)
        return {"temperature": temperature, "shift": shift}

    def calibrated_logits(self, logits: Logits) -> Logits:
        """Log-odds of labels that do not exclude one another."""
        if self.temperature == 1.0 and self.shift == 0.0:
            return logits
        return logits / self.temperature + self.shift

    def calibrated(self, probability: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores, where nothing was fitted as they are."""
        if self.temperature == 1.0 and self.shift == 0.0:
            return probability
        return apply_calibration(probability, self.temperature, self.shift)


def apply_calibration(probability: NDArray[np.float64], temperature: float, shift: float) -> NDArray[np.float64]:
    odds = log_odds(probability) / temperature + shift
    return np.asarray(1 / (1 + np.exp(-odds)), dtype=np.float64)


def log_odds(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    kept = np.clip(np.asarray(probability, dtype=np.float64), _NEAREST, 1 - _NEAREST)
    return np.asarray(np.log(kept) - np.log1p(-kept))


def fit_calibration(scores: Sequence[float], right: Sequence[bool]) -> tuple[float, float]:
    """The temperature and shift that make scores most likely, given which of them are right.

    As in Platt (1999) what is right counts as (n + 1) / (n + 2), n of them, and what is wrong as 1 / (n + 2), so that
    few cases, or none that is wrong, do not make scores of 0 or 1. Where higher scores are no more often right, the
    temperature is HIGHEST_TEMPERATURE. Raises ValueError without scores.
    """
    if not len(scores):
        raise ValueError("Expected scores to calibrate, but there are none.")
    odds_N, right_N = log_odds(np.array(scores)), np.array(right, dtype=bool)
    n_right = int(right_N.sum())
    n_wrong = len(right_N) - n_right
    target_N = np.where(right_N, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))
    slope, shift = _fit_line(odds_N, target_N)
    temperature = 1 / slope if slope > 1 / HIGHEST_TEMPERATURE else HIGHEST_TEMPERATURE
    if not LOWEST_TEMPERATURE < temperature < HIGHEST_TEMPERATURE:  # the shift alone, with the slope that there may be
        temperature = min(max(temperature, LOWEST_TEMPERATURE), HIGHEST_TEMPERATURE)
        _, shift = _fit_line(odds_N, target_N, slope=1 / temperature)
    return round(temperature, 4), round(shift, 4)


def _fit_line(
    odds_N: NDArray[np.float64], target_N: NDArray[np.float64], slope: float | None = None
) -> tuple[float, float]:
    """Slope, unless it is given, and shift of least cross-entropy, by Newton's method with steps that are halved where
    they do not help."""
    free = slope is None
    line = np.array([1.0 if slope is None else slope, 0.0])
    columns = np.stack([odds_N, np.ones_like(odds_N)])

    def loss(at: NDArray[np.float64]) -> float:
        x = at @ columns
        return float((np.logaddexp(0, x) - target_N * x).sum())

    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-(line @ columns)))
        gradient = columns @ (p - target_N)
        curve = (columns * (p * (1 - p))) @ columns.T + 1e-9 * np.eye(2)
        step = np.linalg.solve(curve, gradient) if free else np.array([0.0, gradient[1] / curve[1, 1]])
        before, size = loss(line), 1.0
        while size > 1e-6 and loss(line - size * step) > before:
            size /= 2
        line = line - size * step
        if np.abs(size * step).max() < 1e-8:
            break
    return float(line[0]), float(line[1])
