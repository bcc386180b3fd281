"""Linear layers by oneDNN: torch's results, for any number of rows, and only where they may be used."""

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.model import linear
from spacy_luke.model.linear import GROUP, MANY, Linear, activate, multiply
from spacy_luke.model.luke import LukeEncoder, Windows
from tests.model.noise import add_noise
from tests.tiny import make_checkpoint

ACTIVATIONS = ["", "gelu", "gelu_new", "relu"]


@pytest.fixture
def rows(monkeypatch):
    """oneDNN is used; the rows of each of its products."""
    if not linear._is_right():
        pytest.skip("this torch has no such operator")
    seen, plain = [], linear._multiply

    def counted(x_NK, *rest):
        seen.append(len(x_NK))
        return plain(x_NK, *rest)

    monkeypatch.setattr(linear, "_multiply", counted)
    monkeypatch.setattr(linear, "is_onednn_faster", lambda: True)
    return seen


def noise(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("biased", [True, False])
@torch.no_grad()
def test_results_are_those_of_torch(rows, activation, biased):
    weight_MK, bias_M = noise(9, 20), noise(9) if biased else None
    for n in (0, 1, GROUP - 1, GROUP, GROUP + 1, 100, 2 * GROUP, 3 * GROUP - 1, MANY - 1, MANY, MANY + 3):
        x_NK = noise(n, 20, seed=n)
        expected_NM = activate(F.linear(x_NK, weight_MK, bias_M), activation)
        torch.testing.assert_close(multiply(x_NK, weight_MK, bias_M, activation), expected_NM, atol=2e-5, rtol=1e-5)
    assert len(rows) > 10


@torch.no_grad()
def test_few_numbers_of_rows(rows):
    layer = Linear(4, 3)
    for n in range(MANY):
        layer(noise(n, 4))
    assert set(rows) == {GROUP * i for i in range(1, MANY // GROUP)}


@torch.no_grad()
def test_a_row_does_not_depend_on_its_batch(rows):
    layer, x_NK = Linear(20, 9), noise(400, 20)
    whole_NM = layer(x_NK)
    for n in (10, 70, 130, 399):
        torch.testing.assert_close(layer(x_NK[:n]), whole_NM[:n], atol=1e-6, rtol=1e-6)


def test_not_elsewhere(rows):
    """With gradients, in another number format, and of what is no matrix, torch's product is used."""
    layer, x_NK = Linear(20, 9), noise(100, 20)
    layer(x_NK).sum().backward()
    assert layer.weight.grad is not None
    with torch.no_grad():
        layer(x_NK.view(2, 50, 20))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert layer(x_NK).dtype == torch.bfloat16
        layer.bfloat16()(x_NK.bfloat16())
    assert not rows


@torch.no_grad()
def test_encoders_use_it(rows, monkeypatch):
    """All products of the layers, in groups of few numbers of rows; the states are the same."""
    checkpoint = make_checkpoint(max_positions=130)
    encoder = LukeEncoder(checkpoint.config).eval()
    add_noise(encoder, seed=3)
    windows = Windows(torch.arange(100) % 60, [60, 40])
    states_ND = encoder.encode_words(windows).states_ND
    assert len(rows) == 2 * 6 * checkpoint.config.num_layers
    assert set(rows) == {GROUP}
    monkeypatch.setattr(linear, "is_onednn_faster", lambda: False)
    torch.testing.assert_close(states_ND, encoder.encode_words(windows).states_ND, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("onednn", "mkl", "chosen"), [(1.0, 2.0, True), (1.0, 1.2, False), (2.0, 1.0, False)])
def test_the_faster_one_is_chosen(monkeypatch, onednn, mkl, chosen):
    """Where it is clearly faster."""
    now, plain = [0.0], F.linear

    def taking(seconds):
        def work(x_NK, weight_MK, bias_M, *_):
            now[0] += seconds
            return plain(x_NK, weight_MK, bias_M)

        return work

    monkeypatch.setattr(linear, "clock", lambda: now[0])
    monkeypatch.setattr(linear, "_multiply", taking(onednn))
    monkeypatch.setattr(linear.F, "linear", taking(mkl))
    assert linear._is_faster() == chosen


def test_wrong_or_absent(monkeypatch):
    linear.is_onednn_faster.cache_clear()
    monkeypatch.setattr(linear, "_is_faster", lambda: True)
    monkeypatch.setattr(linear, "_multiply", lambda x, weight, bias, name: F.linear(x, weight, bias) + 1e-2)
    assert not linear._is_right()

    def absent(*_):
        raise AttributeError("no such operator")

    monkeypatch.setattr(linear, "_multiply", absent)
    assert not linear._is_right()
    assert not linear.is_onednn_faster()
    linear.is_onednn_faster.cache_clear()
