"""What trains: our own sparse TransE, or PyKEEN's. Both learn epoch by epoch, and hand over all they know as
tensors."""

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from .ranks import metrics_of, rank_triples
from .settings import TransESettings
from .transe import Tables, train_epoch
from .triples import Graph


class GraphEngine(Protocol):
    def train_epoch(self, epoch: int, progress: Any) -> float:
        """All training triples once, the same way whenever this epoch (from 0) is run. Returns the mean loss."""

    def state(self) -> dict[str, Tensor]:
        """All that the next epoch depends on."""

    def load(self, state: dict[str, Tensor]) -> None:
        """The state of another engine of the same settings and graph."""

    def vectors(self) -> tuple[Tensor, Tensor]:
        """Those of entities (N, D) and relations (R, D); reciprocal relations: (2R, D), in the engine's own order."""

    def evaluate(self, triples_T3: np.ndarray, *, progress: bool) -> dict[str, float]:
        """Filtered link prediction of tails and heads."""


def make_engine(graph: Graph, settings: TransESettings) -> GraphEngine:
    if settings.engine == "pykeen":
        from .pykeen_engine import PykeenEngine  # PyKEEN is an extra

        return PykeenEngine(graph, settings)
    return SparseEngine(graph, settings)


class SparseEngine:
    """Steps that cost the rows they touch (see `transe`)."""

    def __init__(self, graph: Graph, settings: TransESettings) -> None:
        self.settings = settings
        self.tables = Tables.fresh(len(graph.entities), len(graph.relations), settings)
        self._triples_T3 = torch.from_numpy(graph.triples["train"])
        self._known_T3 = graph.known()

    def train_epoch(self, epoch: int, progress: Any) -> float:
        return train_epoch(self.tables, self._triples_T3, epoch, self.settings, progress=progress)

    def state(self) -> dict[str, Tensor]:
        return self.tables.to_tensors()

    def load(self, state: dict[str, Tensor]) -> None:
        self.tables = Tables(**state)

    def vectors(self) -> tuple[Tensor, Tensor]:
        return self.tables.entities_ND, self.tables.relations_RD

    def evaluate(self, triples_T3: np.ndarray, *, progress: bool) -> dict[str, float]:
        settings, (entities_ND, relations_RD) = self.settings, self.vectors()
        ranks = rank_triples(
            entities_ND,
            relations_RD,
            triples_T3,
            self._known_T3,
            norm=settings.norm,
            reciprocal=settings.reciprocal,
            progress=progress,
        )
        return metrics_of(ranks)
