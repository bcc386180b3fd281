"""TransE over PyKEEN (extra `kg`): its model, losses, negative sampler and evaluator; the epochs and their seeds are
ours, so that a run that goes on equals one that was never interrupted, and nothing is pickled.

PyKEEN's gradients are as large as the table of entities, and so are its steps: see benchmarks/results/kge.md.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .ranks import HITS
from .settings import TransESettings
from .triples import Graph

try:
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.losses import InfoNCELoss, Loss, MarginRankingLoss, NSSALoss
    from pykeen.models import TransE
    from pykeen.training import SLCWATrainingLoop
    from pykeen.triples import CoreTriplesFactory
except ImportError as missing:
    raise ImportError(
        "The engine pykeen needs PyKEEN: pip install 'spacy-luke[kg]'. Or take the engine sparse."
    ) from missing

_BOTH = "both.realistic."


def make_pykeen_loss(settings: TransESettings) -> Loss:
    """PyKEEN's class for each of our losses."""
    if settings.loss == "softmax":
        return InfoNCELoss(margin=0.0, log_adversarial_temperature=0.0)
    if settings.loss == "nssa":
        return NSSALoss(margin=settings.margin, adversarial_temperature=settings.temperature)
    return MarginRankingLoss(margin=settings.margin)


class PykeenEngine:
    """PyKEEN's TransE, trained with Adagrad and negatives drawn for each triple (sLCWA)."""

    def __init__(self, graph: Graph, settings: TransESettings) -> None:
        self.settings = settings
        self._known = torch.from_numpy(graph.known()).long()
        self._factory = CoreTriplesFactory(
            torch.from_numpy(graph.triples["train"]).long(),
            num_entities=len(graph.entities),
            num_relations=len(graph.relations),
            create_inverse_triples=settings.reciprocal,
        )
        unit = {} if settings.normalize else {"entity_constrainer": None}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.model = TransE(
                triples_factory=self._factory,
                embedding_dim=settings.size,
                scoring_fct_norm=settings.norm,
                loss=make_pykeen_loss(settings),
                random_seed=settings.seed,
                **unit,
            )
            self.model.reset_parameters_()
        self.optimizer = torch.optim.Adagrad(self.model.parameters(), lr=settings.learning_rate)

    def train_epoch(self, epoch: int, progress: Any) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * (1 - epoch / self.settings.epochs)
        loop = SLCWATrainingLoop(
            model=self.model,
            triples_factory=self._factory,
            optimizer=self.optimizer,
            negative_sampler="basic",
            negative_sampler_kwargs={"num_negs_per_pos": self.settings.negatives},
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.settings.seed * 1_000_003 + epoch + 1)
            losses = loop.train(
                self._factory,
                num_epochs=1,
                batch_size=self.settings.batch_size,
                continue_training=True,
                use_tqdm=False,
                pin_memory=False,
            )
        if progress is not None:
            progress.update(self._factory.num_triples)
        return float(losses[-1])

    def state(self) -> dict[str, Tensor]:
        optimizer = self.optimizer.state_dict()["state"]
        return {
            **{f"model.{name}": tensor for name, tensor in self.model.state_dict().items()},
            **{f"optimizer.{i}.{key}": tensor for i, found in optimizer.items() for key, tensor in found.items()},
        }

    def load(self, state: dict[str, Tensor]) -> None:
        model = {name.removeprefix("model."): tensor for name, tensor in state.items() if name.startswith("model.")}
        self.model.load_state_dict(model)
        optimizer = self.optimizer.state_dict()
        for i, found in optimizer["state"].items():
            optimizer["state"][i] = {key: state[f"optimizer.{i}.{key}"] for key in found}
        self.optimizer.load_state_dict(optimizer)

    def vectors(self) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            return self.model.entity_representations[0]().detach(), self.model.relation_representations[0]().detach()

    def evaluate(self, triples_T3: np.ndarray, *, progress: bool) -> dict[str, float]:
        evaluator = RankBasedEvaluator(filtered=True)
        self.model.eval()
        found = evaluator.evaluate(
            self.model,
            torch.from_numpy(triples_T3).long(),
            additional_filter_triples=[self._known],
            batch_size=self.settings.batch_size,
            use_tqdm=progress,
        )
        names = {"mrr": "inverse_harmonic_mean_rank", "mean_rank": "arithmetic_mean_rank"}
        names |= {f"hits@{k}": f"hits_at_{k}" for k in HITS}
        figures = {name: found.get_metric(_BOTH + pykeen) for name, pykeen in names.items()}
        for side in ("tail", "head"):
            figures[f"mrr_{side}s"] = found.get_metric(f"{side}.realistic.inverse_harmonic_mean_rank")
        return {**{name: round(float(value), 5) for name, value in figures.items()}, "triples": len(triples_T3)}
