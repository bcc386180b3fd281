"""What is learned of another model, beside torch's own losses and their gradients."""

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.model.partial_losses import span_loss
from spacy_luke.model.taught_losses import distributions, taught_binary_cross_entropy, taught_cross_entropy


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def taught_rows(n, classes):
    """Distributions, one of them certain, and rows of which nothing is said."""
    rows = random(n, classes, seed=3).softmax(-1)
    rows[1] = F.one_hot(torch.tensor(2), classes)
    rows[-2:] = -1
    return rows


def near(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def by_autograd(loss, *inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    value = loss(*inputs)
    return value.detach(), torch.autograd.grad(value, inputs)


def test_cross_entropy():
    logits, taught = random(7, 4), taught_rows(7, 4)

    def plain(x):
        return F.kl_div(x[:-2].log_softmax(-1), taught[:-2], reduction="sum")

    expected, (gradient,) = by_autograd(plain, logits)
    found, found_gradient = taught_cross_entropy(logits, taught)
    near(found, expected)
    near(found_gradient, gradient)
    assert not found_gradient[-2:].any()


def test_nothing_is_lost_where_the_student_says_the_same():
    logits = random(5, 3)
    loss, gradient = taught_cross_entropy(logits, logits.softmax(-1))
    near(loss, torch.zeros(()))
    near(gradient, torch.zeros(5, 3))
    loss, gradient = taught_binary_cross_entropy(logits[:, 0], torch.stack([1 - logits[:, 0].sigmoid()] * 2, 1))
    near(loss, torch.zeros(()))
    near(gradient, torch.zeros(5))


def test_proposals():
    logits, taught = random(7), taught_rows(7, 4)

    def plain(x):
        total = 0
        for z, row in zip(x[:-2], taught[:-2]):
            p, t = z.sigmoid(), 1 - row[0]
            total = total - t * p.log() - (1 - t) * (1 - p).log() + torch.xlogy(t, t) + torch.xlogy(1 - t, 1 - t)
        return total

    expected, (gradient,) = by_autograd(plain, logits)
    found, found_gradient = taught_binary_cross_entropy(logits, taught)
    near(found, expected)
    near(found_gradient, gradient)


@pytest.mark.parametrize("proposes", [True, False])
def test_gold_and_what_is_taught_are_added(proposes):
    kept = torch.tensor([0, 2, 3, 6])
    logits, taught = random(4, 4), taught_rows(7, 4)
    proposals = random(7, seed=1) if proposes else None
    gold = torch.tensor([-1, -1, 1, 0, -1, 3, 2])

    def both(allowed):
        return span_loss(logits, proposals, kept, gold, allowed, taught)

    for allowed in (None, torch.tensor([[True, False, True, False]])):
        alone, alone_gradients = span_loss(logits, proposals, kept, gold, allowed)
        more, gradient = taught_cross_entropy(logits, taught[kept])
        expected, gradients = alone + more, [alone_gradients[0] + gradient]
        if proposals is not None:
            more, gradient = taught_binary_cross_entropy(proposals, taught)
            expected, gradients = expected + more, [*gradients, alone_gradients[1] + gradient]
        found, found_gradients = both(allowed)
        near(found, expected)
        for one, other in zip([x for x in found_gradients if x is not None], gradients, strict=True):
            near(one, other)


def test_distributions():
    logits = random(3, 4)
    assert distributions(logits).sum(1) == pytest.approx([1, 1, 1])
    assert distributions(logits, several=True) == pytest.approx(logits.double().sigmoid().numpy())
