"""TransE whose step costs the rows it touches, not the whole table of entities: for graphs of millions of entities.

The tables are plain tensors. A step gathers the rows of a batch and of its shared negatives, asks autograd for their
gradients, and moves just these rows by row-wise Adagrad, which keeps one number a row. Shapes: T triples in a batch,
K negatives, N entities, D numbers in a vector, U different entities in a step.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .settings import TransESettings

_EPSILON = 1e-10
_FAR = 1e9  # distance of what must not count as a negative


def distances(queries_QD: Tensor, entities_ND: Tensor, norm: int) -> Tensor:
    """L1 or L2 distance of each query from each entity, (Q, N). L2 by a matrix product, much faster than pair by
    pair."""
    return torch.cdist(queries_QD, entities_ND, p=norm, compute_mode="use_mm_for_euclid_dist")


def loss_of(true_Q: Tensor, wrong_QK: Tensor, same_QK: Tensor, settings: TransESettings) -> Tensor:
    """The loss of distances from the right entity (Q,) and from the negatives (Q, K); `same`: this is the right one.

    softmax: cross-entropy of the right entity against the negatives, scores are negative distances (LibKGE's "kl").
    nssa: self-adversarial negative sampling (RotatE, Sun et al. 2019, eq. 5 and 6).
    margin: max(0, margin + right - wrong), mean over negatives (TransE, Bordes et al. 2013, eq. 1).
    """
    wrong_QK = wrong_QK.masked_fill(same_QK, _FAR)
    if settings.loss == "softmax":
        return (torch.logaddexp(torch.logsumexp(-wrong_QK, dim=1), -true_Q) + true_Q).mean()
    if settings.loss == "nssa":
        weights_QK = F.softmax(-settings.temperature * wrong_QK.detach(), dim=1)
        wrong_Q = (weights_QK * F.logsigmoid(wrong_QK - settings.margin)).sum(1)
        return -(F.logsigmoid(settings.margin - true_Q) + wrong_Q).mean() / 2
    return F.relu(settings.margin + true_Q[:, None] - wrong_QK).sum() / (~same_QK).sum().clamp_min(1)


@dataclass
class Tables:
    """All that a run has learnt: entities (N, D), relations (R or 2R, D), and the sums of Adagrad, (N,) and (R or
    2R,)."""

    entities_ND: Tensor
    relations_RD: Tensor
    entity_sums_N: Tensor
    relation_sums_R: Tensor

    @classmethod
    def fresh(cls, num_entities: int, num_relations: int, settings: TransESettings) -> "Tables":
        """Uniform in +-6 / sqrt(D), relations of length 1 (TransE, algorithm 1)."""
        random = torch.Generator().manual_seed(settings.seed)
        bound = 6 / settings.size**0.5
        if settings.reciprocal:
            num_relations *= 2
        entities_ND = torch.empty(num_entities, settings.size).uniform_(-bound, bound, generator=random)
        relations_RD = torch.empty(num_relations, settings.size).uniform_(-bound, bound, generator=random)
        if settings.normalize:
            entities_ND /= torch.linalg.vector_norm(entities_ND, dim=1, keepdim=True).clamp_min(_EPSILON)
        sums = torch.zeros(num_entities), torch.zeros(num_relations)
        return cls(entities_ND, F.normalize(relations_RD), *sums)

    def to_tensors(self) -> dict[str, Tensor]:
        return dict(vars(self))


def queries_of(
    heads_TD: Tensor, tails_TD: Tensor, relations_RD: Tensor, relations_T: Tensor, *, reciprocal: bool
) -> Tensor:
    """Where the tails, then the heads of triples are expected, (2T, D)."""
    forward_TD = relations_RD[relations_T]
    if reciprocal:
        back_TD = relations_RD[relations_T + len(relations_RD) // 2]
    else:
        back_TD = -forward_TD
    return torch.cat((heads_TD + forward_TD, tails_TD + back_TD))


def train_step(tables: Tables, triples_T3: Tensor, negatives_K: Tensor, rate: float, settings: TransESettings) -> float:
    """One step of the rows of a batch and its negatives. Returns the loss."""
    heads_T, relations_T, tails_T = triples_T3.unbind(1)
    ids_U, places = torch.unique(torch.cat((tails_T, heads_T, negatives_K)), return_inverse=True)
    wanted_2T, wrong_K = places[: 2 * len(triples_T3)], places[2 * len(triples_T3) :]
    rows_UD = tables.entities_ND[ids_U].requires_grad_()
    relations_RD = tables.relations_RD.clone().requires_grad_()
    true_2TD = F.embedding(wanted_2T, rows_UD)
    tails_TD, heads_TD = true_2TD.chunk(2)
    queries_2TD = queries_of(heads_TD, tails_TD, relations_RD, relations_T, reciprocal=settings.reciprocal)
    wrong_2TK = distances(queries_2TD, F.embedding(wrong_K, rows_UD), settings.norm)
    true_2T = torch.linalg.vector_norm(queries_2TD - true_2TD, ord=settings.norm, dim=1)
    loss = loss_of(true_2T, wrong_2TK, wanted_2T[:, None] == wrong_K, settings)
    rows_grad, relations_grad = torch.autograd.grad(loss, (rows_UD, relations_RD))
    adagrad(tables.entities_ND, tables.entity_sums_N, ids_U, rows_grad, rate, unit=settings.normalize)
    adagrad(tables.relations_RD, tables.relation_sums_R, slice(None), relations_grad, rate)
    return loss.item()


def adagrad(
    table: Tensor, sums: Tensor, rows: Tensor | slice, gradient_UD: Tensor, rate: float, *, unit: bool = False
) -> None:
    """Row-wise Adagrad on some rows of a table, in place; `unit`: these rows get length 1."""
    sums_U = sums[rows] + gradient_UD.square().mean(1)
    moved_UD = table[rows] - rate * gradient_UD / (sums_U.sqrt() + _EPSILON)[:, None]
    sums[rows] = sums_U
    table[rows] = F.normalize(moved_UD) if unit else moved_UD


def train_epoch(
    tables: Tables, triples_T3: Tensor, epoch: int, settings: TransESettings, *, progress: Any = None
) -> float:
    """All triples once, in an order and with negatives that follow from the seed and the epoch (from 0). Mean loss."""
    random = torch.Generator().manual_seed(settings.seed * 1_000_003 + epoch + 1)
    order_T = torch.randperm(len(triples_T3), generator=random)
    steps = range(0, len(order_T), settings.batch_size)
    everything, total, num_entities = settings.epochs * len(steps), 0.0, len(tables.entities_ND)
    for i, start in enumerate(steps):
        batch_T3 = triples_T3[order_T[start : start + settings.batch_size]].long()
        negatives_K = torch.arange(num_entities)
        if 0 < settings.negatives < num_entities:
            negatives_K = torch.randint(num_entities, (settings.negatives,), generator=random)
        rate = settings.learning_rate * (1 - (epoch * len(steps) + i) / everything)
        total += train_step(tables, batch_T3, negatives_K, rate, settings) * len(batch_T3)
        if progress is not None:
            progress.update(len(batch_T3))
    return total / len(order_T)
