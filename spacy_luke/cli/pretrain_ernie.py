"""`spacy luke pretrain-ernie`: masked words, next sentence and denoised entities, with exact resume after a kill."""

import os
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

import typer
from spacy.util import registry
from thinc.api import fix_random_seed
from wasabi import msg

from ..bridge.identity import Identity, identify, with_contents
from ..checkpoint.contents import ErnieCheckpoint
from ..checkpoint.ernie import write_ernie
from ..pretraining.ernie.corruption import ernie_stream, held_out_batches
from ..pretraining.ernie.instances import Instance, report_counts
from ..pretraining.ernie.task import load_pretraining, to_checkpoint
from ..pretraining.loop import Evaluate, LoopSettings, average, pretrain
from ..pretraining.optimizer import OptimizerSettings
from ..pretraining.stream import Source
from ..vectors.store import EntityVectors
from .configs import check_count, check_sections, check_settings, make_settings, read_config

# What changes nothing that is computed, or, as the number of steps, what may be another from here on.
FREE = (
    *(f"training.{name}" for name in ("max_steps", "log_every", "save_every", "eval_every", "eval_batches")),
    *("model.path", "model.vectors", "corpora.dev"),
)
SECTIONS = ("paths", "system", "model", "corpora", "task", "training")


def pretrain_ernie_cli(
    ctx: typer.Context,
    config_path: Path = typer.Argument(..., exists=True, help="Pretraining config, such as configs/ernie_pretrain.cfg"),
    output: Path = typer.Option(..., "--output", "-o", help="Folder for model, metrics.jsonl and resume"),
    code: Path | None = typer.Option(None, "--code", "-c", help="Python file with registered functions"),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
    resume: bool = typer.Option(False, "--resume", help="Go on from OUTPUT/resume"),
) -> None:
    """Pretrain ERNIE on text with linked entities. OUTPUT/model is an ERNIE checkpoint. Overrides as in `spacy
    train`."""
    config = read_config(config_path, ctx.args, code=code)
    checkpoint, source = run(config, output, resume=resume, gpu_id=gpu_id)
    for line in report_counts(source.counts):
        msg.text(line)
    msg.good(f"Saved the checkpoint to {output / 'model'}, after {checkpoint.report[-1]}")


def run(
    config: dict[str, Any], output: Path, *, resume: bool = False, gpu_id: int = -1, progress: bool = True
) -> tuple[ErnieCheckpoint, Source[Instance]]:
    """Pretrain by an interpolated config. RETURNS: what was written to OUTPUT/model, and the training data's source."""
    _check_alone()
    check_sections(config, SECTIONS)
    _check(config)
    seed, training = config["system"]["seed"], dict(config["training"])
    optimizer = make_settings(OptimizerSettings, training.pop("optimizer"), "training.optimizer")
    batch_size, n_evaluated = training.pop("batch_size"), training.pop("eval_batches")
    settings = make_settings(LoopSettings, training, "training")
    fix_random_seed(seed)
    T = registry.resolve({name: config[name] for name in ("model", "corpora", "task")})
    checkpoint = T["model"]()
    for line in checkpoint.report:
        if not line.endswith(": fresh"):  # one for each tensor
            msg.text(line)
    vectors, tokenizer = _find_inputs(checkpoint)
    task = dict(T["task"])
    model = load_pretraining(checkpoint, seed=seed, transform=task.pop("dea_transform"), dea=task.pop("dea"))
    if gpu_id >= 0:
        model.cuda(gpu_id)
    bound = {"tokenizer": tokenizer, "vectors": vectors, "max_window": checkpoint.config.max_window, "seed": seed}
    source = T["corpora"]["train"](**bound)
    evaluate: Evaluate | None = None
    if T["corpora"]["dev"] is not None:
        held_out = held_out_batches(T["corpora"]["dev"](**bound), vectors, task, batch_size, n_evaluated, seed)
        evaluate = partial(average, batches=held_out)
    pretrain(
        model,
        ernie_stream(source, vectors, task, batch_size, seed),
        output,
        settings=settings,
        optimizer=optimizer,
        identity=_identify(config, checkpoint, vectors),
        evaluate=evaluate,
        resume=resume,
        progress=progress,
    )
    trained = to_checkpoint(model, checkpoint)
    trained.report = [*checkpoint.report, f"{settings.max_steps:,} steps of pretraining"]
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


def _identify(config: dict[str, Any], checkpoint: ErnieCheckpoint, vectors: EntityVectors) -> Identity:
    """Data count by their content; what only the first start has read, the weights, by the encoder's sizes."""
    settings = {name: section for name, section in config.items() if name != "paths"}
    corpora = {**config["corpora"], "train": with_contents(config["corpora"]["train"])}
    return identify(
        {
            **settings,
            "corpora": corpora,
            "vectors": vectors.checksums,
            "encoder": {k: str(x) for k, x in asdict(checkpoint.config).items()},
        },
        free=FREE,
    )


def _check_alone() -> None:
    """ValueError where `torchrun` has started several of this: each would train on all data, into one folder."""
    size = os.environ.get("WORLD_SIZE", "1")
    if size != "1":
        raise ValueError(
            f"pretrain-ernie trains in one process, but WORLD_SIZE says that there are {size}. Start it without "
            f"torchrun, "
            "or with --nproc-per-node 1; a larger batch is made with training.accumulate. (`spacy luke pretrain`, "
            "which "
            "pretrains LUKE, takes several processes.)"
        )


def _find_inputs(checkpoint: ErnieCheckpoint) -> tuple[EntityVectors, Any]:
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
