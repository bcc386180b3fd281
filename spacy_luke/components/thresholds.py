"""Thresholds that are chosen on dev data, and what they must be chosen from."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from spacy.training import Example

_THRESHOLDS = np.arange(0.01, 1.0, 0.01).round(2).tolist()
# Of `luke_linker`: at 0 no mention with a candidate is NIL; near 1 are most scores of one that reads priors.
LINK_THRESHOLDS = [0.0, *_THRESHOLDS, 0.995, 0.999]
_NIL_BIASES = np.arange(-10.0, 5.25, 0.25).tolist()
_NIL_COST = 0.001  # share of the mentions with an entity that NIL as a candidate may cost


def check_positives(n: int, least: int, *, name: str, what: str) -> None:
    """Raises ValueError where a threshold would be chosen from too few positives. what: they are, such as "gold
    entities"."""
    if n < least:
        raise ValueError(
            f"The threshold of '{name}' would be chosen from {n} {what}, expected at least {least}: each is worth "
            f"{100 / max(n, 1):.1f} points of recall, so that chance decides which threshold is the best, and on "
            "other texts another one is. Give more dev data, keep the threshold that the config has, or choose it "
            "all the same with --force."
        )


def check_found(golds: Sequence[np.ndarray], total: int, *, name: str, what: str, where: str) -> None:
    """Raises ValueError where none of `total` gold labels is among those that are decided. golds: arrays of bool."""
    if not any(gold.any() for gold in golds):
        raise ValueError(
            f"'{name}' cannot be tuned: none of {total} {what} is {where}. Does a component before '{name}' find "
            "them? Or give the gold ones: --gold-mentions."
        )


def best_label_threshold(probability: np.ndarray, gold: np.ndarray, *, total: int) -> tuple[float, float]:
    """The threshold with the best micro F1, and that F1; of equal ones the nearest to 0.5.

    probability, gold: of the same shape, gold true where a label is right; total: gold labels, also those without a
    probability, which are missed at any threshold.
    """
    best = (-1.0, 0.0, 0.5)
    for threshold in _THRESHOLDS:
        chosen = probability > threshold
        f1 = 2 * float((chosen & gold).sum()) / max(float(chosen.sum() + total), 1.0)
        best = max(best, (f1, -abs(threshold - 0.5), threshold))
    return best[2], best[0]


def precise_threshold(
    probability: np.ndarray, gold: np.ndarray, *, total: int, precision: float, least: int = 0
) -> tuple[float, float, float]:
    """The lowest threshold at which at least a share `precision` of what is found is right, and `least` things are
    found; that share, and the micro F1. The arrays and `total` are those of `best_label_threshold`. Raises ValueError
    where there is none."""
    most = (0.0, 0.0)
    for threshold in _THRESHOLDS:
        chosen = probability > threshold
        found, right = int(chosen.sum()), int((chosen & gold).sum())
        if not found or found < least:
            break
        if right / found >= precision:
            return threshold, right / found, 2 * right / (found + total)
        most = max(most, (right / found, threshold))
    raise ValueError(
        f"No threshold finds at least {max(least, 1)} labels of which {100 * precision:g} % are right: expected a "
        f"--precision of {most[0]:.3f} or less, which the threshold {most[1]:g} has, or more dev data."
    )


def best_by_score(
    proc: Any, setting: str, thresholds: Iterable[float], examples: Sequence[Example], found: Any, *, metric: str
) -> tuple[float, float]:
    """The threshold with which a component's scorer gives the highest `metric`, and that; of equal ones the one that
    the component has, or else the nearest to 0.

    proc: the component, whose `setting` is the threshold and stays as it is. found: what it predicts for the examples'
    predicted Docs, which are annotated.
    """
    docs, before = [example.predicted for example in examples], proc.cfg[setting]
    best = (-1.0, False, 0.0, 0.0)
    try:
        for threshold in {*thresholds, *([] if before is None else [before])}:
            proc.cfg[setting] = threshold
            proc.set_annotations(docs, found)
            score = proc.scorer(examples)[metric] or 0.0
            best = max(best, (score, threshold == before, -abs(threshold), threshold))
    finally:
        proc.cfg[setting] = before
    return best[3], best[0]


def best_link_threshold(rows: Sequence[tuple[float, bool, bool]], *, before: float) -> tuple[float, float]:
    """rows: see `linker.gold.gold_rows`. RETURNS: the threshold that makes most mentions right, of equal ones the one
    that was `before`, or else the lowest, and this share."""
    if not rows:
        raise ValueError("Expected examples with linked mentions (kb_id) to tune on, but found none.")
    score, right, nil = (np.array(x) for x in zip(*rows))
    best = (-1.0, False, 0.0, 0.0)
    for threshold in {*LINK_THRESHOLDS, before}:
        share = float(np.where(score >= threshold, right, nil).mean())
        best = max(best, (share, threshold == before, -threshold, threshold))
    return best[3], best[0]


def best_nil_bias(rows: Sequence[tuple[float, bool, bool]]) -> tuple[float, float]:
    """rows: see `linker.gold.gold_rows`, above NIL. RETURNS: what is to be added to NIL's score, and the share of
    mentions that are right with it.

    It is the one with the best F1 of NIL, of equal ones the nearest to 0, of those with which at most a share NIL_COST
    of the mentions that have an entity are lost: right without NIL, and NIL with it. Links are what a linker is for,
    and how many mentions are NIL differs more from text to text than which entity a name means.
    """
    if not rows:
        raise ValueError("Expected examples with linked mentions (kb_id) to tune on, but found none.")
    margin, right, nil = (np.array(x) for x in zip(*rows))
    most = int(_NIL_COST * (~nil).sum())
    best = (-1.0, 0.0, _NIL_BIASES[0], 0.0)
    for bias in _NIL_BIASES:
        chosen = margin < bias
        if (chosen & right).sum() > most:
            break
        f1 = 2 * float((chosen & nil).sum()) / max(int(chosen.sum() + nil.sum()), 1)
        best = max(best, (f1, -abs(bias), bias, float(np.where(chosen, nil, right).mean())))
    return best[2], best[3]
