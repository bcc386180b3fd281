"""Runs of `spacy luke pretrain` by its small config, shortened; in one process or two."""

import os
import subprocess
import sys
from pathlib import Path

from spacy.util import load_config

from spacy_luke.pretraining.saving import read_model
from tests.pretraining.runs import as_arguments

CONFIGS = Path(__file__).parents[3] / "configs"
ALL = [CONFIGS / f"pretrain_{name}.cfg" for name in ("small", "base", "large")]
SMALL = ALL[0]
WORDS = CONFIGS / "pretrain_words_large.cfg"
NEW, REST = 6, 24


# Settings of small runs of any kind.
QUICK = {
    "paths.vectors": None,
    "corpora.train.held_out": 4,
    "corpora.dev.held_out": 4,
    "task.dropout": None,
    "training.batch_size": 4,
    "training.precision": "float32",
    "training.log_every": 1,
}


def overrides(folder, **changes):
    settings = {
        **QUICK,
        "paths.weights": str(folder / "dropout"),
        "paths.shards": str(folder / "shards"),
        "training.save_every": 4,
        "training.eval_every": 8,
        "stages.new.max_steps": NEW,
        "stages.new.optimizer.learn_rate": 0.01,
        "stages.new.optimizer.warmup_steps": 2,
        "stages.all.max_steps": REST,
        "stages.all.step_batches": 2,
        "stages.all.optimizer.learn_rate": 0.01,
        "stages.all.optimizer.warmup_steps": 5,
    }
    return {**settings, **changes}


def read_config(folder, path=SMALL, **changes):
    return load_config(path, overrides=overrides(folder, **changes), interpolate=True)


def state(output, stage="all"):
    return {name: x.numpy().tobytes() for name, x in read_model(output / stage / "resume").items()}


def torchrun(folder, output, *options, expected=0, **changes):
    """Two processes, a step of which has the batches of two steps. RETURNS: what they said."""
    changes = {"stages.new.step_batches": 2, "stages.all.step_batches": 4, **changes}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "spacy", "luke", "pretrain", str(SMALL), "--output", str(output), *options]
    done = subprocess.run(
        [*command, *as_arguments(overrides(folder, **changes))],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expected, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


SHORT = {"stages.new.max_steps": 2, "stages.all.max_steps": 6}
STOPS = """
from spacy.util import registry

@registry.loggers("stops.v1")
def make_stopping_logger(step: int):
    def set_up(nlp, stdout, stderr):
        def log_step(info):
            if info is not None and info["step"] == step:
                raise ValueError("stopped here")
        return log_step, lambda: None
    return set_up
"""
