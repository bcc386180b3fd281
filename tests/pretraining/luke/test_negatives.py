"""Sampled entities: their weights make the estimate of the whole sum unbiased, and all of them give the whole
softmax."""

import numpy as np
import pytest
import torch
from torch import nn

from spacy_luke.model.config import LukeConfig
from spacy_luke.model.losses import summed_cross_entropy
from spacy_luke.model.masked import MaskedEntityHead
from spacy_luke.pretraining.luke.negatives import DISTRIBUTIONS, EntitySampler, SamplingSettings

ROWS = 60


@pytest.fixture
def head():
    torch.manual_seed(0)
    config = LukeConfig(vocab_size=9, entity_vocab_size=ROWS, hidden_size=16, num_heads=2, entity_size=8)
    head = MaskedEntityHead(config)
    for p in head.parameters():
        nn.init.normal_(p, std=0.4)
    return head


def sampled_loss(head, states, table, gold, sampler, seed):
    rows, weights = sampler.sample(gold.numpy(), np.random.default_rng(seed))
    logits = head.sampled(
        states, table, gold_K=gold, sampled_C=torch.from_numpy(rows), log_weight_C=torch.from_numpy(weights)
    )
    return summed_cross_entropy(logits, torch.zeros_like(gold))[0], logits


@pytest.mark.slow
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("batch_entities", [True, False])
@torch.no_grad()
def test_the_estimate_of_the_sum_is_unbiased(head, distribution, batch_entities):
    """Over many draws the sampled sum of exponentials of the others is that of all others."""
    settings = SamplingSettings(negatives=4, distribution=distribution, batch_entities=batch_entities)
    counts = np.r_[0, 0, 0, np.linspace(20, 1, ROWS - 3)]
    sampler = EntitySampler(settings, first=3, end=ROWS, counts_R=counts)
    states, table = torch.randn(1, 16), torch.randn(ROWS, 8)
    gold, whole = torch.tensor([7]), head(states, table)[0]
    expected = float(whole[3:].exp().sum() - whole[7].exp())
    rng, found = np.random.default_rng(0), []
    for seed in range(2500):
        others = rng.choice(ROWS, size=2, p=counts / counts.sum())  # the batch's other entities, as often as they come
        rows, weights = sampler.sample(np.r_[7, others], np.random.default_rng(seed))
        logits = head.sampled(
            states, table, gold_K=gold, sampled_C=torch.from_numpy(rows), log_weight_C=torch.from_numpy(weights)
        )
        found.append(float(logits[0, 1:].exp().sum()))
    assert np.mean(found) == pytest.approx(expected, abs=4 * np.std(found) / 2500**0.5)
    assert np.std(found) / 2500**0.5 < 0.05 * expected


def test_all_of_them_are_the_whole_softmax(head):
    """So many draws that every entity is there for sure: losses and gradients are equal."""
    sampler = EntitySampler(SamplingSettings(negatives=100_000, distribution="uniform"), first=0, end=ROWS)
    states, table = torch.randn(5, 16), torch.randn(ROWS, 8, requires_grad=True)
    gold = torch.tensor([3, 9, 9, 40, 59])
    sampled, logits = sampled_loss(head, states, table, gold, sampler, 0)
    assert logits.shape == (5, 1 + ROWS)
    whole, count = summed_cross_entropy(head(states, table), gold)
    assert int(count) == 5
    assert float(sampled.detach()) == pytest.approx(float(whole.detach()), abs=1e-4)
    ours, theirs = (torch.autograd.grad(x, [table, *head.parameters()]) for x in (sampled, whole))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(ours, theirs, strict=True))


def test_the_gold_entity_counts_once(head):
    sampler = EntitySampler(SamplingSettings(negatives=2000), first=3, end=ROWS)
    _, logits = sampled_loss(head, torch.randn(2, 16), torch.randn(ROWS, 8), torch.tensor([5, 6]), sampler, 0)
    assert torch.isinf(logits[:, 1:]).sum(1).tolist() == [1, 1]


def test_who_is_drawn():
    counts = np.zeros(ROWS)
    sampler = EntitySampler(SamplingSettings(negatives=30, batch_entities=False), first=3, end=ROWS)
    for seed in range(2000):
        rows, weights = sampler.sample(np.array([50]), np.random.default_rng(seed))
        assert len(rows) == len(set(rows.tolist())) == len(weights)
        assert rows.min() >= 3
        counts[rows] += 1
    expected = 1 - (1 - sampler.drawn_R) ** 30
    assert np.abs(counts / 2000 - expected).max() < 0.05
    assert counts[3] > 5 * counts[ROWS - 1]


def test_an_entity_that_nobody_counts():
    """[UNK] may be asked, but it is no candidate where its share is not known."""
    sampler = EntitySampler(SamplingSettings(negatives=5), first=3, end=ROWS)
    rows, _ = sampler.sample(np.array([1, 9]), np.random.default_rng(0))
    assert 9 in rows
    assert 1 not in rows


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SamplingSettings(negatives=0), "negatives must be"),
        (lambda: SamplingSettings(distribution="normal"), "distribution must be one of"),
        (lambda: EntitySampler(SamplingSettings(), first=3, end=3), "Expected entities beside the special ones"),
    ],
)
def test_impossible_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()
