"""Dropout with few draws: shares, averages, gradients and repeatability are those of torch's."""

import pytest
import torch

from spacy_luke.model.dropout import Dropout, dropout

SHARES = {0.001: 66 / 65536, 0.03: 1966 / 65536, 0.1: 26 / 256, 0.5: 0.5, 0.9: 230 / 256}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("rate", SHARES)
def test_share_and_average(rate, dtype):
    torch.manual_seed(0)
    x = torch.ones(501, 1999, dtype=dtype)  # no multiple of four
    y = dropout(x, rate, True)
    assert y.shape == x.shape
    assert y.dtype == dtype
    share = (y == 0).double().mean().item()
    real = SHARES[rate]
    assert abs(real - rate) <= 0.02 * rate
    assert abs(share - real) < 5 * (real * (1 - real) / x.numel()) ** 0.5
    kept = y[y != 0].double()
    assert (kept - 1 / (1 - real)).abs().max().item() < (1e-5 if dtype != torch.bfloat16 else 2**-8 / (1 - real))


def test_neighbours_are_independent():
    torch.manual_seed(1)
    fallen = (dropout(torch.ones(400_000), 0.3, True) == 0).double()
    for distance in (1, 2, 3, 4, 7, 8, 16):
        together = (fallen[distance:] * fallen[:-distance]).mean().item()
        assert abs(together - 0.09) < 0.003, distance


def test_gradients_fall_where_numbers_fall():
    torch.manual_seed(2)
    x = torch.randn(7, 13, requires_grad=True)
    y = dropout(x, 0.4, True)
    y.sum().backward()
    torch.testing.assert_close(x.grad * x.detach(), y.detach())
    assert 0 < (x.grad == 0).sum() < x.numel()


def test_the_generator_decides():
    x = torch.ones(100)
    torch.manual_seed(3)
    first, second = dropout(x, 0.5, True), dropout(x, 0.5, True)
    torch.manual_seed(3)
    assert torch.equal(first, dropout(x, 0.5, True))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("shape", [(), (0,), (0, 5), (1,), (3, 1)])
def test_shapes(shape):
    assert dropout(torch.ones(shape), 0.5, True).shape == shape


def test_rates_at_the_ends_and_no_training():
    x = torch.randn(50)
    assert torch.equal(dropout(x, 0.0, True), x)
    assert torch.equal(dropout(x, 1.0, True), torch.zeros(50))
    assert dropout(x, 0.5, False) is x
    layer = Dropout(0.5)
    assert not torch.equal(layer(x), x)
    assert layer.eval()(x) is x
