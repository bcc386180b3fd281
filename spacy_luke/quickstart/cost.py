"""What a training will take: its first steps are made and timed, or, where the encoder is not here, it is estimated."""

import time
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

import numpy as np
from spacy.training.initialize import init_nlp
from spacy.util import load_config, registry, resolve_dot_names
from thinc.api import fix_random_seed

from ..checkpoint.sources import PACKAGE, find_source
from ..training.shares import update
from ..training.steps import in_order, plan_training, set_steps
from .rules import encoders

_TIMED_STEPS = 5
_SECONDS = 20.0  # after which no more steps are timed
_DEV_DOCS = 20
_PIECES = 1.3  # of a word, as English texts have
_PASSES = 3  # a step's work in forward passes: one forward, two backward
_REACHED = 0.35  # of the speed of large products of matrices that a small encoder's training reaches; see docs
_SIDE = 1024


class Cost(NamedTuple):
    """seconds: of the whole training; steps: None where nothing counted them; measured: timed steps, 0: estimated."""

    seconds: float
    steps: int | None = None
    measured: int = 0

    def __str__(self) -> str:
        shown = in_words(self.seconds)
        if not self.measured:
            return f"about {shown} on this machine's CPU, to a factor of two: an estimate, no step was timed"
        return f"about {shown} on this machine: {self.steps:,} steps, by {self.measured} that were timed"


def is_here(weights: str) -> bool:
    """Whether an encoder lies on this machine: a folder, an archive, or in a package."""
    if Path(weights).exists():
        return True
    if not weights.startswith(PACKAGE):
        return False
    try:
        return find_source(weights, weights=False).exists()
    except ValueError:
        return False


def measure(path: Path, *, gpu_id: int = -1) -> Cost:
    """Initialise the config's pipeline, make some steps of the training, and count what all of them will take.

    gpu_id: of the GPU that spaCy works on; -1: the CPU. Nothing is saved. Evaluations on the dev data are counted too.
    Raises what the training itself would raise.
    """
    config = load_config(path, interpolate=False)
    nlp = init_nlp(config, use_gpu=gpu_id)
    filled = nlp.config.interpolate()
    T = filled["training"]
    fix_random_seed(T["seed"] or 0)
    train_corpus, dev_corpus = resolve_dot_names(filled, [T["train_corpus"], T["dev_corpus"]])
    examples = list(train_corpus(nlp))
    plan = plan_training(filled, examples)
    set_steps(filled, plan)
    optimizer = registry.resolve({"optimizer": T["optimizer"]})["optimizer"]
    batcher = registry.resolve({"batcher": T["batcher"]})["batcher"]
    timed_words, timed, seconds = 0, 0, 0.0
    passes = (batcher(in_order(examples, seed=T["seed"] or 0, epoch=epoch)) for epoch in count())
    with nlp.select_pipes(disable=T["frozen_components"]):
        for i, batch in enumerate(chain.from_iterable(passes)):
            start = time.perf_counter()
            update(nlp, batch, optimizer, T, drop=T["dropout"], losses={})
            if i:  # the first step makes what others find ready
                seconds += time.perf_counter() - start
                timed_words += sum(len(example.reference) for example in batch)
                timed += 1
            if timed >= _TIMED_STEPS or (timed and seconds > _SECONDS):
                break
    steps = plan.steps or 0
    words = sum(len(example.reference) for example in examples) * (plan.epochs or 1.0)
    training = seconds / max(timed_words, 1) * words
    dev = list(dev_corpus(nlp))
    start = time.perf_counter()
    nlp.evaluate(dev[:_DEV_DOCS])
    evaluation = (time.perf_counter() - start) * len(dev) / max(len(dev[:_DEV_DOCS]), 1)
    return Cost(training + evaluation * (steps // T["eval_frequency"] + 1), steps, timed)


def estimate(encoder: str, words: int, epochs: int) -> Cost:
    """By the parameters of the encoder, which each piece is multiplied by, and by how fast this CPU multiplies."""
    work = 2.0 * encoders()[encoder]["millions"] * 1e6 * _PIECES * words * epochs * _PASSES
    return Cost(work / (_REACHED * _flops()))


def _flops() -> float:
    """Of this machine's CPU, in products of large matrices of float32 with as many threads as NumPy takes."""
    a = np.ones((_SIDE, _SIDE), dtype=np.float32)
    a @ a
    start = time.perf_counter()
    for _ in range(5):
        a @ a
    return 5 * 2.0 * _SIDE**3 / (time.perf_counter() - start)


def in_words(seconds: float) -> str:
    """Such as "40 seconds", "12 minutes", "3.5 hours"."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 90 * 60 else f"{seconds / 3600:.1f} hours"
