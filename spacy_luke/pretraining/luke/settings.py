"""The settings of LUKE's pretraining: sections of its config, checked and typed."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..loop import LoopSettings
from ..optimizer import OptimizerSettings
from ..sections import check_count, check_sections, check_settings, check_switch, make_settings
from ..stream import BatchSize
from .masking import MaskingSettings
from .negatives import SamplingSettings
from .task import idle_patterns

_SECTIONS = ("paths", "system", "model", "corpora", "task", "training", "stages")
_LOOP = ("precision", "log_every", "save_every", "eval_every")
_MORE = ("ahead", "recompute", "keep", "compile")  # of the loop, which need not be there
_SHARED = ("batch_size", "eval_batches", "parallel", "stages", "logger")
_BATCH_PIECES = "batch_pieces"


@dataclass(frozen=True)
class Stage:
    """seed: of the data's order."""

    loop: LoopSettings
    optimizer: OptimizerSettings
    seed: int


@dataclass(frozen=True)
class Settings:
    """size: of a batch; batch_size: windows of a held-out batch; eval_batches: held-out batches; parallel: see
    `Processes`; tasks: which of "words", "entities" and "pages" are learned; sampling: None: the softmax is over all
    entities; vectors: a store's folder, "titles", or None: what the rows of the entity table begin as; entity_aware: of
    the written checkpoint; dropout: during pretraining, None: the checkpoint's; stages: by name, in their order."""

    seed: int
    size: BatchSize
    batch_size: int
    eval_batches: int
    parallel: str
    tasks: Mapping[str, bool]
    masking: MaskingSettings
    sampling: SamplingSettings | None
    vectors: str | None
    entity_aware: bool
    dropout: float | None
    stages: Mapping[str, Stage]

    @property
    def sparse(self) -> bool:
        """Whether the entity table's gradient is sparse."""
        return self.sampling is not None and self.sampling.sparse


def read_settings(config: dict[str, Any]) -> Settings:
    """config: interpolated. Raises ValueError for settings that are missing, are none, or of another type."""
    check_sections(config, _SECTIONS)
    _check(config)
    task, training = dict(config["task"]), config["training"]
    sampling, vectors = task.pop("sampling"), task.pop("vectors")
    pages, entity_aware, dropout = (task.pop(name) for name in ("pages", "entity_aware", "dropout"))
    masking = make_settings(MaskingSettings, task, "task")
    tasks = {"words": masking.words is not None, "entities": masking.entities is not None, "pages": pages}
    sampled = sampling is not None and tasks["entities"]
    return Settings(
        seed=config["system"]["seed"],
        size=BatchSize(training["batch_size"], training.get(_BATCH_PIECES)),
        batch_size=training["batch_size"],
        eval_batches=training["eval_batches"],
        parallel=training["parallel"],
        tasks=tasks,
        masking=masking,
        sampling=make_settings(SamplingSettings, sampling, "task.sampling") if sampled else None,
        vectors=vectors,
        entity_aware=entity_aware,
        dropout=dropout,
        stages=_read_stages(config, tasks),
    )


def _check(config: dict[str, Any]) -> None:
    check_settings(config["system"], "system", ["seed"])
    check_count(config["system"]["seed"], "system.seed", least=0)
    check_settings(config["corpora"], "corpora", ["train", "dev"])
    check_settings(config["training"], "training", [*_LOOP, *_SHARED], [*_MORE, _BATCH_PIECES])
    for name in ("batch_size", "eval_batches"):
        check_count(config["training"][name], f"training.{name}")
    if (pieces := config["training"].get(_BATCH_PIECES)) is not None:
        check_count(pieces, f"training.{_BATCH_PIECES}")
    masking = [field.name for field in fields(MaskingSettings)]
    check_settings(config["task"], "task", ["sampling", "vectors", "pages", "entity_aware", "dropout"], masking)
    for name in ("pages", "entity_aware"):
        check_switch(config["task"][name], f"task.{name}")
    dropout = config["task"]["dropout"]
    if dropout is not None and not (type(dropout) in (int, float) and 0 <= dropout < 1):
        raise ValueError(f"task.dropout must be null, or from 0 and below 1, but it is {dropout!r}.")


def _read_stages(config: dict[str, Any], tasks: Mapping[str, bool]) -> dict[str, Stage]:
    """In their order. Parameters that no task reaches are frozen in each."""
    training, names = config["training"], config["training"]["stages"]
    if not isinstance(names, list) or not names or len(set(names)) != len(names) or set(names) != set(config["stages"]):
        raise ValueError(
            f"training.stages must name each of {sorted(config['stages'])} once, in their order, but it is {names}."
        )
    stages, shared = {}, {key: training[key] for key in (*_LOOP, *_MORE) if key in training}
    for i, name in enumerate(names):
        section = dict(config["stages"][name])
        if not isinstance(section.get("optimizer"), dict):
            raise ValueError(f"[stages.{name}] lacks its section [stages.{name}.optimizer].")
        optimizer = dict(section.pop("optimizer"))
        optimizer["frozen"] = [*optimizer.get("frozen", []), *idle_patterns(tasks)]
        stages[name] = Stage(
            make_settings(
                LoopSettings,
                {**shared, **section},
                f"stages.{name}",
            ),
            make_settings(OptimizerSettings, optimizer, f"stages.{name}.optimizer"),
            config["system"]["seed"] + i,
        )
    return stages
