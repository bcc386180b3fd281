"""Pretraining on a GPU: steps and reports are those of the CPU, and how often the host waits for it."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from spacy_luke.bridge.identity import Identity
from spacy_luke.pretraining.ernie.corruption import collate
from spacy_luke.pretraining.ernie.instances import Instance
from spacy_luke.pretraining.ernie.task import load_pretraining
from spacy_luke.pretraining.loop import LoopSettings, pretrain
from spacy_luke.pretraining.luke.task import load_luke_pretraining
from spacy_luke.pretraining.luke.windows import Drawn
from spacy_luke.pretraining.optimizer import OptimizerSettings
from spacy_luke.pretraining.stream import Position
from spacy_luke.vectors.store import EntityVectors
from tests.gpu.machine import GPU, module_to_gpu
from tests.gpu.running import check_counts
from tests.pretraining.luke.shards import make_shards, make_vocab, make_windows
from tests.tiny import make_checkpoint, make_fresh_ernie

STEPS = 6
SETTINGS = LoopSettings(max_steps=STEPS, step_batches=2, log_every=3, save_every=0)
OPTIMIZER = OptimizerSettings(learn_rate=1e-3, eps=1e-3, grad_clip=1.0)  # see test_components of eps


def luke_batches(folder):
    windows = make_windows(make_shards(folder))
    return [windows.collate([Drawn(4 * i + k, 0, 4 * i + k) for k in range(4)]) for i in range(2 * STEPS)]


def make_luke(pages=True):
    config = replace(make_checkpoint().config, dropout=0.0, attention_dropout=0.0)
    return load_luke_pretraining(replace(make_checkpoint(), config=config), make_vocab(), seed=0, pages=pages)


def ernie_batches(store, candidates="batch"):
    rng, random_numbers = np.random.default_rng(0), random.Random(0)
    found = []
    for i in range(2 * STEPS):
        instances = []
        for k in range(3):
            pieces_N = np.concatenate([[2], rng.integers(5, 30, 20 + 5 * k), [3], rng.integers(5, 30, 9), [3]])
            labels_N = np.where(rng.random(len(pieces_N)) < 0.2, pieces_N, -1)
            entities_N = np.where(rng.random(len(pieces_N)) < 0.3, rng.integers(0, 3, len(pieces_N)), -1)
            entities_N[0] = -1
            types_N = (np.arange(len(pieces_N)) > 21).astype(np.int64)
            instances.append(Instance(pieces_N, types_N, labels_N, entities_N, k == 1, f"{i} {k}"))
        found.append(collate(instances, store, rng=random_numbers, candidates=candidates))
    return found


def make_ernie():
    checkpoint = make_fresh_ernie(12)
    return load_pretraining(
        replace(checkpoint, config=replace(checkpoint.config, dropout=0.0, attention_dropout=0.0)), seed=0
    )


def train(model, batches, folder):
    """RETURNS: the reports, and the parameters, on the host."""
    return run(model, batches, folder), {name: p.detach().cpu() for name, p in model.named_parameters()}


def run(model, batches, folder, **changes):
    reports = []
    pretrain(
        model,
        lambda position: iter((batch, Position(batches=i + 1)) for i, batch in enumerate(batches)),
        folder,
        settings=replace(SETTINGS, **changes),
        optimizer=OPTIMIZER,
        identity=Identity({}, {}),
        report=lambda report: reports.append(report) if report else None,
        progress=False,
    )
    return [{name: x for name, x in report.items() if name != "seconds"} for report in reports]


@pytest.fixture
def made(request, tmp_path, vectors):
    """The batches of a task, and what makes its model."""
    if request.param.startswith("luke"):
        return luke_batches(tmp_path / "shards"), lambda: make_luke(pages=request.param == "luke pages")
    return ernie_batches(EntityVectors.open(vectors), candidates=request.param.split()[1]), make_ernie


TASKS = pytest.mark.parametrize("made", ["luke", "luke pages", "ernie batch", "ernie sequence"], indirect=True)


@pytest.mark.slow
@TASKS
def test_steps_are_those_of_the_cpu(made, tmp_path):
    batches, make = made
    expected, expected_parameters = train(make(), batches, tmp_path / "cpu")
    assert len(expected) == 2
    with GPU() as gpu:
        found, parameters = train(module_to_gpu(make()), batches, tmp_path / "gpu")
        assert gpu.transfers
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-4, abs=1e-4)
    before = dict(make().named_parameters())
    assert any(not torch.equal(x, before[name]) for name, x in parameters.items())
    for name, x in parameters.items():
        assert float((x - expected_parameters[name]).abs().max()) < 2e-5, name


@pytest.mark.product
@TASKS
@pytest.mark.parametrize("step_batches", [1, 2])
def test_waits_and_transfers(made, step_batches, tmp_path, monkeypatch):
    """None between reports, and at each two: for what says that losses and gradients are numbers, and for what was
    measured. Saving, which reads all parameters, is left out."""
    monkeypatch.setattr("spacy_luke.pretraining.loop.save_state", lambda *state: None)
    batches, make = made
    with GPU() as gpu:
        model = module_to_gpu(make())
        gpu.forget()
        reports = run(model, batches, tmp_path / "run", step_batches=step_batches)
        assert len(reports) == STEPS / SETTINGS.log_every
        assert gpu.transfers
        check_counts(gpu, waits=2 * len(reports), transfers=3 * STEPS * step_batches)


@pytest.mark.slow
def test_a_loss_that_is_no_number(tmp_path, vectors):
    """It is told at the next report, by its own step and batch, and neither that step nor one after it was made."""
    batches = luke_batches(tmp_path / "shards")
    folder = tmp_path / "run"
    with GPU():
        two, _ = make_luke(), run(module_to_gpu(model := make_luke()), batches, tmp_path / "two", max_steps=1)
        expected = {name: p.detach().cpu() for name, p in model.named_parameters()}
        model = module_to_gpu(two)
        forward = model.forward

        def poisoned(batch, totals):
            loss, measured = forward(batch, totals)
            return (loss * torch.nan if batch.name == batches[3].name else loss), measured

        model.forward = poisoned
        with pytest.raises(ValueError, match=r"The loss of step 2 is nan in the batch examples 12, 13, 14, 15"):
            run(model, batches, folder)
        found = {name: p.detach().cpu() for name, p in model.named_parameters()}
    assert all(torch.equal(x, found[name]) for name, x in expected.items())
    assert not (folder / "resume").exists()
