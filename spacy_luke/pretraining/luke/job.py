"""LUKE's pretraining by a config: masked words and entities in stages, in one process or many, with exact resume after
a kill.

OUTPUT/STAGE has the state of each stage (see `pretraining.loop`), OUTPUT/model the checkpoint that the last one leaves.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...bridge.identity import Identity, identify
from ...checkpoint.contents import LukeCheckpoint
from ...checkpoint.export import write_huggingface
from ...checkpoint.text_encoder import TextEncoder
from ...corpus.shards import Shards, tokenizer_fingerprint
from ...distributed.processes import Processes, join_processes
from ...entity_vocab import EntityVocab
from ...stores.atomic import mend
from ...text.tokenizer import PieceTokenizer
from ...vectors.build import build_vectors
from ...vectors.store import EntityVectors
from ..logger import LOSSES, open_logger
from ..loop import FREE_OF_LOOP, ReportStep, pretrain
from ..measures import average
from ..registry import make_parts
from ..saving import STATE_FOLDER, has_state, load_tensors, read_model, saved_steps
from .negatives import EntitySampler, SamplingSettings
from .settings import Settings, Stage, read_settings
from .task import LukePretraining, load_luke_pretraining, to_luke_checkpoint
from .windows import LukeBatch, LukeWindows, ShardPart, ShardSource, held_out_windows, luke_stream

# What changes nothing that is computed, or, as the number of steps, what may be another from here on.
_FREE_OF_STAGES = (*FREE_OF_LOOP, "step_batches")
_FREE = (
    *(f"training.{name}" for name in ("batch_size", "parallel", "logger", "eval_batches", *_FREE_OF_STAGES)),
    *("processes", "model.path", "task.vectors", "corpora.train.path", "corpora.train.verify", "corpora.dev"),
)
_TITLES = "titles"  # in place of a store of vectors: made of the entities' titles


def pretrain_luke(
    config: dict[str, Any], output: str | Path, *, resume: bool = False, gpu_id: int = -1, progress: bool = True
) -> LukeCheckpoint | None:
    """Pretrain by an interpolated config, such as configs/pretrain_small.cfg.

    resume: go on from where `output` was left, if anything is there. gpu_id: -1 for the CPU. Raises ValueError for a
    wrong setting, and where a run would be lost. RETURNS: the checkpoint in OUTPUT/model, None in processes that write
    nothing.
    """
    output, settings = Path(output), read_settings(config)
    with join_processes(settings.parallel, gpu=gpu_id >= 0) as processes:
        job = _open_job(config, settings, processes, output, gpu_id=gpu_id, progress=progress)
        if resume:
            _check_finished(settings.stages, output)
        before: Path | None = None
        for name, stage in settings.stages.items():
            folder = output / name
            if processes.is_main:
                mend(folder / STATE_FOLDER)
            processes.wait()
            model = _make_model(job, before)
            processes.place(model, gpu_id=job.gpu_id)
            _run_stage(job, stage, model, folder, resume=resume and (before is None or has_state(folder)))
            before = folder
        return _write(job, folder, output / "model") if processes.is_main else None


@dataclass(frozen=True)
class _Job:
    """What all stages share. started: the checkpoint to begin with; vocab: of the model's entity table; train: the
    training data; windows, held_out: made of it and of the held-out data; logger: of spaCy, None for the console."""

    config: dict[str, Any]
    settings: Settings
    processes: Processes
    output: Path
    gpu_id: int
    progress: bool
    started: LukeCheckpoint
    vocab: EntityVocab
    train: ShardPart
    windows: LukeWindows
    held_out: list[LukeBatch]
    identity: Identity
    logger: Callable[..., Any] | None


def _open_job(
    config: dict[str, Any], settings: Settings, processes: Processes, output: Path, *, gpu_id: int, progress: bool
) -> _Job:
    """Make what the config names, and check that the parts fit one another."""
    stages = settings.stages.values()
    for stage in stages:
        stage.loop.share(processes.size)
    if settings.sparse and (processes.is_sharded or any(stage.optimizer.bias_correction for stage in stages)):
        raise ValueError(
            "task.sampling.sparse needs bias_correction = false in all stages, and of several processes parallel = "
            '"ddp": torch has no other optimizer and no FSDP for sparse gradients.'
        )
    named = {"model": config["model"], "corpora": config["corpora"], "logger": config["training"]["logger"]}
    parts = make_parts(named, seed=settings.seed)
    started: LukeCheckpoint = parts["model"]()
    if started.tokenizer is None:
        raise ValueError("Pretraining needs a checkpoint with its tokenizer's files beside the weights.")
    train: ShardPart = parts["corpora"]["train"]()
    _check_shards(train.shards, started.tokenizer, like=train.shards)
    entities = train.shards.entity_vocab()
    vocab = entities if settings.tasks["entities"] else started.entities
    if vocab is None:
        raise ValueError("Pretraining without entities needs a checkpoint with its entity vocabulary.")
    windows = partial(
        _make_windows, settings, tokenizer=started.tokenizer, vocab=entities, max_window=started.config.max_window
    )
    held_out: list[LukeBatch] = []
    if parts["corpora"]["dev"] is not None:
        dev: ShardPart = parts["corpora"]["dev"]()
        _check_shards(dev.shards, started.tokenizer, like=train.shards)
        of_dev = windows(dev, sampling=None)  # the figures are those of all entities
        held_out = held_out_windows(dev.examples, of_dev, settings.batch_size, settings.eval_batches)
    return _Job(
        config=config,
        settings=settings,
        processes=processes,
        output=output,
        gpu_id=gpu_id,
        progress=progress,
        started=started,
        vocab=vocab,
        train=train,
        windows=windows(train, sampling=settings.sampling),
        held_out=held_out,
        identity=_identify(config, settings, processes, started, train.shards),
        logger=parts["logger"],
    )


def _check_shards(shards: Shards, tokenizer: PieceTokenizer, *, like: Shards) -> None:
    shards.check(
        tokenizer_fingerprint=tokenizer_fingerprint(tokenizer), entity_vocab_sha256=like.manifest["entity_vocab"]
    )


def _make_windows(
    settings: Settings,
    part: ShardPart,
    *,
    tokenizer: PieceTokenizer,
    vocab: EntityVocab,
    max_window: int,
    sampling: SamplingSettings | None,
) -> LukeWindows:
    """vocab: of the shards' entities."""
    first = 1 + max(row for name, row in vocab.special_rows().items() if name != "[MASK2]")
    sampler = None
    if sampling is not None:
        sampler = EntitySampler(sampling, first=first, end=len(vocab), counts_R=vocab.counts)
    return LukeWindows(
        part.examples,
        tokenizer=tokenizer,
        mask_entity=vocab.mask_row,
        first_entity=first,
        entities=len(vocab),
        settings=settings.masking,
        seed=settings.seed,
        max_window=max_window,
        sampler=sampler,
    )


def _identify(
    config: dict[str, Any], settings: Settings, processes: Processes, started: LukeCheckpoint, shards: Shards
) -> Identity:
    """Data count by their content, and batches by the windows of a step: all of a step's windows, and their order, are
    the same however they are divided. Of batches by pieces, which are made alike for any processes, the batches of a
    step count."""
    size = settings.batch_size if settings.size.pieces is None else 1
    of_steps = {name: size * stage.loop.step_batches for name, stage in settings.stages.items()}
    content = sha256(json.dumps(shards.manifest["files"], sort_keys=True).encode()).hexdigest()
    return identify(
        {
            **{name: section for name, section in config.items() if name != "paths"},
            "data": content,
            "encoder": {k: str(x) for k, x in asdict(started.config).items()},
            f"{'windows' if settings.size.pieces is None else 'batches'} of a step": of_steps,
            "optimizer state": "whole",  # which those of older versions by FSDP are not
            "processes": processes.size,
        },
        free=[*_FREE, *(f"stages.{name}.{setting}" for name in settings.stages for setting in _FREE_OF_STAGES)],
    )


def _check_finished(stages: Mapping[str, Stage], output: Path) -> None:
    """ValueError where a stage that another one has followed would go on, or begin anew."""
    names = list(stages)
    for name, following in zip(names, names[1:]):
        if has_state(output / following):
            if not has_state(output / name):
                raise ValueError(
                    f"{output / following} has the state of a stage that began with what stage {name} had learned, but "
                    f"of that {output / name} has nothing. Bring it back, or start anew in another folder."
                )
            done, wanted = saved_steps(output / name), stages[name].loop.max_steps
            if done != wanted:
                raise ValueError(
                    f"stages.{name}.max_steps is {wanted:,}, but the stage was finished at {done:,} steps, and "
                    f"{following} has begun with what it had learned. Set it back, or start anew in another folder."
                )


def _make_model(job: _Job, before: Path | None) -> LukePretraining:
    """As the checkpoint, or as the stage before has left it."""
    settings = job.settings
    started = replace(job.started, report=[]) if before else job.started
    if settings.dropout is not None:  # for pretraining alone: the written checkpoint has its own
        rate = settings.dropout
        started = replace(started, config=replace(started.config, dropout=rate, attention_dropout=rate))
    model = load_luke_pretraining(
        started, job.vocab, seed=settings.seed, sparse=settings.sparse, vectors=_open_vectors(job), **settings.tasks
    )
    if before is not None:
        load_tensors(model, before / STATE_FOLDER)
    return model


def _open_vectors(job: _Job) -> EntityVectors | None:
    """What the rows of the entity table begin as; those of titles are made once, where entities are learned."""
    if job.settings.vectors != _TITLES:
        return None if job.settings.vectors is None else EntityVectors.open(job.settings.vectors)
    if not job.settings.tasks["entities"]:
        return None
    store = job.output / _TITLES
    if job.processes.is_main and not store.is_dir():
        job.output.mkdir(parents=True, exist_ok=True)
        special = job.vocab.special_rows()
        names = [name for name in job.vocab.titles() if name is not None and name not in special]
        encoder = TextEncoder(job.started, gpu_id=job.processes.gpu(job.gpu_id))
        rows = encoder.encode([name.split(":", 1)[-1] for name in names])
        build_vectors(rows, store, format="numpy", names=names)
    job.processes.wait()
    return EntityVectors.open(store)


def _run_stage(job: _Job, stage: Stage, model: LukePretraining, folder: Path, *, resume: bool) -> None:
    """One stage, from the first of the data on."""
    settings, processes = job.settings, job.processes
    processes.seed(settings.seed)
    show: ReportStep | None = None
    finish: Callable[[], None] | None = None
    if job.logger is not None and processes.is_main:
        losses = [x for x, used in zip(LOSSES, settings.tasks.values(), strict=True) if used]
        show, finish = open_logger(job.logger, job.config, losses=losses, settings=stage.loop)
    source = ShardSource(job.train.examples, seed=stage.seed, quotas=job.train.quotas)
    try:
        pretrain(
            model,
            luke_stream(source, job.windows, settings.size, rank=processes.rank, world_size=processes.size),
            folder,
            settings=stage.loop,
            optimizer=stage.optimizer,
            identity=job.identity,
            evaluate=partial(average, batches=job.held_out, processes=processes) if job.held_out else None,
            resume=resume,
            processes=processes,
            report=show,
            progress=job.progress,
        )
    finally:
        if finish is not None:
            finish()


def _write(job: _Job, folder: Path, model_folder: Path) -> LukeCheckpoint:
    """The last stage's model as a checkpoint."""
    trained = to_luke_checkpoint(
        read_model(folder / STATE_FOLDER),
        job.started,
        job.vocab,
        tasks=job.settings.tasks,
        entity_aware=job.settings.entity_aware,
    )
    steps = ", ".join(f"{stage.loop.max_steps:,} ({name})" for name, stage in job.settings.stages.items())
    trained.report.append(f"{steps} steps of pretraining")
    write_huggingface(trained, model_folder)
    return trained
