"""Link prediction: the rank of the right entity among all, filtered, for tails and heads.

Known triples of all files are not counted as wrong (Bordes et al. 2013, "filtered"). Entities of equal distance count
half, PyKEEN's "realistic" rank. Shapes: T triples, N entities, D numbers in a vector.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..stores.progress import ProgressBar
from .transe import distances, queries_of

HITS = (1, 3, 10)
MOST_DISTANCES = 1 << 25  # that are held at once


class KnownAnswers:
    """Which entities are known to be right at one place of a triple, given the other two."""

    def __init__(self, triples_T3: np.ndarray, *, given: int, answer: int, num_relations: int) -> None:
        keys_T = triples_T3[:, given].astype(np.int64) * num_relations + triples_T3[:, 1]
        order = np.argsort(keys_T, kind="stable")
        self._keys, self._answers = keys_T[order], triples_T3[order, answer].astype(np.int64)
        self._given, self._num_relations = given, num_relations

    def of(self, triples_T3: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(row, entity) pairs: row is the number of the triple."""
        keys_T = triples_T3[:, self._given].astype(np.int64) * self._num_relations + triples_T3[:, 1]
        first, last = np.searchsorted(self._keys, keys_T), np.searchsorted(self._keys, keys_T, side="right")
        counts = last - first
        rows = np.repeat(np.arange(len(keys_T)), counts)
        places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        return rows, self._answers[places]


def rank_triples(
    entities_ND: Tensor,
    relations_RD: Tensor,
    triples_T3: np.ndarray,
    known_T3: np.ndarray,
    *,
    norm: int,
    reciprocal: bool = False,
    progress: bool = False,
) -> np.ndarray:
    """Ranks (2, T) from 1: of the tails, then of the heads of triples. known: all triples that are true, these too.

    Raises ValueError for vectors that are not finite: NaN is nearer than nothing and farther than nothing, so that each
    entity would rank first.
    """
    for what, vectors in (("entities", entities_ND), ("relations", relations_RD)):
        if not (finite := torch.isfinite(vectors).all(dim=1)).all():
            raise ValueError(
                f"Expected finite vectors to rank by, but those of {int((~finite).sum()):,} of {len(finite):,} {what} "
                f"hold NaN or infinity, the first in row {int((~finite).nonzero()[0])}. Take a smaller learning rate."
            )
    num_relations = int(max(known_T3[:, 1].max(), triples_T3[:, 1].max())) + 1 if len(triples_T3) else 1
    tails = KnownAnswers(known_T3, given=0, answer=2, num_relations=num_relations)
    heads = KnownAnswers(known_T3, given=2, answer=0, num_relations=num_relations)
    ranks = np.empty((2, len(triples_T3)))
    for start, batch_T3 in ProgressBar(list(_batches(triples_T3, len(entities_ND))), "ranks", show=progress):
        batch = torch.from_numpy(batch_T3.astype(np.int64))
        heads_TD, tails_TD = entities_ND[batch[:, 0]], entities_ND[batch[:, 2]]
        queries_2TD = queries_of(heads_TD, tails_TD, relations_RD, batch[:, 1], reciprocal=reciprocal)
        for side, (known, answer) in enumerate(((tails, 2), (heads, 0))):
            far_TN = distances(queries_2TD.chunk(2)[side], entities_ND, norm)
            true_T1 = far_TN.gather(1, batch[:, answer, None]).clone()
            rows, entities = map(torch.from_numpy, known.of(batch_T3))
            far_TN[rows, entities] = torch.inf
            nearer_T, equal_T = (far_TN < true_T1).sum(1), (far_TN == true_T1).sum(1)
            ranks[side, start : start + len(batch_T3)] = (1 + nearer_T + equal_T / 2).numpy()
    return ranks


def _batches(triples_T3: np.ndarray, num_entities: int) -> Iterator[tuple[int, np.ndarray]]:
    size = max(1, MOST_DISTANCES // max(num_entities, 1))
    for start in range(0, len(triples_T3), size):
        yield start, triples_T3[start : start + size]


def metrics_of(ranks: np.ndarray) -> dict[str, float]:
    """MRR, hits at 1, 3 and 10 and the mean rank, of ranks (2, T): both sides, and each one's MRR."""
    if not ranks.size:
        raise ValueError("Expected one or more triples to rank, but there are none. Leave the file out.")
    found = {"mrr": (1 / ranks).mean(), **{f"hits@{k}": (ranks <= k).mean() for k in HITS}}
    sides = {"mrr_tails": (1 / ranks[0]).mean(), "mrr_heads": (1 / ranks[1]).mean()}
    figures = {**found, "mean_rank": ranks.mean(), **sides}
    return {**{name: round(float(value), 5) for name, value in figures.items()}, "triples": ranks.shape[1]}
