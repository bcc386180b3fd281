"""The answers of `luke_qa`: of the spans of all windows the best ones with different texts, and "no answer".

S spans.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np


@dataclass(frozen=True)
class FoundAnswers:
    """What is found for a question: characters [start, end) and score (start logit + end logit) of answers with
    different texts, the best first; and the score of "no answer", the lowest of all windows. No answers where the Doc
    has no text."""

    answers: Sequence[tuple[int, int, float]]
    null: float

    @property
    def difference(self) -> float:
        """By how much "no answer" is better than the best answer."""
        return self.null - self.answers[0][2] if self.answers else np.inf


def ranked(found: FoundAnswers, *, most: int, threshold: float | None) -> list[list[Any]]:
    """Characters and probability of each answer, [0, 0, p] for "no answer", the one that is given first.

    As in the original code: the probabilities are those of the answers that are listed, "no answer" among them where
    there is a threshold; it comes first where it is better than the best answer by more than that.
    """
    rows = [[a, b, score] for a, b, score in found.answers]
    if not rows:
        return [[0, 0, 1.0]]
    if threshold is not None:
        best, null = rows[0], [0, 0, found.null]
        first = null if found.difference > threshold else best
        rows = sorted([*rows, null], key=lambda row: -row[2])
        kept = [row for i, row in enumerate(rows) if i < most or row is null]
        rows = [first, *(row for row in kept if row is not first)]
    weights = np.exp(np.array([row[2] for row in rows]) - max(row[2] for row in rows))
    return [[a, b, float(p)] for (a, b, _), p in zip(rows, weights / weights.sum())]


@dataclass(frozen=True)
class Places:
    """S spans of a text, characters [start, end), and their scores."""

    start_S: np.ndarray
    end_S: np.ndarray
    score_S: np.ndarray

    def best(self) -> "Places":
        """Each span that holds something once, with its best score; the best first, of equal scores the first in the
        text."""
        order_S = np.lexsort((self.end_S, self.start_S, -self.score_S))
        order_S = order_S[self.end_S[order_S] > self.start_S[order_S]]
        keys_S = self.start_S[order_S] * (self.end_S.max(initial=0) + 1) + self.end_S[order_S]
        kept_S = order_S[np.sort(np.unique(keys_S, return_index=True)[1])]
        return Places(self.start_S[kept_S], self.end_S[kept_S], self.score_S[kept_S])


def different(text: str, parts: Sequence[Places], most: int) -> list[tuple[int, int, float]]:
    """The best spans with different texts that are not blank; of equal scores the first in the text. No span is looked
    at
    twice: the text of a long word, which many spans of pieces come to, is read once."""
    chosen: dict[str, tuple[int, int, float]] = {}
    if not parts:
        return []
    best = Places(*(np.concatenate([getattr(x, f.name) for x in parts]) for f in fields(Places))).best()
    for start, end, score in zip(best.start_S.tolist(), best.end_S.tolist(), best.score_S.tolist()):
        answer = text[start:end]
        if answer not in chosen and not answer.isspace():
            chosen[answer] = (start, end, score)
            if len(chosen) == most:
                break
    return list(chosen.values())
