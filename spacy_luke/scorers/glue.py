"""The metrics of GLUE (Wang et al., ICLR 2019, table 1), from doc.cats."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from spacy.training import Example
from spacy.util import registry

METRICS = {
    "cola": ("matthews",),
    "mnli": ("accuracy",),
    "mrpc": ("accuracy", "f"),
    "qnli": ("accuracy",),
    "qqp": ("accuracy", "f"),
    "rte": ("accuracy",),
    "sst2": ("accuracy",),
    "stsb": ("pearson", "spearman"),
    "wnli": ("accuracy",),
}
POSITIVE = {"mrpc": "equivalent", "qqp": "duplicate", "stsb": "similar"}


@registry.scorers("spacy-luke.glue_scorer.v1")
def make_glue_scorer(task: str) -> Callable[..., dict[str, Any]]:
    """The scorer of a GLUE task, for spaCy's textcat: `score_glue`.

    task: its name, such as mrpc.
    """
    if task not in METRICS:
        raise ValueError(f"task must be one of GLUE's {sorted(METRICS)}, but it is {task!r}.")
    return partial(score_glue, task=task)


def score_glue(examples: Iterable[Example], *, task: str, **kwargs: Any) -> dict[str, float | None]:
    """Scores of doc.cats: glue_accuracy, glue_f (F1 of "equivalent" or "duplicate"), glue_matthews, or glue_pearson and
    glue_spearman of the category "similar", as the task has them, and glue_score, their mean, as in GLUE's table.

    0 to 1; correlations -1 to 1, and 0 where one side is constant. Gold docs without categories are left out; all None
    where no doc has any. Raises ValueError for a prediction without categories.
    """
    names = METRICS[task]
    pairs = [(example.reference.cats, example.predicted.cats) for example in examples if example.reference.cats]
    if bare := [i for i, (_, predicted) in enumerate(pairs) if not predicted]:
        raise ValueError(f"Expected categories in doc.cats of each prediction, but document {bare[0]} has none.")
    if not pairs:
        return dict.fromkeys([*(f"glue_{name}" for name in names), "glue_score"])
    if task == "stsb":
        positive = POSITIVE[task]
        if odd := [pair for pair in pairs if not all(positive in cats for cats in pair)]:
            raise ValueError(f"Expected the category {positive!r} in all docs, but one pair has {odd[0]}.")
        gold_N, predicted_N = (np.array([pair[k][positive] for pair in pairs], dtype=np.float64) for k in (0, 1))
        values = {"pearson": pearson(gold_N, predicted_N), "spearman": spearman(gold_N, predicted_N)}
    else:
        gold, predicted = ([max(pair[k], key=pair[k].__getitem__) for pair in pairs] for k in (0, 1))
        values = {"accuracy": sum(a == b for a, b in zip(gold, predicted, strict=True)) / len(gold)}
        if "f" in names:
            values["f"] = f_score(gold, predicted, positive=POSITIVE[task])
        if "matthews" in names:
            values["matthews"] = matthews(gold, predicted)
    scores = {f"glue_{name}": values[name] for name in names}
    return {**scores, "glue_score": sum(scores.values()) / len(scores)}


def f_score(gold: Sequence[str], predicted: Sequence[str], *, positive: str) -> float:
    """F1 of one label, 0 where it is never right."""
    right = sum(a == b == positive for a, b in zip(gold, predicted, strict=True))
    total = sum(a == positive for a in gold) + sum(b == positive for b in predicted)
    return 2 * right / total if right else 0.0


def matthews(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """Matthews correlation of labels (Gorodkin 2004 for more than two), 0 where one side has one label only."""
    labels = sorted({*gold, *predicted})
    gold_NL, predicted_NL = (_one_hot(side, labels) for side in (gold, predicted))
    covariance, gold_variance, predicted_variance = (
        len(gold) * (a * b).sum() - a.sum(0) @ b.sum(0)
        for a, b in ((gold_NL, predicted_NL), (gold_NL, gold_NL), (predicted_NL, predicted_NL))
    )
    scale = gold_variance * predicted_variance
    return float(covariance / np.sqrt(scale)) if scale else 0.0


def pearson(gold_N: np.ndarray, predicted_N: np.ndarray) -> float:
    """Correlation of two lists of numbers, 0 where one is constant."""
    if np.ptp(gold_N) == 0 or np.ptp(predicted_N) == 0:
        return 0.0
    gold_N, predicted_N = gold_N - gold_N.mean(), predicted_N - predicted_N.mean()
    scale = np.sqrt((gold_N**2).sum() * (predicted_N**2).sum())
    return float(gold_N @ predicted_N / scale)


def spearman(gold_N: np.ndarray, predicted_N: np.ndarray) -> float:
    """Correlation of the ranks; equal numbers share the mean of theirs."""
    return pearson(_ranks(gold_N), _ranks(predicted_N))


def _ranks(values_N: np.ndarray) -> np.ndarray:
    _, which_N, counts = np.unique(values_N, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[which_N.reshape(-1)]


def _one_hot(labels_N: Sequence[str], labels: list[str]) -> np.ndarray:
    return np.array([[float(label == other) for other in labels] for label in labels_N])
