"""The pretended GPU itself: what it counts, what it refuses, and that it is not seen to compute otherwise."""

import pytest
import torch

from spacy_luke.model import layer
from spacy_luke.model.luke import LukeEncoder, Windows
from spacy_luke.model.transfer import to_device, to_host
from tests.gpu.pretended import DEVICE, PretendedGPU, module_to_gpu
from tests.tiny import make_checkpoint

CPU = torch.device("cpu")


def masked_gradient(x):
    x = x.clone().requires_grad_()
    x.masked_fill(x > 1, 0.0)[torch.tensor([True, False, True]).to(x.device)].sum().backward()


WAITS = {
    "item": lambda x: x[0].item(),
    "float": lambda x: float(x.sum()),
    "bool": lambda x: bool((x > 0).all()),
    "to the CPU": lambda x: x.cpu(),
    "tolist": lambda x: x.tolist(),
    "copied to the CPU": lambda x: torch.empty(3).copy_(x),
    "nonzero": lambda x: torch.nonzero(x),
    "where": lambda x: torch.where(x > 1),
    "unique": lambda x: x.unique(),
    "mask": lambda x: x[x > 1],
    "set by a mask": lambda x: x.clone().__setitem__(x > 1, torch.zeros(()).to(DEVICE)),
    "masked_select": lambda x: x.masked_select(x > 1),
    "bincount": lambda x: x.long().bincount(),
    "repeat": lambda x: x.repeat_interleave(x.long()),
    "equal": lambda x: torch.equal(x, x),
}
NO_WAITS = {
    "sum": lambda x: x.sum(),
    "index": lambda x: x[x.argsort()],
    "masked_fill": lambda x: x.masked_fill(x > 1, 0.0),
    "where of three": lambda x: torch.where(x > 1, x, 0.0),
    "slice": lambda x: x[1:] + 1,
    "set in place": lambda x: x.clone().__setitem__(slice(0, 1), 5.0),
    "made there": lambda x: torch.arange(3, device=x.device) * x,
    "cumsum": lambda x: x.cumsum(0),
}


@pytest.mark.parametrize("name", WAITS)
def test_waits_are_counted(name):
    with PretendedGPU() as gpu:
        x = torch.tensor([1.0, 2.0, 3.0]).to(DEVICE)
        assert (gpu.waits.total(), gpu.transfers.total()) == (0, 1)
        WAITS[name](x)
        assert gpu.waits.total() == 1


def test_waits_of_a_backward_pass_are_counted():
    with PretendedGPU() as gpu:
        masked_gradient(torch.tensor([1.0, 2.0, 3.0]).to(DEVICE))
        assert gpu.waits.total() == 2


@pytest.mark.parametrize("name", NO_WAITS)
def test_others_are_none(name):
    with PretendedGPU() as gpu:
        x = torch.tensor([1.0, 2.0, 3.0]).to(DEVICE)
        NO_WAITS[name](x)
        assert (gpu.waits.total(), gpu.transfers.total()) == (0, 1)


def test_mixing_is_refused():
    with PretendedGPU():
        there, here = torch.ones(3).to(DEVICE), torch.ones(3)
        for mix in (lambda: there + here, lambda: there[here.long()], lambda: torch.cat([here, there])):
            with pytest.raises(RuntimeError, match="Expected all tensors on one device, but aten"):
                mix()
        with pytest.raises(RuntimeError, match="Expected all tensors on one device"):
            module_to_gpu(torch.nn.Linear(3, 2))(here)
        assert (there + torch.tensor(1.0)).tolist() == [2.0] * 3  # a single number is an argument


def test_a_wait_in_a_layer_is_found_with_its_place(monkeypatch):
    """Each layer has it, so that a bound of the whole is broken."""
    encoder, windows = LukeEncoder(make_checkpoint(num_layers=5).config).eval(), Windows(torch.arange(9), [4, 5])
    plain = layer.multiply

    def with_a_wait(x, *rest):
        assert x.abs().max().item() >= 0
        return plain(x, *rest)

    expected = encoder.word_states(windows)
    with PretendedGPU() as gpu, torch.no_grad():
        module_to_gpu(encoder)
        there = to_device(windows, DEVICE)
        gpu.forget()
        (states,) = to_host([encoder.word_states(there)])
        assert torch.allclose(states, expected, atol=1e-5)
        assert (gpu.waits.total(), gpu.transfers.total()) == (1, 1)
        gpu.forget()
        monkeypatch.setattr(layer, "multiply", with_a_wait)
        encoder.word_states(there)
        assert gpu.waits.total() == 5
        assert all("model/layer.py:" in where for where in gpu.waits)
