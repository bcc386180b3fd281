"""`spacy luke pretrain`: masked words and entities in stages, in one process or many, with exact resume after a
kill."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import typer
from spacy.util import registry
from thinc.api import fix_random_seed
from wasabi import msg

from ..bridge.identity import Identity, identify
from ..checkpoint.contents import LukeCheckpoint
from ..checkpoint.export import write_huggingface
from ..checkpoint.files import read_tensors
from ..components.linker.embed_entities import TextEncoder
from ..corpus.shards import Shards, tokenizer_fingerprint
from ..entity_vocab import EntityVocab
from ..pretraining.loop import LoopSettings, average, pretrain
from ..pretraining.luke.masking import MaskingSettings
from ..pretraining.luke.negatives import EntitySampler, SamplingSettings
from ..pretraining.luke.task import LukePretraining, idle_patterns, load_luke_pretraining, to_luke_checkpoint
from ..pretraining.luke.windows import LukeWindows, ShardPart, ShardSource, held_out_windows, luke_stream
from ..pretraining.optimizer import OptimizerSettings
from ..pretraining.processes import Processes, join_processes
from ..pretraining.saving import RESUME, has_state, load_tensors, saved_steps
from ..stores.atomic import mend
from ..vectors.build import build_vectors
from ..vectors.store import EntityVectors
from .configs import check_count, check_sections, check_settings, check_switch, make_settings, read_config
from .pretrain_logger import LOSSES, open_logger

SECTIONS = ("paths", "system", "model", "corpora", "task", "training", "stages")
# What changes nothing that is computed, or, as the number of steps, what may be another from here on.
FREE_OF_STAGES = ("max_steps", "accumulate", "log_every", "save_every", "eval_every")
FREE = (
    *(f"training.{name}" for name in ("batch_size", "parallel", "logger", "eval_batches", *FREE_OF_STAGES)),
    *("processes", "model.path", "task.vectors", "corpora.train.path", "corpora.train.verify", "corpora.dev"),
)
TITLES = "titles"  # in place of a store of vectors: made of the entities' titles
LOOP = ("precision", "log_every", "save_every", "eval_every")
SHARED = ("batch_size", "eval_batches", "parallel", "stages", "logger")


def pretrain_cli(
    ctx: typer.Context,
    config_path: Path = typer.Argument(..., exists=True, help="Pretraining config, such as configs/pretrain_small.cfg"),
    output: Path = typer.Option(..., "--output", "-o", help="Folder for model, and a folder a stage"),
    code: Path | None = typer.Option(None, "--code", "-c", help="Python file with registered functions"),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU; with torchrun 0: each its own"),
    resume: bool = typer.Option(False, "--resume", help="Go on from where OUTPUT was left"),
) -> None:
    """Pretrain LUKE on shards (`spacy luke build-shards`). OUTPUT/model is a checkpoint in Hugging Face's layout.

    Several processes: torchrun --nproc-per-node 8 -m spacy luke pretrain ... Overrides as in `spacy train`.
    """
    config = read_config(config_path, ctx.args, code=code)
    trained = run(config, output, resume=resume, gpu_id=gpu_id)
    if trained is not None:
        for line in trained.report:
            msg.text(line)
        msg.good(f"Saved the checkpoint to {output / 'model'}")


def run(
    config: dict[str, Any], output: Path, *, resume: bool = False, gpu_id: int = -1, progress: bool = True
) -> LukeCheckpoint | None:
    """Pretrain by an interpolated config. RETURNS: what was written to OUTPUT/model, None in processes that write
    nothing."""
    check_sections(config, SECTIONS)
    _check(config)
    with join_processes(config["training"]["parallel"], gpu=gpu_id >= 0) as processes:
        job = _Job(config, output, processes, gpu_id=gpu_id, progress=progress)
        before: Path | None = None
        if resume:
            job.check_finished_stages()
        for name in job.stages:
            folder = output / name
            if processes.is_main:
                mend(folder / RESUME)
            processes.wait()
            job.run_stage(name, folder, before=before, resume=resume and (before is None or has_state(folder)))
            before = folder
        return job.write(folder, output / "model") if processes.is_main else None


def _check(config: dict[str, Any]) -> None:
    """ValueError for settings that are missing, are none, or of another type."""
    check_settings(config["system"], "system", ["seed"])
    check_count(config["system"]["seed"], "system.seed", least=0)
    check_settings(config["corpora"], "corpora", ["train", "dev"])
    check_settings(config["training"], "training", [*LOOP, *SHARED])
    for name in ("batch_size", "eval_batches"):
        check_count(config["training"][name], f"training.{name}")
    masking = [field.name for field in fields(MaskingSettings)]
    check_settings(config["task"], "task", ["sampling", "vectors", "pages", "entity_aware", "dropout"], masking)
    for name in ("pages", "entity_aware"):
        check_switch(config["task"][name], f"task.{name}")
    dropout = config["task"]["dropout"]
    if dropout is not None and not (type(dropout) in (int, float) and 0 <= dropout < 1):
        raise ValueError(f"task.dropout must be null, or from 0 and below 1, but it is {dropout!r}.")


@dataclass(frozen=True)
class _Stage:
    settings: LoopSettings
    optimizer: OptimizerSettings
    seed: int  # of the data's order


def _read_stages(config: dict[str, Any], tasks: Mapping[str, bool]) -> dict[str, _Stage]:
    """In their order. Of parameters that no task reaches none is in an optimizer."""
    training, names = config["training"], config["training"]["stages"]
    if not isinstance(names, list) or not names or len(set(names)) != len(names) or set(names) != set(config["stages"]):
        raise ValueError(
            f"training.stages must name each of {sorted(config['stages'])} once, in their order, but it is {names}."
        )
    stages = {}
    for i, name in enumerate(names):
        section = dict(config["stages"][name])
        if not isinstance(section.get("optimizer"), dict):
            raise ValueError(f"[stages.{name}] lacks its section [stages.{name}.optimizer].")
        optimizer = dict(section.pop("optimizer"))
        optimizer["frozen"] = [*optimizer.get("frozen", []), *idle_patterns(tasks)]
        stages[name] = _Stage(
            make_settings(LoopSettings, {**{key: training[key] for key in LOOP}, **section}, f"stages.{name}"),
            make_settings(OptimizerSettings, optimizer, f"stages.{name}.optimizer"),
            config["system"]["seed"] + i,
        )
    return stages


class _Job:
    """What all stages share: data, the checkpoint to begin with, tasks."""

    def __init__(self, config: dict[str, Any], output: Path, processes: Processes, *, gpu_id: int, progress: bool):
        self.output, self.config, self.processes = output, config, processes
        self.gpu_id, self.progress = gpu_id, progress
        self.seed: int = config["system"]["seed"]
        self.batch_size = config["training"]["batch_size"]
        task = dict(config["task"])
        sampling, self.vectors = task.pop("sampling"), task.pop("vectors")
        pages, self.entity_aware, self.dropout = (task.pop(name) for name in ("pages", "entity_aware", "dropout"))
        self.masking = make_settings(MaskingSettings, task, "task")
        self.tasks = {
            "words": self.masking.words is not None,
            "entities": self.masking.entities is not None,
            "pages": pages,
        }
        self.sampling: SamplingSettings | None = None
        if sampling is not None and self.tasks["entities"]:
            self.sampling = make_settings(SamplingSettings, sampling, "task.sampling")
        self.stages = _read_stages(config, self.tasks)
        if self.sparse and (processes.is_sharded or any(x.optimizer.bias_correction for x in self.stages.values())):
            raise ValueError(
                "task.sampling.sparse needs bias_correction = false in all stages, and of several processes parallel = "
                '"ddp": torch has no other optimizer and no FSDP for sparse gradients.'
            )
        fix_random_seed(self.seed)
        T = registry.resolve({name: config[name] for name in ("model", "corpora")})
        self.logger = registry.resolve({"logger": config["training"]["logger"]})["logger"]
        self.checkpoint: LukeCheckpoint = T["model"]()
        if self.checkpoint.tokenizer is None:
            raise ValueError("Pretraining needs a checkpoint with its tokenizer's files beside the weights.")
        self.tokenizer = self.checkpoint.tokenizer
        self.train: ShardPart = T["corpora"]["train"]()
        shards = self.train.shards
        self._check(shards, like=shards)
        entities = shards.entity_vocab()
        self.vocab: Any = entities if self.tasks["entities"] else self.checkpoint.entities
        self.windows = self._make_windows(self.train, entities, sampling=self.sampling)
        self.held_out: list[Any] = []
        if T["corpora"]["dev"] is not None:
            dev = T["corpora"]["dev"]()
            self._check(dev.shards, like=shards)
            windows = self._make_windows(dev, entities, sampling=None)  # the figures are those of all entities
            self.held_out = held_out_windows(dev.examples, windows, self.batch_size, config["training"]["eval_batches"])
        self.identity = self._identify(config, shards)

    def _identify(self, config: dict[str, Any], shards: Shards) -> Identity:
        """Data count by their content, and processes, batches and their accumulation by the windows of a step: all of a
        step's windows, and their order, are the same however they are divided."""
        size = self.batch_size * self.processes.size
        windows = {name: size * stage.settings.accumulate for name, stage in self.stages.items()}
        content = sha256(json.dumps(shards.manifest["files"], sort_keys=True).encode()).hexdigest()
        settings = {name: section for name, section in config.items() if name != "paths"}
        return identify(
            {
                **settings,
                "data": content,
                "encoder": {k: str(x) for k, x in asdict(self.checkpoint.config).items()},
                "windows of a step": windows,
                "optimizer state": "of FSDP" if self.processes.is_sharded else "whole",
                "processes": self.processes.size,
            },
            free=[*FREE, *(f"stages.{name}.{setting}" for name in self.stages for setting in FREE_OF_STAGES)],
        )

    @property
    def sparse(self) -> bool:
        return self.sampling is not None and self.sampling.sparse

    def _check(self, shards: Shards, *, like: Shards) -> None:
        shards.check(
            tokenizer_fingerprint=tokenizer_fingerprint(self.tokenizer),
            entity_vocab_sha256=like.manifest["entity_vocab"],
        )

    def _make_windows(self, part: ShardPart, vocab: EntityVocab, *, sampling: SamplingSettings | None) -> LukeWindows:
        first = 1 + max(row for name, row in vocab.special_rows().items() if name != "[MASK2]")
        sampler = None
        if sampling is not None:
            sampler = EntitySampler(sampling, first=first, end=len(vocab), counts_R=vocab.counts)
        return LukeWindows(
            part.examples,
            tokenizer=self.tokenizer,
            mask_entity=vocab.mask_row,
            first_entity=first,
            entities=len(vocab),
            settings=self.masking,
            seed=self.seed,
            max_window=self.checkpoint.config.max_window,
            sampler=sampler,
        )

    def _open_vectors(self) -> EntityVectors | None:
        """What the rows of the entity table begin as; those of titles are made once."""
        if self.vectors != TITLES:
            return None if self.vectors is None else EntityVectors.open(self.vectors)
        store = self.output / TITLES
        if self.processes.is_main and not store.is_dir():
            self.output.mkdir(parents=True, exist_ok=True)
            special = self.vocab.special_rows()
            names = [name for name in self.vocab.titles() if name is not None and name not in special]
            rows = TextEncoder(self.checkpoint).encode([name.split(":", 1)[-1] for name in names])
            build_vectors(rows, store, format="numpy", names=names)
        self.processes.wait()
        return EntityVectors.open(store)

    def _make_model(self, before: Path | None) -> LukePretraining:
        """As the checkpoint, or as the stage before has left it."""
        started = replace(self.checkpoint, report=[]) if before else self.checkpoint
        if self.dropout is not None:  # for pretraining alone: the written checkpoint has its own
            rates = {"dropout": self.dropout, "attention_dropout": self.dropout}
            started = replace(started, config=replace(started.config, **rates))
        model = load_luke_pretraining(
            started, self.vocab, seed=self.seed, sparse=self.sparse, vectors=self._open_vectors(), **self.tasks
        )
        if before is not None:
            load_tensors(model, before / RESUME)
        self.processes.place(model, gpu_id=self.gpu_id)
        return model

    def check_finished_stages(self) -> None:
        """ValueError where a stage that another one has followed would go on."""
        names = list(self.stages)
        for name, following in zip(names, names[1:]):
            if has_state(self.output / following) and has_state(self.output / name):
                done, wanted = saved_steps(self.output / name), self.stages[name].settings.max_steps
                if done != wanted:
                    raise ValueError(
                        f"stages.{name}.max_steps is {wanted:,}, but the stage was finished at {done:,} steps, and "
                        f"{following} has "
                        "begun with what it had learned. Set it back, or start anew in another folder."
                    )

    def run_stage(self, name: str, folder: Path, *, before: Path | None, resume: bool) -> None:
        """One stage, which begins with what the one before has learned, and with the first of the data."""
        stage, model = self.stages[name], self._make_model(before)
        self.processes.seed(self.seed)
        show, finish = None, lambda: None
        if self.logger is not None and self.processes.is_main:
            losses = [x for x, used in zip(LOSSES, self.tasks.values(), strict=True) if used]
            show, finish = open_logger(self.logger, self.config, losses=losses, settings=stage.settings)
        rank, size = self.processes.rank, self.processes.size
        try:
            pretrain(
                model,
                luke_stream(
                    ShardSource(self.train.examples, seed=stage.seed),
                    self.windows,
                    self.batch_size,
                    rank=rank,
                    world_size=size,
                ),
                folder,
                settings=stage.settings,
                optimizer=stage.optimizer,
                identity=self.identity,
                evaluate=partial(average, batches=self.held_out) if self.held_out else None,
                resume=resume,
                processes=self.processes,
                report=show,
                progress=self.progress,
            )
        finally:
            finish()

    def write(self, folder: Path, model_folder: Path) -> LukeCheckpoint:
        """The last stage's model as a checkpoint."""
        trained = to_luke_checkpoint(
            read_tensors(folder / RESUME / "model.safetensors"),
            self.checkpoint,
            self.vocab,
            tasks=self.tasks,
            entity_aware=self.entity_aware,
        )
        steps = ", ".join(f"{stage.settings.max_steps:,} ({name})" for name, stage in self.stages.items())
        trained.report.append(f"{steps} steps of pretraining")
        write_huggingface(trained, model_folder)
        return trained
