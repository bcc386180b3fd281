"""Which way int8 matrices are multiplied: by torch's operator, where it is exact and not slower than float32."""

import pytest
import torch

from spacy_luke.model import int8
from spacy_luke.model.int8 import products_with
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
