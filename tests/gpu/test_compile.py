"""The encoder's passes are one graph each: nothing in them asks a tensor for its values."""

import itertools
import shutil

import numpy as np
import pytest
import torch

from spacy_luke.model.luke import LukeEncoder, Mentions, make_windows
from spacy_luke.model.packing import entity_rows
from spacy_luke.model.transfer import to_device
from tests.tiny import make_checkpoint

CPU = torch.device("cpu")
LENGTHS, COUNTS = [5, 7, 7, 6], [2, 0, 3, 1]
NEEDED = pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a compiler of C++")
# aot_eager compiles as eager does, and the gradients, too.
CASES = [("aot_eager", *case) for case in itertools.product([False, True], [False, True], [0.0, 9.0])]
CASES += [pytest.param("inductor", True, False, 9.0, marks=NEEDED)]  # forward and backward, a minute


def make_encoder(*, training):
    checkpoint = make_checkpoint(dropout=0.0, attention_dropout=0.0)
    encoder = LukeEncoder(checkpoint.config)
    encoder.load_state_dict({name: checkpoint.tensors[f"encoder.{name}"] for name in encoder.state_dict()})
    return encoder.train(training)


def make_mentions(rows):
    counts = sum(COUNTS)
    return Mentions(
        torch.full((counts,), 3), torch.tensor([1, 2, 1, 2, 3, 1]), torch.full((counts,), 3), COUNTS, rows=rows
    )


def passes(encoder, run, *, full, device=CPU):
    """States of words and entities, by passes that `run` may compile."""
    windows = make_windows(np.arange(sum(LENGTHS)), LENGTHS, device=device, counts=COUNTS if full else None)
    rows = None if full else entity_rows(windows.plan.packing, COUNTS)
    windows, mentions = to_device((windows, make_mentions(rows)), device)
    if full:
        return run(encoder.forward)(windows, mentions)
    words = run(encoder.encode_words)(windows)
    return words.states_ND, run(encoder.encode_entities)(words, mentions)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize(("backend", "training", "full", "waste"), CASES)
def test_passes_compile_as_one_graph(backend, training, full, waste, monkeypatch):
    """waste: 9.0 pads all windows to one group, as a GPU has them; equal states, and equal gradients in training."""
    monkeypatch.setattr("spacy_luke.model.packing.tolerated_waste", lambda device: waste)
    torch._dynamo.reset()
    found = []
    for run in (lambda f: f, lambda f: torch.compile(f, fullgraph=True, backend=backend)):
        encoder = make_encoder(training=training)
        with torch.set_grad_enabled(training):
            states = passes(encoder, run, full=full)
        if training:
            sum(x.pow(2).sum() for x in states).backward()
        found.append([*states, *(p.grad for p in encoder.parameters() if p.grad is not None)])
    plain, compiled = found
    assert len(plain) == len(compiled)
    assert not training or len(plain) > 2 + 2 * len(encoder.layers)
    for one, other in zip(compiled, plain, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("full", [False, True])
def test_passes_compile_for_a_gpu(full):
    device = torch.device("cuda")
    torch._dynamo.reset()
    encoder = make_encoder(training=False).to(device)
    with torch.no_grad():
        plain = passes(encoder, lambda f: f, full=full, device=device)
        compiled = passes(encoder, lambda f: torch.compile(f, fullgraph=True), full=full, device=device)
    for one, other in zip(compiled, plain, strict=True):
        assert one.is_cuda
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-4)
