"""Losses of what is only partly known, against plain sums of probabilities and autograd."""

import math

import pytest
import torch

from spacy_luke.model.losses import binary_cross_entropy, cross_entropy
from spacy_luke.model.partial_losses import marginal_binary_cross_entropy, marginal_cross_entropy, span_loss

TABLE = torch.tensor([[1, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 0, 1]], dtype=torch.bool)  # may be none, is one, may


def made(seed, n=24):
    """Logits, and gold: classes, unknown ones, and sets."""
    generator = torch.Generator().manual_seed(seed)
    logits_EL = 3 * torch.randn(n, 5, generator=generator)
    proposals_E = 3 * torch.randn(n, generator=generator)
    gold_E = torch.tensor([0, 0, 1, 4, -1, -2, -3, -4] * (n // 8))
    return logits_EL, proposals_E, gold_E


@pytest.mark.parametrize("seed", range(3))
def test_summed_probability_of_what_may_be(seed):
    logits_EL, _, gold_E = made(seed)
    x_EL = logits_EL.double().requires_grad_()
    p_EL = x_EL.softmax(-1)
    plain = torch.zeros((), dtype=torch.double)
    for p_L, gold in zip(p_EL, gold_E.tolist()):
        if gold >= 0:
            plain = plain - p_L[gold].log()
        elif gold < -1:
            plain = plain - p_L[TABLE[-2 - gold]].sum().log()
    (wanted_EL,) = torch.autograd.grad(plain, x_EL)
    loss, gradient_EL = marginal_cross_entropy(logits_EL, gold_E, TABLE)
    assert loss == pytest.approx(float(plain.detach()), rel=1e-5)
    torch.testing.assert_close(gradient_EL, wanted_EL.float(), atol=1e-5, rtol=1e-5)
    assert not gradient_EL[gold_E == -1].any()


@pytest.mark.parametrize("seed", range(3))
def test_proposals_of_spans_that_may_be_mentions(seed):
    """A mention with an open label is "no mention" to who knows no such label."""
    logits_EL, proposals_E, gold_E = made(seed)
    kept_K = torch.arange(0, len(gold_E), 3)
    x_E = proposals_E.double().requires_grad_()
    p_E = x_E.sigmoid()
    label_EL = logits_EL.double()[:, 1:].softmax(-1)
    plain = torch.zeros((), dtype=torch.double)
    for i, gold in enumerate(gold_E.tolist()):
        if gold > 0 or gold == -3:
            plain = plain - p_E[i].log()
        elif gold == 0:
            plain = plain - (1 - p_E[i]).log()
        elif gold < -1:
            open_L = TABLE[-2 - gold, 1:]
            share = float(label_EL[i][open_L].sum()) if i % 3 == 0 else float(open_L.sum()) / 4
            plain = plain - (1 - p_E[i] * (1 - share)).log()
    (wanted_E,) = torch.autograd.grad(plain, x_E)
    loss, gradient_E = marginal_binary_cross_entropy(proposals_E, gold_E, TABLE, logits_EL[kept_K], kept_K)
    assert loss == pytest.approx(float(plain.detach()), rel=1e-5)
    torch.testing.assert_close(gradient_E, wanted_E.float(), atol=1e-5, rtol=1e-5)
    assert not gradient_E[gold_E == -1].any()


def test_without_sets_it_is_the_loss_of_the_papers():
    logits_EL, proposals_E, gold_E = made(0)
    gold_E = gold_E.clamp(min=-1)
    kept_K = torch.arange(1, len(gold_E), 2)
    loss, (d_logits, d_proposals) = span_loss(logits_EL[kept_K], proposals_E, kept_K, gold_E, None)
    plain, plain_logits = cross_entropy(logits_EL[kept_K], gold_E[kept_K])
    extra, plain_proposals = binary_cross_entropy(proposals_E, gold_E)
    assert loss == plain + extra
    assert torch.equal(d_logits, plain_logits)
    assert torch.equal(d_proposals, plain_proposals)
    # Nor do sets of others change what is known of a span.
    known = marginal_cross_entropy(logits_EL, gold_E, TABLE), cross_entropy(logits_EL, gold_E)
    assert float(known[0][0]) == pytest.approx(float(known[1][0]), rel=1e-6)
    torch.testing.assert_close(known[0][1], known[1][1], atol=1e-6, rtol=1e-6)
    proposed = marginal_binary_cross_entropy(proposals_E, gold_E, TABLE, logits_EL, torch.arange(len(gold_E)))
    assert float(proposed[0]) == pytest.approx(float(extra), rel=1e-6)
    torch.testing.assert_close(proposed[1], plain_proposals, atol=1e-6, rtol=1e-6)


def test_extreme_logits_are_numbers():
    logits_EL = torch.tensor([[200.0, -200, -200, -200, -200], [-200.0, 200, 200, -200, 200]])
    for gold in (-2, -3, -4):
        gold_E = torch.tensor([gold, gold])
        loss, gradient_EL = marginal_cross_entropy(logits_EL, gold_E, TABLE)
        assert math.isfinite(loss)
        assert torch.isfinite(gradient_EL).all()
        found = marginal_binary_cross_entropy(torch.tensor([300.0, -300]), gold_E, TABLE, logits_EL, torch.arange(2))
        assert math.isfinite(found[0])
        assert torch.isfinite(found[1]).all()
