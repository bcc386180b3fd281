"""`spacy luke train` in several processes: pipeline and scores of one process, and runs that go on in others."""

import json
import os
import subprocess
import sys

import pytest
from safetensors.torch import load_file
from spacy.util import load_config

from tests.forked import run_together
from tests.training_config import quiet, start

PLAIN = {"training__dropout": 0.0, "training__optimizer__eps": 1e-3}  # see tests/gpu/test_components.py of eps


def weights(folder):
    return load_file(folder / "luke_ner/model.safetensors")


def assert_same(folder, other, *, loss=True):
    """loss: whether that of the log is compared, too; it is a sum over parts, of which processes make others."""
    ones, others = weights(folder), weights(other)
    assert ones.keys() == others.keys()
    assert max(float((x.float() - others[name].float()).abs().max()) for name, x in ones.items()) < 1e-5
    found, expected = (json.loads((path / "meta.json").read_text())["performance"] for path in (folder, other))
    assert {k: v for k, v in found.items() if k != "luke_ner_loss"} == {
        k: v for k, v in expected.items() if k != "luke_ner_loss"
    }
    if loss:
        assert found["luke_ner_loss"] == pytest.approx(expected["luke_ner_loss"], rel=1e-3)


def stopped(config_path, settings, output, processes):
    """RETURNS: the windows that the encoder has seen."""
    nlp = start(config_path, **settings)
    quiet(nlp, output, processes=processes)
    return nlp.get_pipe("luke_ner").encoder.settings["seen_pieces"]


@pytest.mark.slow
def test_two_processes_and_then_one(config_path, tmp_path):
    """Stopped after 4 of 10 updates in two processes, it goes on in one, and gives what one gives that is never
    stopped."""
    settings = {**PLAIN, "training__eval_frequency": 3}
    quiet(start(config_path, **settings), tmp_path / "one")

    seen, other = run_together(stopped, config_path, {**settings, "training__max_steps": 3}, tmp_path / "two")
    assert seen == other  # windows of all processes
    quiet(start(config_path, **settings), tmp_path / "two", resume=True)
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == ["model-best", "model-last", "resume"]
    for name in ("model-best", "model-last"):
        assert_same(tmp_path / "two" / name, tmp_path / "one" / name)


@pytest.mark.slow
def test_torchrun(config_path, tmp_path):
    """By the command, from one process to three, with batches by words."""
    config = load_config(config_path)
    config["training"].update(dropout=0.0, max_steps=5, eval_frequency=2, accumulate_gradient=1)
    config["training"]["optimizer"]["eps"] = 1e-3
    config["training"]["batcher"] = {"@batchers": "spacy-luke.batch_by_words.v1", "words": 40, "part_words": 9}
    config.to_disk(tmp_path / "config.cfg")
    quiet(start(tmp_path / "config.cfg"), tmp_path / "one")
    quiet(start(tmp_path / "config.cfg", training__max_steps=2), tmp_path / "more")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3", "-m", "spacy"]
    command += ["luke", "train", str(tmp_path / "config.cfg"), "--output", str(tmp_path / "more"), "--resume"]
    ran = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.count("Saved the best pipeline") == 1
    assert "3 processes learn from a share of each batch" in ran.stdout
    assert_same(tmp_path / "more/model-last", tmp_path / "one/model-last", loss=False)
