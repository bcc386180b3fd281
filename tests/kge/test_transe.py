"""The sparse step against a plain twin: the whole table in autograd, loops for the losses."""

import math

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.kge.settings import TransESettings
from spacy_luke.kge.transe import Tables, distances, loss_of, train_epoch, train_step

N, R = 30, 3


def make_batch(seed=0):
    random = torch.Generator().manual_seed(seed)
    ends = torch.randint(N, (7, 2), generator=random)
    relations = torch.randint(R, (7, 1), generator=random)
    negatives = torch.randint(N, (12,), generator=random)
    return torch.cat((ends[:, :1], relations, ends[:, 1:]), dim=1), negatives


def plain_loss(entities, relations, triples, negatives, settings):
    """One triple, one side, one negative at a time (Bordes et al. 2013; Sun et al. 2019)."""
    total, pairs, queries = 0, 0, 0
    for side in ("tail", "head"):
        for head, relation, tail in triples.tolist():
            forward = relations[relation]
            back = relations[relation + R] if settings.reciprocal else -forward
            query = entities[head] + forward if side == "tail" else entities[tail] + back
            right = tail if side == "tail" else head
            near = torch.linalg.vector_norm(query - entities[right], ord=settings.norm)
            wrong = [n for n in negatives.tolist() if n != right]
            far = torch.stack([torch.linalg.vector_norm(query - entities[n], ord=settings.norm) for n in wrong])
            queries, pairs = queries + 1, pairs + len(wrong)
            if settings.loss == "softmax":
                total = total - F.log_softmax(torch.cat((-near[None], -far)), dim=0)[0]
            elif settings.loss == "nssa":
                weights = F.softmax(-settings.temperature * far.detach(), dim=0)
                total = total - F.logsigmoid(settings.margin - near) / 2
                total = total - (weights * F.logsigmoid(far - settings.margin)).sum() / 2
            else:
                total = total + sum(F.relu(settings.margin + near - d) for d in far)
    return total / (pairs if settings.loss == "margin" else queries)


@pytest.mark.parametrize("loss", ["softmax", "nssa", "margin"])
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("reciprocal", "normalize"), [(False, False), (True, True)])
@pytest.mark.parametrize("everything", [False, True])
def test_a_step_equals_its_plain_twin(loss, norm, reciprocal, normalize, everything):
    settings = TransESettings(
        size=6, loss=loss, norm=norm, reciprocal=reciprocal, normalize=normalize, margin=2.0, temperature=0.7
    )
    triples, negatives = make_batch()
    if everything:
        negatives = torch.arange(N)
    ours, twin = Tables.fresh(N, R, settings), Tables.fresh(N, R, settings)
    entities, relations = twin.entities_ND.requires_grad_(), twin.relations_RD.requires_grad_()
    expected = plain_loss(entities, relations, triples, negatives, settings)
    gradients = torch.autograd.grad(expected, (entities, relations))
    found = train_step(ours, triples, negatives, 0.1, settings)
    assert found == pytest.approx(expected.item(), abs=1e-5)
    for name, before, gradient in (("entities_ND", entities, gradients[0]), ("relations_RD", relations, gradients[1])):
        moved = before - 0.1 * gradient / (gradient.square().mean(1, keepdim=True).sqrt() + 1e-10)
        if normalize and name == "entities_ND":
            moved = F.normalize(moved)
        torch.testing.assert_close(getattr(ours, name), moved.detach(), atol=2e-4, rtol=0)


def test_only_touched_rows_move():
    settings = TransESettings(size=6, normalize=True)
    triples, negatives = make_batch()
    tables = Tables.fresh(N, R, settings)
    before = tables.entities_ND.clone()
    train_step(tables, triples, negatives, 0.1, settings)
    touched = set(triples[:, [0, 2]].flatten().tolist()) | set(negatives.tolist())
    moved = (tables.entities_ND != before).any(1).nonzero().flatten().tolist()
    assert set(moved) <= touched
    assert len(touched) < N
    assert set(tables.entity_sums_N.nonzero().flatten().tolist()) <= touched


@pytest.mark.parametrize("norm", [1, 2])
def test_distances(norm):
    random = torch.Generator().manual_seed(0)
    queries, entities = torch.randn(5, 8, generator=random), torch.randn(9, 8, generator=random)
    expected = [[math.dist(q, e) if norm == 2 else sum(map(abs, q - e)) for e in entities] for q in queries]
    torch.testing.assert_close(distances(queries, entities, norm), torch.tensor(expected), atol=1e-4, rtol=0)


def test_the_loss_falls_and_epochs_are_repeatable():
    settings = TransESettings(size=8, epochs=5, batch_size=4, negatives=10, learning_rate=0.3)
    triples = torch.cat([make_batch(seed)[0] for seed in range(4)]).int()
    runs = []
    for _ in range(2):
        tables = Tables.fresh(N, R, settings)
        runs.append([train_epoch(tables, triples, epoch, settings) for epoch in range(5)])
    assert runs[0] == runs[1]
    assert runs[0][-1] < runs[0][0]


def test_a_right_entity_among_the_negatives_does_not_count():
    settings = TransESettings(loss="margin", margin=1.0)
    true, wrong = torch.tensor([1.0]), torch.tensor([[0.5, 1.0, 9.0]])
    same = torch.tensor([[False, True, False]])
    assert loss_of(true, wrong, same, settings).item() == pytest.approx(1.5 / 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "fast"}, "engine must be one of"),
        ({"loss": "mse"}, "loss must be one of"),
        ({"norm": 3}, "norm must be one of"),
        ({"size": 0}, "size must be 1 or more"),
        ({"negatives": -1}, "negatives must not be negative"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"engine": "pykeen", "negatives": 0}, "needs 1 or more negatives"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        TransESettings(**settings)
