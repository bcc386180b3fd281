"""`spacy luke pretrain --resume`: killed or stopped, it goes on to the same bits; what may change, and what may not."""

import random
import re
import shutil
import sys

import pytest
import torch
from safetensors.torch import load_file

from spacy_luke.pretraining.luke.job import pretrain_luke
from tests.pretraining.luke.shards import make_shards
from tests.pretraining.luke.small_runs import (
    NEW,
    REST,
    SHORT,
    SMALL,
    STOPS,
    overrides,
    read_config,
    state,
    torchrun,
)
from tests.pretraining.runs import as_arguments, kill_at, reports


@pytest.mark.slow
def test_kill_at_a_random_step(whole, folder, tmp_path):
    """kill -9, then --resume: the same parameters and reports as without, to the last bit; in either stage."""
    step = random.SystemRandom().randint(2, REST - 6)
    command = [sys.executable, "-m", "spacy", "luke", "pretrain", str(SMALL), "--output", str(tmp_path / "run")]
    stage = random.SystemRandom().choice(["new", "all"]) if step < NEW else "all"
    metrics = tmp_path / "run" / stage / "metrics.jsonl"
    done = kill_at(step, [*command, *as_arguments(overrides(folder))], metrics, tmp_path / "errors")
    assert not (tmp_path / "run/model").exists()
    started = (tmp_path / "run/new/resume").exists() or (tmp_path / "run/new/.resume.old").exists()
    assert started or (stage == "new" and done <= 4)
    pretrain_luke(read_config(folder), tmp_path / "run", resume=started, progress=False)
    for name in ("new", "all"):
        assert reports(tmp_path / "run" / name) == reports(whole / name), f"killed in {stage} after step {done}"
        assert state(tmp_path / "run", name) == state(whole, name), f"killed in {stage} after step {done}"
    model = "model/model.safetensors"
    assert (tmp_path / "run" / model).read_bytes() == (whole / model).read_bytes()


def test_resume_after_the_end_changes_nothing(whole, folder):
    before = state(whole)
    pretrain_luke(read_config(folder), whole, resume=True, progress=False)
    assert state(whole) == before


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_state(whole, folder, tmp_path, monkeypatch):
    saved, real = [], torch.save

    def full(*arguments, **options):
        saved.append(arguments)
        if len(saved) == 4:
            raise OSError(28, "No space left on device")
        return real(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr("spacy_luke.pretraining.saving.torch.save", full)
        with pytest.raises(OSError, match="No space left"):
            pretrain_luke(read_config(folder), tmp_path / "run", progress=False)
    assert {x.name for x in (tmp_path / "run/all").iterdir()} == {"metrics.jsonl", "resume"}
    pretrain_luke(read_config(folder), tmp_path / "run", resume=True, progress=False)
    assert state(tmp_path / "run") == state(whole)


def test_a_full_disk_while_the_checkpoint_is_written(whole, folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    before = (whole / "model/model.safetensors").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr("spacy_luke.checkpoint.files.save_file", full)
        with pytest.raises(OSError, match="No space left"):
            pretrain_luke(read_config(folder), whole, resume=True, progress=False)
    assert (whole / "model/model.safetensors").read_bytes() == before
    assert {x.name for x in whole.iterdir()} == {"new", "all", "model"}


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_two_processes_go_on(folder, tmp_path, parallel):
    """Stopped after a saved state, each process goes on with its own random numbers: the same bits."""
    (tmp_path / "stops.py").write_text(STOPS, encoding="utf8")
    changes = {**SHORT, "training.parallel": parallel}
    torchrun(folder, tmp_path / "whole", **changes)
    stopping = {"training.logger": {"@loggers": "stops.v1", "step": 5}}
    options = ("--code", str(tmp_path / "stops.py"))
    assert "stopped here" in torchrun(folder, tmp_path / "parts", *options, expected=1, **changes, **stopping)
    torchrun(folder, tmp_path / "parts", "--resume", **changes)
    for stage in ("new", "all"):
        assert reports(tmp_path / "parts" / stage) == reports(tmp_path / "whole" / stage)
        assert state(tmp_path / "parts", stage) == state(tmp_path / "whole", stage)


@pytest.mark.slow
def test_one_process_goes_on_for_two(folder, tmp_path):
    """The windows of a step stay the same, and so, but for the order of sums, does what is learned."""
    (tmp_path / "stops.py").write_text(STOPS, encoding="utf8")
    changes = {**SHORT, "paths.weights": str(folder / "tiny")}
    changes |= {f"stages.{stage}.optimizer.learn_rate": 0.001 for stage in ("new", "all")}
    stopping = {"training.logger": {"@loggers": "stops.v1", "step": 5}}
    options = ("--code", str(tmp_path / "stops.py"))
    assert "stopped here" in torchrun(folder, tmp_path / "parts", *options, expected=1, **changes, **stopping)
    one = read_config(folder, **changes, **{"training.batch_size": 8})
    pretrain_luke(one, tmp_path / "parts", resume=True, progress=False)
    pretrain_luke(one, tmp_path / "whole", progress=False)
    for stage in ("new", "all"):
        parts, whole = (load_file(tmp_path / n / stage / "resume/model.safetensors") for n in ("parts", "whole"))
        assert max(float((parts[name] - whole[name]).abs().max()) for name in whole) < 1e-5


@pytest.fixture(scope="module")
def stopped(folder, tmp_path_factory):
    """A run that was stopped in its second stage, at step 12 of a state that is saved every 4."""
    output = tmp_path_factory.mktemp("stopped") / "run"
    pretrain_luke(read_config(folder, **{"stages.all.max_steps": 12}), output, progress=False)
    return output


def go_on(folder, stopped, tmp_path, capsys, **changes):
    """RETURNS: what was said."""
    shutil.copytree(stopped, tmp_path / "run")
    capsys.readouterr()
    pretrain_luke(read_config(folder, **changes), tmp_path / "run", resume=True, progress=False)
    return capsys.readouterr().err


def test_what_may_change(stopped, folder, tmp_path, capsys):
    """Where data and weights lie, how often is reported, saved and evaluated: said, and the same bits."""
    for name in ("shards", "dropout"):
        shutil.copytree(folder / name, tmp_path / f"moved_{name}")
    changes = {
        "paths.shards": str(tmp_path / "moved_shards"),
        "paths.weights": str(tmp_path / "moved_dropout"),
        "training.log_every": 3,
        "training.save_every": 5,
        "training.eval_every": 0,
    }
    said = go_on(folder, stopped, tmp_path, capsys, **{"stages.all.max_steps": 12}, **changes)
    assert "Goes on with another training.log_every: was 1, now 3" in said
    assert "Goes on with another corpora.train.path: was " in said
    assert state(tmp_path / "run") == state(stopped)
    assert (tmp_path / "run/model/model.safetensors").read_bytes() == (stopped / "model/model.safetensors").read_bytes()


def test_more_steps(stopped, folder, tmp_path, capsys):
    said = go_on(folder, stopped, tmp_path, capsys, **{"stages.all.max_steps": 14})
    assert "Goes on with another stages.all.max_steps: was 12, now 14" in said
    assert reports(tmp_path / "run/all")[-1]["step"] == 14


def test_windows_of_a_step_may_be_divided_otherwise(stopped, folder, tmp_path, capsys):
    """Half the batch, twice as many: the same windows in the same order."""
    changes = {"training.batch_size": 2, "stages.new.step_batches": 2, "stages.all.step_batches": 4}
    said = go_on(folder, stopped, tmp_path, capsys, **changes, **{"stages.all.max_steps": 14})
    assert "training.batch_size: was 4, now 2" in said


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"training.batch_size": 8}, "windows of a step.all: was 8, now 16"),
        ({"system.seed": 7}, "system.seed: was 0, now 7"),
        ({"task.words": 0.3}, "task.words: was 0.15, now 0.3"),
        ({"stages.all.optimizer.learn_rate": 0.5}, "stages.all.optimizer.learn_rate: was 0.01, now 0.5"),
        ({"corpora.train.held_out": 5}, "corpora.train.held_out: was 4, now 5"),
        ({"stages.new.max_steps": 99}, "stages.new.max_steps is 99, but the stage was finished at"),
        ({"stages.all.max_steps": 3}, "has done 12 steps, but max_steps is 3"),
    ],
    ids=str,
)
def test_what_may_not_change(stopped, folder, tmp_path, capsys, changes, expected):
    with pytest.raises(ValueError, match=re.escape(expected)):
        go_on(folder, stopped, tmp_path, capsys, **{"stages.all.max_steps": 12, **changes})


def test_a_stage_without_its_state_does_not_begin_anew_before_one_that_went_on(stopped, folder, tmp_path, capsys):
    left = shutil.copytree(stopped, tmp_path / "left", ignore=lambda path, names: {"new"} & set(names))
    with pytest.raises(ValueError, match=r"all has the state of a stage that began with what stage new had learned"):
        go_on(folder, left, tmp_path, capsys, **{"stages.all.max_steps": 12})


def test_other_data_are_refused(stopped, folder, tmp_path, capsys):
    """Under the same path."""
    make_shards(tmp_path / "other", seed=5)
    with pytest.raises(ValueError, match="data: was "):
        go_on(
            folder, stopped, tmp_path, capsys, **{"paths.shards": str(tmp_path / "other"), "stages.all.max_steps": 12}
        )
