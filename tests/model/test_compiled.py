"""Compiled layers: the states and gradients of plain ones, for batches of any lengths with one graph."""

import shutil
from functools import partial

import numpy as np
import pytest
import torch

from spacy_luke.model.compiled import compile_layers
from spacy_luke.model.luke import LukeEncoder, Mentions, make_windows
from tests.tiny import make_checkpoint

CPU = torch.device("cpu")
NEEDED = pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a compiler of C++")


def learn(encoder, lengths, counts):
    """States of a batch, and the gradients of all parameters."""
    windows = make_windows(np.arange(sum(lengths)), lengths, device=CPU, counts=counts)
    at = torch.ones(sum(counts), dtype=torch.int64)
    states = encoder.forward(windows, Mentions(3 * at, at, at, counts))
    sum(x.pow(2).sum() for x in states).backward()
    gradients = [p.grad for p in encoder.parameters() if p.grad is not None]
    encoder.zero_grad(set_to_none=True)
    return [*states, *gradients]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=(pytest.mark.slow, NEEDED))])
def test_equal_to_plain_ones(backend, monkeypatch):
    monkeypatch.setattr("torch.compile", partial(torch.compile, backend=backend))
    torch._dynamo.reset()
    graphs_before = torch._dynamo.utils.counters["stats"]["unique_graphs"]  # of other tests in this process
    checkpoint = make_checkpoint(dropout=0.0, attention_dropout=0.0)
    plain, compiled = (LukeEncoder(checkpoint.config).train() for _ in range(2))
    for encoder in (plain, compiled):
        encoder.load_state_dict({name: checkpoint.tensors[f"encoder.{name}"] for name in encoder.state_dict()})
    assert compile_layers(compiled, CPU) == checkpoint.config.num_layers
    assert compiled.state_dict().keys() == plain.state_dict().keys()
    for lengths, counts in (([5, 7, 7], [2, 0, 3]), ([9, 4], [1, 2]), ([6, 6, 6, 8], [1, 1, 2, 2]), ([11, 3], [4, 1])):
        for x, y in zip(learn(plain, lengths, counts), learn(compiled, lengths, counts), strict=True):
            torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"] - graphs_before
    assert 0 < graphs <= 2 * checkpoint.config.num_layers


def test_without_a_compiler(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match=r"needs a compiler of C\+\+ on the CPU, but there is none of .*g\+\+"):
        compile_layers(LukeEncoder(make_checkpoint().config), CPU)
