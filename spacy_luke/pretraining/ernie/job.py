"""ERNIE's pretraining by a config: masked words, next sentence and denoised entities, with exact resume after a kill.

OUTPUT has the state (see `pretraining.loop`), and OUTPUT/model the ERNIE checkpoint that is left.
"""

from collections.abc import Callable
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

from ...bridge.identity import Identity, identify, with_contents
from ...checkpoint.contents import ErnieCheckpoint
from ...checkpoint.ernie import write_ernie
from ...distributed.processes import Processes, join_processes
from ...text.tokenizer import PieceTokenizer
from ...vectors.store import EntityVectors
from ..loop import FREE_OF_LOOP, Evaluate, LoopSettings, pretrain
from ..measures import average
from ..optimizer import OptimizerSettings
from ..registry import make_parts
from ..sections import check_count, check_sections, check_settings, make_settings
from ..stream import BatchSize
from .corruption import ernie_stream, held_out_batches
from .sources import ErnieSource
from .task import load_pretraining, to_checkpoint

# What changes nothing that is computed, or, as the number of steps, what may be another from here on.
_FREE = (
    *(f"training.{name}" for name in (*FREE_OF_LOOP, "eval_batches", "parallel")),
    *("processes", "model.path", "model.vectors", "corpora.dev"),
)
_SECTIONS = ("paths", "system", "model", "corpora", "task", "training")


def pretrain_ernie(
    config: dict[str, Any],
    output: str | Path,
    *,
    resume: bool = False,
    gpu_id: int = -1,
    progress: bool = True,
    tell: Callable[[str], object] | None = None,
) -> tuple[ErnieCheckpoint | None, ErnieSource[Any]]:
    """Pretrain by an interpolated config, such as configs/ernie_pretrain.cfg.

    resume: go on from OUTPUT/resume, if it is there. gpu_id: -1 for the CPU. tell: gets the lines of the first
    checkpoint's report before training. Raises ValueError for a wrong setting, and where a run would be lost. RETURNS:
    the checkpoint in OUTPUT/model, None in processes that write nothing, and the training data's source.
    """
    output = Path(output)
    check_sections(config, _SECTIONS)
    _check(config)
    seed, training = config["system"]["seed"], {"parallel": "ddp", **config["training"]}
    optimizer = make_settings(OptimizerSettings, training.pop("optimizer"), "training.optimizer")
    batch_size, n_evaluated = training.pop("batch_size"), training.pop("eval_batches")
    parallel, size = training.pop("parallel"), BatchSize(batch_size, training.pop("batch_pieces", None))
    settings = make_settings(LoopSettings, training, "training")
    # the last layer's states of entities are read by no loss
    with join_processes(parallel, gpu=gpu_id >= 0, some_unused=True) as processes:
        settings.share(processes.size)
        parts = make_parts({name: config[name] for name in ("model", "corpora", "task")}, seed=seed)
        started: ErnieCheckpoint = parts["model"]()
        for line in started.report:
            if tell is not None and processes.is_main and not line.endswith(": fresh"):  # one for each tensor
                tell(line)
        vectors, tokenizer = _find_inputs(started)
        task = dict(parts["task"])
        model = load_pretraining(started, seed=seed, transform=task.pop("dea_transform"), dea=task.pop("dea"))
        processes.place(model, gpu_id=gpu_id)
        processes.seed(seed)
        bound = {"tokenizer": tokenizer, "vectors": vectors, "max_window": started.config.max_window, "seed": seed}
        source: ErnieSource[Any] = parts["corpora"]["train"](**bound)
        evaluate: Evaluate | None = None
        if parts["corpora"]["dev"] is not None:
            held_out = held_out_batches(parts["corpora"]["dev"](**bound), vectors, task, batch_size, n_evaluated, seed)
            evaluate = partial(average, batches=held_out, processes=processes)
        pretrain(
            model,
            ernie_stream(source, vectors, task, size, seed, rank=processes.rank, world_size=processes.size),
            output,
            settings=settings,
            optimizer=optimizer,
            identity=_identify(config, started, vectors, settings, processes),
            evaluate=evaluate,
            resume=resume,
            processes=processes,
            progress=progress,
            counts=source.counts,
        )
        trained = to_checkpoint(processes.tensors(model), started)
        trained.report = [*started.report, f"{settings.max_steps:,} steps of pretraining"]
        if processes.is_main:
            write_ernie(trained, output / "model")
        return (trained if processes.is_main else None), source


def _check(config: dict[str, Any]) -> None:
    """ValueError for settings that are missing, are none, or of another type."""
    check_settings(config["system"], "system", ["seed"])
    check_count(config["system"]["seed"], "system.seed", least=0)
    check_settings(config["corpora"], "corpora", ["train", "dev"])
    check_settings(config["task"], "task", ["replaced", "removed", "candidates", "dea_transform", "dea"])
    loop = [field.name for field in fields(LoopSettings)]
    check_settings(
        config["training"],
        "training",
        ["optimizer", "batch_size", "eval_batches", "max_steps"],
        [*loop, "parallel", "batch_pieces"],
    )
    for name in ("batch_size", "eval_batches"):
        check_count(config["training"][name], f"training.{name}")
    if (pieces := config["training"].get("batch_pieces")) is not None:
        check_count(pieces, "training.batch_pieces")


def _identify(
    config: dict[str, Any],
    started: ErnieCheckpoint,
    vectors: EntityVectors,
    loop: LoopSettings,
    processes: Processes,
) -> Identity:
    """Data count by their content; what only the first start has read, the weights, by the encoder's sizes."""
    settings = {name: section for name, section in config.items() if name != "paths"}
    training = {**config["training"], "step_batches": loop.step_batches}
    corpora = {**config["corpora"], "train": with_contents(config["corpora"]["train"])}
    return identify(
        {
            **settings,
            "training": training,
            "corpora": corpora,
            "processes": processes.size,
            "vectors": vectors.checksums,
            "encoder": {k: str(x) for k, x in asdict(started.config).items()},
        },
        free=_FREE,
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
