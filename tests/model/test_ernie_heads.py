"""Heads of ERNIE: the denoiser of entities, pooled classification, losses with nothing to predict."""

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.model.ernie_heads import EntityDenoiser, PooledHead
from spacy_luke.model.losses import mean_cross_entropy, pretraining_losses
from tests.model.ernies import SIZE, assert_close, make_ernie
from tests.model.noise import add_noise


@torch.no_grad()
def test_entity_denoiser():
    config = make_ernie().config
    states, candidates = torch.randn(5, 24), torch.randn(7, SIZE)
    paper = add_noise(EntityDenoiser(config, transform=False))
    assert_close([paper(states, candidates)], [paper.dense(states) @ candidates.T])
    code = add_noise(EntityDenoiser(config))
    assert_close([code(states, candidates)], [code.norm(F.gelu(code.dense(states))) @ candidates.T])
    assert set(code.state_dict()) - set(paper.state_dict()) == {"norm.weight", "norm.bias"}


def test_losses_with_nothing_to_predict():
    """The original's mean would be no number."""
    logits = torch.randn(4, 3, requires_grad=True)
    loss = mean_cross_entropy(logits, torch.full((4,), -1))
    loss.backward()
    assert loss.item() == 0
    assert not logits.grad.any()
    none = torch.empty(0, dtype=torch.long)
    gold = torch.tensor([0, -1, 2, -1])
    words, sentences, entities = pretraining_losses((logits, logits, torch.empty(0, 5)), (gold, gold, none))
    expected = F.cross_entropy(logits[[0, 2]], gold[[0, 2]])
    assert words.item() == pytest.approx(expected.item())
    assert sentences.item() == words.item()
    assert entities.item() == 0


def test_pooled_head():
    head = add_noise(PooledHead(6, 3, bias=False))
    x = torch.randn(2, 6)
    assert torch.equal(head(x), x @ head.classifier.weight.T)
    assert set(head.state_dict()) == {"classifier.weight"}
    head.train()
    assert not torch.equal(head(torch.ones(50, 6)), head(torch.ones(50, 6)))
