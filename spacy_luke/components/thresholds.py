"""The threshold of labels that are chosen by their probability, on dev data."""

from typing import Tuple

import numpy as np

THRESHOLDS = np.arange(0.01, 1.0, 0.01).round(2).tolist()


def best_label_threshold(probability: np.ndarray, gold: np.ndarray, *, total: int) -> Tuple[float, float]:
    """The threshold with the best micro F1, and that F1; of equal ones the nearest to 0.5.

    probability, gold: of the same shape, gold true where a label is right; total: gold labels, also those without a
    probability, which are missed at any threshold.
    """
    best = (-1.0, 0.0, 0.5)
    for threshold in THRESHOLDS:
        chosen = probability > threshold
        f1 = 2 * float((chosen & gold).sum()) / max(float(chosen.sum() + total), 1.0)
        best = max(best, (f1, -abs(threshold - 0.5), threshold))
    return best[2], best[0]
