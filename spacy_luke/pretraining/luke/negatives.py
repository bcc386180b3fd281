"""Sampled entities for the softmax of masked entities: 500,000 rows are then never multiplied.

R rows of the entity table, C sampled ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DISTRIBUTIONS = ("uniform", "log_uniform")


@dataclass(frozen=True)
class SamplingSettings:
    """negatives: draws for each batch; distribution: "log_uniform" of the row, which suits rows ordered by falling
    counts (Zipf), or "uniform"; batch_entities: whether the batch's other entities count too, which costs nothing more;
    sparse: the entity table's gradient has the rows alone that a batch reads, and only these move and decay."""

    negatives: int = 8192
    distribution: str = "log_uniform"
    batch_entities: bool = True
    sparse: bool = False

    def __post_init__(self) -> None:
        if self.negatives < 1:
            raise ValueError(f"negatives must be a whole number from 1, but it is {self.negatives}.")
        if self.distribution not in DISTRIBUTIONS:
            raise ValueError(f"distribution must be one of {DISTRIBUTIONS}, but it is {self.distribution!r}.")


class EntitySampler:
    """Draws entities [first, end) of the table.

    counts_R: how often each is linked in the training data, for the probability that a batch has it; None: as the
    distribution says.
    """

    def __init__(self, settings: SamplingSettings, *, first: int, end: int, counts_R: Sequence[int] | None = None):
        if end <= first:
            raise ValueError(f"Expected entities beside the special ones, but the vocabulary ends with row {end - 1}.")
        self.settings, self.first, self.end = settings, first, end
        weights = np.zeros(end)
        places = np.arange(end - first)
        weights[first:] = 1.0 if settings.distribution == "uniform" else np.log1p(1 / (places + 1))
        self.drawn_R = weights / weights.sum()
        counts = np.asarray(counts_R if counts_R is not None and any(counts_R) else self.drawn_R, dtype=np.float64)
        self.in_batch_R = counts / counts.sum()
        self._cumulated = np.cumsum(self.drawn_R)

    def sample(self, gold_A: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Different rows (C,), ascending, and minus the log of the probability that each is among them (float32).

        gold_A: the entities that the batch asks. Their weights make the sampled sum an unbiased estimate of the whole
        one (Horvitz and Thompson's; Bengio & Senecal, 2008, for softmaxes), see `MaskedEntityHead.sampled`, as far as a
        batch's entities come independently of one another: those of a page do not. Of A asked ones A - 1 may be another
        entity than that of a row.
        """
        n = self.settings.negatives
        rows_C = np.searchsorted(self._cumulated, rng.random(n) * self._cumulated[-1], side="right")
        rows_C = np.unique(np.minimum(rows_C, self.end - 1))
        if self.settings.batch_entities:
            rows_C = np.union1d(rows_C, gold_A)
        log_missing_C = n * np.log1p(-self._below_one(self.drawn_R[rows_C]))
        if self.settings.batch_entities:
            log_missing_C += max(len(gold_A) - 1, 0) * np.log1p(-self._below_one(self.in_batch_R[rows_C]))
        present_C = -np.expm1(log_missing_C)
        known_C = present_C > 0  # [UNK] of a vocabulary without counts: nobody knows how often it comes
        return rows_C[known_C], -np.log(present_C[known_C]).astype(np.float32)

    @staticmethod
    def _below_one(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return shares.clip(max=1 - 1e-12)
