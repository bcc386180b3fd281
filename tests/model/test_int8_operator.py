"""Which way int8 matrices are multiplied: by torch's operator, where it is exact and not slower than float32."""

import copy
import pickle

import pytest
import torch
from torch import nn

from spacy_luke.model import int8
from spacy_luke.model.int8 import QuantizedLinear, products_with
from tests.model.noise import integers


@pytest.mark.parametrize("operator", ["saturates", "fails", "absent", "right"])
def test_the_operator_is_chosen_by_its_result(monkeypatch, operator):
    def saturating(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """As instructions that multiply without signs: activations move up by 128, and the weights' sums go again."""
        pairs = ((a.int() + 128)[:, :, None] * b.int()[None]).split(2, 1)
        return (sum(x.sum(1).clamp(-(2**15), 2**15 - 1) for x in pairs) - 128 * b.int().sum(0)).int()

    def failing(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("not implemented for 'Char'")

    if operator == "absent":
        monkeypatch.delattr(torch, "_int_mm", raising=False)
    else:
        found = {"saturates": saturating, "fails": failing, "right": lambda a, b: (a.long() @ b.long()).int()}
        monkeypatch.setattr(torch, "_int_mm", found[operator], raising=False)
    asked = int8.has_exact_operator.__wrapped__()
    assert asked == (operator == "right" and torch.backends.mkldnn.is_available())


@pytest.mark.parametrize(("exact", "slow"), [(True, True), (True, False), (False, False)])
def test_an_operator_that_is_slower_than_float_is_not_taken(monkeypatch, exact, slow):
    """torch's is a plain loop where oneDNN has no kernels for the chip: exact, and 30 times slower."""
    calls = []

    def operator(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        calls.append(len(a))
        return (a.long() @ b.long()).int()

    monkeypatch.setattr(int8, "has_exact_operator", lambda: exact)
    monkeypatch.setattr(int8, "_is_float_faster", lambda: slow)
    monkeypatch.setattr(int8, "is_operator_best", int8.is_operator_best.__wrapped__)
    monkeypatch.setattr(torch, "_int_mm", operator, raising=False)
    x_NK, weight_MK = integers(5, 24), integers(3, 24, seed=1)
    assert torch.equal(products_with(weight_MK)(x_NK).long(), x_NK.long() @ weight_MK.long().t())
    assert calls == ([5] if exact and not slow else [])


def test_both_ways_are_timed(monkeypatch):
    turns = 3
    seen = {"operator": 0, "float": 0}

    def compare(one, other, *, gain):
        for _ in range(turns):
            one(), other()
        return seen["operator"] > seen["float"]

    def operator(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        seen["operator"] += 2
        return (a.float() @ b.float()).int()

    linear_of = int8.linear_of
    monkeypatch.setattr(int8, "linear_of", lambda *x: seen.update(float=seen["float"] + 1) or linear_of(*x))
    monkeypatch.setattr(int8, "is_clearly_faster", compare)
    monkeypatch.setattr(torch, "_int_mm", operator, raising=False)
    assert int8._is_float_faster()
    assert seen == {"operator": 2 * turns, "float": turns}


# ---- the weight in float32, where float32 multiplies


@pytest.fixture
def counted(monkeypatch):
    """How often a weight was made float32."""
    made = []
    in_float = int8.in_float
    monkeypatch.setattr(int8, "is_operator_best", lambda: False)
    monkeypatch.setattr(int8, "in_float", lambda weight: made.append(1) or in_float(weight))
    return made


def test_it_is_made_once_and_anew_where_the_weight_changes(counted):
    torch.manual_seed(0)
    quantized, x_NK = QuantizedLinear(nn.Linear(24, 5)), torch.randn(3, 24)
    first = quantized(x_NK)
    assert torch.equal(quantized(x_NK), first)
    assert len(counted) == 1
    with torch.no_grad():
        quantized.weight.neg_()
    changed = quantized(x_NK)
    assert len(counted) == 2
    bias = quantized.bias
    assert torch.allclose(changed - bias, bias - first, atol=1e-6)


def test_copies_and_files_do_not_have_it(counted):
    quantized, x_NK = QuantizedLinear(nn.Linear(24, 5)), torch.randn(3, 24)
    expected = quantized(x_NK)
    assert set(quantized.state_dict()) == {"weight", "scale", "bias"}
    for twin in (copy.deepcopy(quantized), pickle.loads(pickle.dumps(quantized))):
        assert twin._floats is None
        assert torch.equal(twin(x_NK), expected)
    assert len(counted) == 3


def test_weights_whose_changes_cannot_be_seen_are_not_held(counted):
    with torch.inference_mode():
        quantized, x_NK = QuantizedLinear(nn.Linear(24, 5)), torch.randn(3, 24)
        first = quantized(x_NK)
        quantized.weight.neg_()
        assert not torch.equal(quantized(x_NK), first)
