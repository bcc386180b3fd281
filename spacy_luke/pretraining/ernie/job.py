"""ERNIE's pretraining by a config: masked words, next sentence and denoised entities, with exact resume after a kill.

OUTPUT has the state (see `pretraining.loop`), and OUTPUT/model the ERNIE checkpoint that is left.
"""

import os
from collections.abc import Callable
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

from ...bridge.identity import Identity, identify, with_contents
from ...checkpoint.contents import ErnieCheckpoint
from ...checkpoint.ernie import write_ernie
from ...text.tokenizer import PieceTokenizer
from ...vectors.store import EntityVectors
from ..loop import Evaluate, LoopSettings, pretrain
from ..measures import average
from ..optimizer import OptimizerSettings
from ..registry import make_parts
from ..sections import check_count, check_sections, check_settings, make_settings
from ..stream import InstanceSource
from .corruption import ernie_stream, held_out_batches
from .instances import Instance
from .task import load_pretraining, to_checkpoint

# What changes nothing that is computed, or, as the number of steps, what may be another from here on.
FREE = (
    *(f"training.{name}" for name in ("max_steps", "log_every", "save_every", "eval_every", "eval_batches")),
    *("model.path", "model.vectors", "corpora.dev"),
)
SECTIONS = ("paths", "system", "model", "corpora", "task", "training")


def pretrain_ernie(
    config: dict[str, Any],
    output: Path,
    *,
    resume: bool = False,
    gpu_id: int = -1,
    progress: bool = True,
    tell: Callable[[str], object] | None = None,
) -> tuple[ErnieCheckpoint, InstanceSource[Instance]]:
    """Pretrain by an interpolated config, such as configs/ernie_pretrain.cfg.

    resume: go on from OUTPUT/resume. gpu_id: -1 for the CPU. tell: gets the lines of the first checkpoint's report
    before training. Raises ValueError for a wrong setting, and where a run would be lost. RETURNS: the checkpoint in
    OUTPUT/model, and the training data's source.
    """
    _check_alone()
    check_sections(config, SECTIONS)
    _check(config)
    seed, training = config["system"]["seed"], dict(config["training"])
    optimizer = make_settings(OptimizerSettings, training.pop("optimizer"), "training.optimizer")
    batch_size, n_evaluated = training.pop("batch_size"), training.pop("eval_batches")
    settings = make_settings(LoopSettings, training, "training")
    parts = make_parts({name: config[name] for name in ("model", "corpora", "task")}, seed=seed)
    started: ErnieCheckpoint = parts["model"]()
    for line in started.report:
        if tell is not None and not line.endswith(": fresh"):  # one for each tensor
            tell(line)
    vectors, tokenizer = _find_inputs(started)
    task = dict(parts["task"])
    model = load_pretraining(started, seed=seed, transform=task.pop("dea_transform"), dea=task.pop("dea"))
    if gpu_id >= 0:
        model.cuda(gpu_id)
    bound = {"tokenizer": tokenizer, "vectors": vectors, "max_window": started.config.max_window, "seed": seed}
    source: InstanceSource[Instance] = parts["corpora"]["train"](**bound)
    evaluate: Evaluate | None = None
    if parts["corpora"]["dev"] is not None:
        held_out = held_out_batches(parts["corpora"]["dev"](**bound), vectors, task, batch_size, n_evaluated, seed)
        evaluate = partial(average, batches=held_out)
    pretrain(
        model,
        ernie_stream(source, vectors, task, batch_size, seed),
        output,
        settings=settings,
        optimizer=optimizer,
        identity=_identify(config, started, vectors),
        evaluate=evaluate,
        resume=resume,
        progress=progress,
    )
    trained = to_checkpoint(model, started)
    trained.report = [*started.report, f"{settings.max_steps:,} steps of pretraining"]
    write_ernie(trained, output / "model")
    return trained, source


def _check(config: dict[str, Any]) -> None:
    """ValueError for settings that are missing, are none, or of another type."""
    check_settings(config["system"], "system", ["seed"])
    check_count(config["system"]["seed"], "system.seed", least=0)
    check_settings(config["corpora"], "corpora", ["train", "dev"])
    check_settings(config["task"], "task", ["replaced", "removed", "candidates", "dea_transform", "dea"])
    loop = [field.name for field in fields(LoopSettings)]
    check_settings(config["training"], "training", ["optimizer", "batch_size", "eval_batches", "max_steps"], loop)
    for name in ("batch_size", "eval_batches"):
        check_count(config["training"][name], f"training.{name}")


def _identify(config: dict[str, Any], started: ErnieCheckpoint, vectors: EntityVectors) -> Identity:
    """Data count by their content; what only the first start has read, the weights, by the encoder's sizes."""
    settings = {name: section for name, section in config.items() if name != "paths"}
    corpora = {**config["corpora"], "train": with_contents(config["corpora"]["train"])}
    return identify(
        {
            **settings,
            "corpora": corpora,
            "vectors": vectors.checksums,
            "encoder": {k: str(x) for k, x in asdict(started.config).items()},
        },
        free=FREE,
    )


def _check_alone() -> None:
    """ValueError where `torchrun` has started several of this: each would train on all data, into one folder."""
    size = os.environ.get("WORLD_SIZE", "1")
    if size != "1":
        raise ValueError(
            f"pretrain-ernie trains in one process, but WORLD_SIZE says that there are {size}. Start it without "
            "torchrun, or with --nproc-per-node 1; a larger batch is made with training.accumulate. (`spacy luke "
            "pretrain`, which pretrains LUKE, takes several processes.)"
        )


def _find_inputs(checkpoint: ErnieCheckpoint) -> tuple[EntityVectors, PieceTokenizer]:
    if checkpoint.tokenizer is None or checkpoint.vectors is None:
        raise ValueError(
            "Pretraining needs a checkpoint with its tokenizer's files, and entity vectors: set paths.weights and "
            "paths.vectors (a folder that `spacy luke build-vectors` or `train-kge` has written)."
        )
    vectors = EntityVectors.open(checkpoint.vectors)
    if vectors.size != checkpoint.config.entity_size:
        raise ValueError(
            f"The encoder takes entity vectors of {checkpoint.config.entity_size} numbers, but those in "
            f"{checkpoint.vectors} have {vectors.size}. Use vectors of that size, or begin from a plain BERT."
        )
    return vectors, checkpoint.tokenizer
