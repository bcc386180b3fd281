"""The loop with a small model of its own: resume, accumulation, reports, and a loss that is no number."""

import itertools
import json
import random
import shutil
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from spacy_luke.bridge.identity import Identity
from spacy_luke.distributed.processes import Processes
from spacy_luke.pretraining.loop import LoopSettings, _Learner, pretrain
from spacy_luke.pretraining.optimizer import OptimizerSettings, make_stepper
from spacy_luke.pretraining.stream import Position
from spacy_luke.stores.progress import ProgressBar

SETTINGS = LoopSettings(max_steps=12, log_every=5, save_every=4)
ADAM = OptimizerSettings(learn_rate=0.01, warmup_steps=3)


@dataclass(frozen=True)
class Numbers:
    values_BD: torch.Tensor
    name: str

    @property
    def counts(self):
        return {"numbers": self.values_BD.numel()}


class Small(nn.Module):
    """Reconstructs its input; two parameters are one."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down, self.drop = nn.Linear(6, 8), nn.Linear(8, 6, bias=False), nn.Dropout(0.3)
        self.same = self.down
        self.register_buffer("seen", torch.zeros(()))
        self.poison = self.infinite_gradient = None

    def forward(self, batch, totals):
        x = batch.values_BD
        if self.training:
            self.seen += len(x)
        if batch.name == self.poison:
            x = x * torch.nan
        loss = (self.down(self.drop(torch.relu(self.up(x)))) - x).pow(2).sum() / totals["numbers"]
        if batch.name == self.infinite_gradient:
            loss = loss + (self.up.weight * 0).sum().sqrt()
        return loss, {"error": (loss.detach(), torch.ones(())), "never": (torch.zeros(()), torch.zeros(()))}


def stream(position, *, size=4):
    while True:
        position = replace(position, used=position.used + size, batches=position.batches + 1)
        generator = torch.Generator().manual_seed(position.batches)
        yield Numbers(torch.randn(size, 6, generator=generator), f"number {position.batches}"), position


def train(folder, settings=SETTINGS, *, model=None, adam=ADAM, seed=1, batches=stream, **options):
    model = model or Small()
    random.seed(0)
    torch.manual_seed(1)
    pretrain(
        model,
        batches,
        folder,
        settings=settings,
        optimizer=adam,
        identity=Identity({"seed": seed}, {"max_steps": settings.max_steps}),
        progress=False,
        **options,
    )
    return model


def reports(folder):
    lines = (folder / "metrics.jsonl").read_text("utf8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


class Stopped(Exception):
    pass


def stop_after(count):
    """A stream that ends a run in the middle, as Ctrl-C would."""

    def stopping(position):
        for number, item in enumerate(stream(position)):
            if number == count:
                raise Stopped
            yield item

    return stopping


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("stop", [4, 6, 9, 11])
def test_resume_equals_uninterrupted(tmp_path, stop, corrected):
    adam = replace(ADAM, bias_correction=corrected)
    whole = train(tmp_path / "whole", adam=adam)
    with pytest.raises(Stopped):
        train(tmp_path / "parts", adam=adam, batches=stop_after(stop))
    resumed = train(tmp_path / "parts", adam=adam, resume=True)
    assert same(whole, resumed)
    assert reports(tmp_path / "whole") == reports(tmp_path / "parts")
    assert len(reports(tmp_path / "whole")) == 2


def test_resume_after_the_end_changes_nothing(tmp_path):
    whole = train(tmp_path / "run")
    assert same(whole, train(tmp_path / "run", resume=True))


def test_random_states_of_all_kinds_come_back(tmp_path):
    """Dropout draws on after a resume; here it draws from torch's state alone, but data may draw from Python's."""
    train(tmp_path / "run")
    expected = (torch.rand(()), random.random())
    train(tmp_path / "run", resume=True)
    assert (torch.rand(()), random.random()) == expected


def test_accumulation(tmp_path):
    """Two batches of 4 are one of 8 (without dropout)."""
    models = []
    for step_batches, size in ((1, 8), (2, 4)):
        model = Small()
        model.drop.p = 0.0

        def joined(position, size=size):
            pairs = zip(*[stream(position)] * 2)
            for (a, _), (b, after) in pairs:
                both = torch.cat([a.values_BD, b.values_BD])
                for part in both.split(size):
                    yield Numbers(part, a.name), after

        settings = replace(SETTINGS, step_batches=step_batches)
        models.append(train(tmp_path / str(size), settings, model=model, batches=joined))
    for a, b in zip(*(model.parameters() for model in models)):
        assert torch.allclose(a, b, atol=1e-6)


def test_a_loss_that_is_no_number_names_its_batch(tmp_path):
    model = Small()
    model.poison = "number 7"
    with pytest.raises(ValueError, match=r"The loss of step 7 is nan in the batch number 7 \(error nan"):
        train(tmp_path / "run", model=model)
    assert all(torch.isfinite(p).all() for p in model.parameters())
    whole = train(tmp_path / "whole")  # the last saved state is good to go on from
    assert same(whole, train(tmp_path / "run", resume=True))


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_run_that_fails_leaves_no_bar(tmp_path, ahead, monkeypatch):
    closed, close = [], ProgressBar.close
    monkeypatch.setattr(ProgressBar, "close", lambda bar: closed.append(close(bar)))
    with pytest.raises(Stopped):
        train(tmp_path, replace(SETTINGS, ahead=ahead), batches=stop_after(3))
    assert len(closed) == 1


def test_a_gradient_that_is_no_number_is_never_saved(tmp_path):
    model = Small()
    model.infinite_gradient = "number 8"
    with pytest.raises(ValueError, match="The gradient of step 8, whose last batch is number 8, is not finite"):
        train(tmp_path / "run", model=model)
    assert same(train(tmp_path / "whole"), train(tmp_path / "run", resume=True))


def test_evaluation(tmp_path):
    """In evaluation mode, at its steps and at the end; it changes nothing."""
    seen = []

    def evaluate(model):
        seen.append(model.training)
        return {"figure": 0.5}

    settings = replace(SETTINGS, eval_every=8)
    with_it = train(tmp_path / "with", settings, evaluate=evaluate)
    assert seen == [False, False]
    assert [r["step"] for r in reports(tmp_path / "with") if "dev_figure" in r] == [8, 12]
    assert same(with_it, train(tmp_path / "without"))
    assert with_it.training


def test_reports(tmp_path):
    train(tmp_path / "run")
    first, second = reports(tmp_path / "run")
    assert (first["step"], second["step"], first["learn_rate"], first["never"]) == (5, 10, 0.01, None)
    assert second["error"] < first["error"]


def test_only_the_main_process_writes(tmp_path):
    train(tmp_path / "run", processes=Processes(rank=1))
    assert not (tmp_path / "run").exists()


def test_bfloat16(tmp_path):
    model = train(tmp_path / "run", replace(SETTINGS, precision="bfloat16"))
    assert model.up.weight.dtype == torch.float32
    assert not same(model, train(tmp_path / "float32"))


def test_where_there_is_nothing_to_resume(tmp_path, capsys):
    """So that a job that a cluster starts again, or for the first time, is one command."""
    assert same(train(tmp_path / "new", resume=True), train(tmp_path / "whole"))
    assert f"Begins anew, as {tmp_path / 'new'} has nothing to resume." in capsys.readouterr().err
    (tmp_path / "new" / "resume" / "state.pt").unlink()
    with pytest.raises(ValueError, match=r"nothing to resume in .*expected state.pt"):
        train(tmp_path / "new", resume=True)


def test_what_cannot_be_resumed(tmp_path):
    train(tmp_path / "run")
    with pytest.raises(ValueError, match="has the state of an earlier run: go on with --resume"):
        train(tmp_path / "run")
    with pytest.raises(ValueError, match=r"other settings or data.*(?s:.)seed: was 1, now 2$"):
        train(tmp_path / "run", seed=2, resume=True)
    with pytest.raises(ValueError, match=r"run has done \d+ steps, but max_steps is 1\."):
        train(tmp_path / "run", replace(SETTINGS, max_steps=1), resume=True)
    model = Small()
    model.more = nn.Linear(1, 1)
    with pytest.raises(ValueError, match=r"belongs to another model: they differ in \['more.bias', 'more.weight'\]"):
        train(tmp_path / "run", model=model, resume=True)


def test_a_kill_between_the_renames_is_mended(tmp_path):
    whole = train(tmp_path / "run")
    (tmp_path / "run/resume").rename(tmp_path / "run/.resume.old")
    assert same(whole, train(tmp_path / "run", resume=True))
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"resume", "metrics.jsonl"}


def test_a_full_disk_leaves_the_old_state(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with pytest.raises(Stopped):
        train(tmp_path / "run", batches=stop_after(7))
    with monkeypatch.context() as patched:
        patched.setattr("spacy_luke.pretraining.loop.torch.save", full)
        with pytest.raises(OSError, match="No space left"):
            train(tmp_path / "run", resume=True)
    assert same(train(tmp_path / "whole"), train(tmp_path / "run", resume=True))


@pytest.mark.parametrize(
    "wrong", [{"max_steps": 0}, {"step_batches": 0}, {"log_every": 0}, {"save_every": -1}, {"precision": "float8"}]
)
def test_impossible_settings(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        replace(SETTINGS, **wrong)


def test_processes_share_the_batches_of_a_step(tmp_path):
    """So that a step is the same on any number of them; where they cannot, none begins."""
    assert [replace(SETTINGS, step_batches=12).share(n) for n in (1, 2, 3, 4)] == [12, 6, 4, 3]
    with pytest.raises(ValueError, match=r"step_batches.* must be a multiple of their number, 5, but it is 12"):
        train(tmp_path / "run", replace(SETTINGS, step_batches=12), processes=Processes(rank=1, size=5))
    assert not (tmp_path / "run").exists()


def test_position_in_words():
    assert str(Position(1, 20, 3, 7)) == "epoch 1, document 20, instance 3"


def test_more_steps_than_were_meant(tmp_path, capsys):
    """Said, and the same as if it had been meant from the first: the rate here does not depend on the number."""
    constant = replace(ADAM, schedule="constant")
    train(tmp_path / "parts", replace(SETTINGS, max_steps=4), adam=constant)
    parts = train(tmp_path / "parts", replace(SETTINGS, max_steps=8), adam=constant, resume=True)
    assert "Goes on with another max_steps: was 4, now 8" in capsys.readouterr().err
    assert same(parts, train(tmp_path / "whole", replace(SETTINGS, max_steps=8), adam=constant))


def test_the_last_states_are_kept(tmp_path):
    """Training goes on from one of them to the same bits."""
    settings = replace(SETTINGS, save_every=2, keep=3)
    whole = train(tmp_path, settings)
    states = tmp_path / "states"
    assert sorted(path.name for path in states.iterdir()) == ["step-10", "step-12", "step-8"]
    shutil.rmtree(tmp_path / "resume")
    shutil.copytree(states / "step-8", tmp_path / "resume")
    again = train(tmp_path, settings, resume=True)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), again.parameters()))


def test_layers_are_compiled_where_it_is_wanted(tmp_path, monkeypatch):
    compiled = []
    monkeypatch.setattr("spacy_luke.pretraining.loop.compile_layers", lambda *args: compiled.append(args))
    train(tmp_path / "plain")
    assert not compiled
    model = train(tmp_path / "compiled", replace(SETTINGS, compile=True))
    assert compiled == [(model, torch.device("cpu"))]


def test_float16(tmp_path):
    """With scaled losses it learns as in float32, but for rounding, and resumes to the same bits."""
    expected, half = train(tmp_path / "float32"), train(tmp_path / "half", replace(SETTINGS, precision="float16"))
    for one, other in zip(half.parameters(), expected.parameters()):
        assert 0 < float((one - other).detach().abs().max()) < 0.02
    train(tmp_path / "parts", replace(SETTINGS, precision="float16", max_steps=6))
    parts = train(tmp_path / "parts", replace(SETTINGS, precision="float16"), resume=True)
    assert all(torch.equal(a, b) for a, b in zip(half.parameters(), parts.parameters()))
    with pytest.raises(ValueError, match='precision = "float16" needs parallel = "ddp"'):
        _Learner(half, half, None, LoopSettings(2, precision="float16"), 1.0, Processes(0, 2, "fsdp"))


def test_float16_leaves_out_a_step_that_overflows(tmp_path):
    model = Small()
    before = [p.detach().clone() for p in model.parameters()]
    learner = _Learner(model, model, make_stepper(model, ADAM), LoopSettings(2, precision="float16"), 1.0, Processes())
    learner.scaler.load_state_dict({**learner.scaler.state_dict(), "scale": 2.0**126})
    ((batch, _),) = itertools.islice(stream(Position()), 1)
    learner.step([batch], step=0, rate=0.01)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    assert learner.scaler.get_scale() == 2.0**125
