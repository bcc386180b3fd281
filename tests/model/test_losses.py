"""Losses of components and their gradients, against plain Python and against differences."""

import math

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.model.losses import binary_cross_entropy, cross_entropy, multi_label_cross_entropy


def logits_and_gold(seed, shape, classes):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(shape, generator=generator)
    gold = torch.randint(0, classes, shape[:1], generator=generator)
    gold[::4] = -1
    return logits, gold


@pytest.mark.parametrize("seed", range(3))
def test_cross_entropy(seed):
    logits, gold = logits_and_gold(seed, (9, 5), 5)
    plain = 0.0
    for row, k in zip(logits.tolist(), gold.tolist()):
        if k >= 0:
            plain += math.log(sum(map(math.exp, row))) - row[k]
    loss, gradient = cross_entropy(logits, gold)
    assert loss == pytest.approx(plain, rel=1e-5)
    assert loss == pytest.approx(float(F.cross_entropy(logits, gold, ignore_index=-1, reduction="sum")), rel=1e-5)
    check_gradient(lambda x: cross_entropy(x, gold)[0], logits, gradient)
    assert not gradient[gold < 0].any()


@pytest.mark.parametrize("seed", range(3))
def test_binary_cross_entropy(seed):
    logits, gold = logits_and_gold(seed, (12,), 3)
    plain = 0.0
    for x, k in zip(logits.tolist(), gold.tolist()):
        if k >= 0:
            plain += math.log(1 + math.exp(-x)) if k > 0 else math.log(1 + math.exp(x))
    loss, gradient = binary_cross_entropy(logits, gold)
    assert loss == pytest.approx(plain, rel=1e-5)
    check_gradient(lambda x: binary_cross_entropy(x, gold)[0], logits, gradient)
    assert not gradient[gold < 0].any()


@pytest.mark.parametrize("focus", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_multi_label_cross_entropy(seed, focus):
    """-log p of the labels that hold, p ** focus * -log(1 - p) of the others, and the gradient of just this."""
    generator = torch.Generator().manual_seed(seed)
    logits = (3 * torch.randn(7, 5, generator=generator, dtype=torch.double)).requires_grad_()
    gold = (torch.rand(7, 5, generator=generator) < 0.3).float()
    gold[0] = 0.0
    p = torch.sigmoid(logits)
    wanted = torch.where(gold > 0, -p.log(), -((1 - p).log()) * p**focus).sum()
    (gradient_wanted,) = torch.autograd.grad(wanted, logits)
    wanted = float(wanted.detach())
    loss, gradient = multi_label_cross_entropy(logits.detach().float(), gold, focus=focus)
    assert loss == pytest.approx(wanted, rel=1e-5)
    torch.testing.assert_close(gradient, gradient_wanted.float(), atol=1e-5, rtol=1e-4)
    if not focus:
        theirs = F.binary_cross_entropy_with_logits(logits.detach(), gold.double(), reduction="sum")
        assert loss == pytest.approx(float(theirs), rel=1e-5)


@pytest.mark.parametrize("focus", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("value", [0.0, 60.0, -60.0, 1e4, -1e4])
def test_extreme_logits_of_many_labels(value, focus):
    """Finite float32 losses and gradients, from bfloat16 too; called where gradients are off, and with nothing at
    all."""
    gold = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    for dtype in (torch.float32, torch.bfloat16):
        with torch.no_grad():
            loss, gradient = multi_label_cross_entropy(torch.full((2, 2), value, dtype=dtype), gold, focus=focus)
        assert math.isfinite(loss)
        assert gradient.dtype == torch.float32
        assert torch.isfinite(gradient).all()
    assert multi_label_cross_entropy(torch.empty(0, 2), torch.empty(0, 2), focus=focus)[0] == 0.0


def check_gradient(function, x, gradient):
    """Central differences, one number at a time."""
    assert gradient.shape == x.shape
    step = 1e-2
    for i in range(x.numel()):
        up, down = x.clone(), x.clone()
        up.view(-1)[i] += step
        down.view(-1)[i] -= step
        wanted = (float(function(up)) - float(function(down))) / (2 * step)
        assert float(gradient.view(-1)[i]) == pytest.approx(wanted, abs=2e-3)


@pytest.mark.parametrize(("function", "shape"), [(cross_entropy, (4, 3)), (binary_cross_entropy, (4,))])
def test_nothing_known(function, shape):
    loss, gradient = function(torch.ones(shape), torch.full((4,), -1))
    assert loss == 0.0
    assert not gradient.any()


@pytest.mark.parametrize(("function", "shape"), [(cross_entropy, (2, 3)), (binary_cross_entropy, (2,))])
def test_extreme_and_half_logits(function, shape):
    """Great logits and bfloat16 give finite float32 losses and gradients."""
    for logits in (torch.full(shape, 1e4), torch.full(shape, -1e4), torch.ones(shape, dtype=torch.bfloat16)):
        loss, gradient = function(logits, torch.tensor([0, 2]))
        assert math.isfinite(loss)
        assert gradient.dtype == torch.float32
        assert torch.isfinite(gradient).all()
