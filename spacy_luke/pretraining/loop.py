"""The pretraining loop, whatever is pretrained: accumulation, schedule, precision, reports, and exact resume.

A model takes a batch and what its losses' sums are divided by, and returns its loss and what it measured; a stream
gives batches from a `Position` on. The loss of a step is the mean over all that its batches, in all processes, are
asked, however these are divided among them. FOLDER gets
    metrics.jsonl       a line for each report
    resume/             model.safetensors and state.pt: optimizer, random states, place in the data; replaced
                        as one folder

A run that was killed and resumed computes what an uninterrupted one does, bit for bit, on the same machine and
threads.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from tqdm import tqdm

from ..bridge.identity import Identity
from ..distributed.processes import Processes
from ..model.precision import PRECISIONS, choose_precision, passes_in
from ..model.transfer import to_device
from ..stores.atomic import mend
from .measures import Measures, Totals, add_measured, averages, total_counts
from .optimizer import OptimizerSettings, clip_gradients, freeze, make_stepper
from .saving import RESUME, load_state, save_state
from .stream import Position, Stream, TrainingBatch

METRICS = "metrics.jsonl"


Evaluate = Callable[[nn.Module], dict[str, float]]
ReportStep = Callable[[dict[str, Any] | None], None]  # after each step: the report, None where there is none


@dataclass(frozen=True)
class LoopSettings:
    """max_steps: of the optimizer; accumulate: batches of one step; precision: of the products;
    log_every, save_every, eval_every: steps between reports, saved states and evaluations, 0 for none (of evaluations;
    the state is saved at the end in any case)."""

    max_steps: int
    accumulate: int = 1
    precision: str = "float32"
    log_every: int = 10
    save_every: int = 500
    eval_every: int = 0

    def __post_init__(self) -> None:
        for name, least in (
            ("max_steps", 1),
            ("accumulate", 1),
            ("log_every", 1),
            ("save_every", 0),
            ("eval_every", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be a whole number from {least}, but it is {getattr(self, name)}.")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {PRECISIONS}, but it is {self.precision!r}.")


def pretrain(
    model: nn.Module,
    stream: Stream,
    folder: Path,
    *,
    settings: LoopSettings,
    optimizer: OptimizerSettings,
    identity: Identity,
    evaluate: Evaluate | None = None,
    resume: bool = False,
    processes: Processes = Processes(),
    report: ReportStep | None = None,
    progress: bool = True,
) -> None:
    """Train `model` in place for settings.max_steps steps, counted from the first start.

    identity: what must be the same to go on, and what may differ: a resumed run that differs in the first is refused.
    evaluate: figures for the reports, with the model in evaluation mode; it must draw no random numbers. resume: go on
    from FOLDER/resume. processes: that train together; the main one alone writes files. report: gets each report
    instead of the console. Raises ValueError, naming the batch, for a loss or gradient that is not finite; the last
    saved state then stays.
    """
    freeze(model, optimizer)
    wrapped = processes.wrap(model)
    stepper = make_stepper(model, optimizer)
    state = _start(model, stepper, folder, settings, identity, processes, resume=resume)
    learn = partial(_learn, wrapped, dtype=choose_precision(settings.precision, device_of(model)), processes=processes)
    batches = stream(Position(**state["position"]))
    shown = progress and processes.is_main
    bar = tqdm(
        total=settings.max_steps, initial=state["step"], desc=folder.name, unit="step", disable=None if shown else True
    )
    show = report or _to_console(bar)
    began, measured = time.perf_counter(), []
    model.train()
    for step in range(state["step"], settings.max_steps):
        parts, position = _take(batches, settings.accumulate)
        learned = learn(parts)
        measured += [part.measured for part in learned]
        _check(learned, clip_gradients(model, optimizer.grad_clip), step=step)
        rate = optimizer.rate(step, settings.max_steps)
        _step(stepper, rate)
        due = _due(step + 1, settings, evaluates=evaluate is not None)
        if any(due):
            add_measured(state["sums"], measured, processes)
            measured = []
        figures = None
        if due.report or due.evaluation:
            figures = {"step": step + 1, "epoch": position.epoch, "learn_rate": rate, **averages(state["sums"])}
            if evaluate is not None and due.evaluation:
                model.eval()
                figures.update({f"dev_{name}": value for name, value in evaluate(model).items()})
                model.train()
            figures["seconds"] = round(time.perf_counter() - began, 3)
            began, state["sums"] = time.perf_counter(), {}
        if processes.is_main:
            _report(folder / METRICS, figures, show)
        bar.update()
        if due.state:
            size = (folder / METRICS).stat().st_size if (folder / METRICS).exists() else 0
            state.update(step=step + 1, position=position.to_dict(), metrics_bytes=size)
            save_state(model, stepper, state, folder / RESUME, identity, processes)
    bar.close()


def _start(
    model: nn.Module,
    stepper: torch.optim.Optimizer,
    folder: Path,
    settings: LoopSettings,
    identity: Identity,
    processes: Processes,
    *,
    resume: bool,
) -> dict[str, Any]:
    """The state to go on from, that of the beginning or a saved one, which is loaded into model and stepper."""
    if processes.is_main:
        folder.mkdir(parents=True, exist_ok=True)
        mend(folder / RESUME)
    processes.wait()
    state: dict[str, Any] = {"step": 0, "position": Position().to_dict(), "sums": {}, "metrics_bytes": 0}
    if resume:
        state = load_state(model, stepper, folder / RESUME, identity, processes)
        changed = state.pop("changed")
        if processes.is_main:
            print(f"Resumed at step {state['step']:,} of {settings.max_steps:,}.", file=sys.stderr)
            for change in changed:
                print(f"Goes on with another {change}", file=sys.stderr)
        if state["step"] > settings.max_steps:
            raise ValueError(f"{folder} has done {state['step']:,} steps, but max_steps is {settings.max_steps:,}.")
    elif (folder / RESUME).exists():
        raise ValueError(
            f"{folder / RESUME} has the state of an earlier run: go on with --resume, or choose another folder."
        )
    if processes.is_main:
        _cut(folder / METRICS, state["metrics_bytes"])
    return state


class _Due(NamedTuple):
    """What follows a step."""

    report: bool
    state: bool
    evaluation: bool


def _due(done: int, settings: LoopSettings, *, evaluates: bool) -> _Due:
    """done: steps, this one included."""
    is_last = done == settings.max_steps
    return _Due(
        report=done % settings.log_every == 0,
        state=is_last or bool(settings.save_every and done % settings.save_every == 0),
        evaluation=evaluates and bool(settings.eval_every) and (done % settings.eval_every == 0 or is_last),
    )


def _take(batches: Iterator[tuple[TrainingBatch, Position]], n: int) -> tuple[list[TrainingBatch], Position]:
    """The batches of a step, and the position after them."""
    taken = [next(batches) for _ in range(n)]
    return [batch for batch, _ in taken], taken[-1][1]


class _Learned(NamedTuple):
    """name: of a batch; loss: its share of the step's."""

    name: str
    loss: Tensor
    measured: Measures


def _learn(
    model: nn.Module, parts: Sequence[TrainingBatch], *, dtype: torch.dtype, processes: Processes
) -> list[_Learned]:
    """Adds the gradients of a step's batches."""
    totals = processes.sum(total_counts(parts))
    device = device_of(model)
    learned = []
    for i, batch in enumerate(parts):
        with processes.accumulating(model, is_last=i == len(parts) - 1):
            loss, measured = _backward(model, to_device(batch, device), totals, dtype, size=processes.size)
            learned.append(_Learned(batch.name, loss, measured))
    return learned


def _backward(
    model: nn.Module, batch: TrainingBatch, totals: Totals, dtype: torch.dtype, *, size: int
) -> tuple[Tensor, Measures]:
    """Adds the gradient of a batch's share of the step's loss. size: of processes. RETURNS: the loss, and what was
    measured."""
    with passes_in(dtype, device_of(model)):
        result: tuple[Tensor, Measures] = model(batch, totals)
    loss, measured = result
    (loss * size).backward()  # processes average their gradients
    return loss.detach(), measured


def _check(learned: Sequence[_Learned], norm: Tensor, *, step: int) -> None:
    """Raises ValueError, before the step, for a loss or a norm of the gradient that is no number. A GPU is waited for
    once."""
    *losses, size = torch.stack([*(part.loss.float() for part in learned), norm.float()]).tolist()
    for part, loss in zip(learned, losses, strict=True):
        if not math.isfinite(loss):
            values = {name: float(total / count.clamp(min=1)) for name, (total, count) in part.measured.items()}
            raise ValueError(
                f"The loss of step {step + 1} is {loss} in the batch {part.name} ({_shown(values)}). Look at this part "
                "of the data, or lower learn_rate; training can go on from the last saved state with --resume."
            )
    if not math.isfinite(size):
        raise ValueError(
            f"The gradient of step {step + 1}, whose last batch is {learned[-1].name}, is not finite (norm {size}). "
            "Lower learn_rate, or look at this part of the data; training can go on from the last saved state with "
            "--resume."
        )


def device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def _step(stepper: torch.optim.Optimizer, rate: float) -> None:
    for group in stepper.param_groups:
        group["lr"] = rate * group["multiple"]
    stepper.step()
    stepper.zero_grad(set_to_none=True)


def _report(path: Path, figures: dict[str, Any] | None, show: ReportStep) -> None:
    if figures is not None:
        with path.open("a", encoding="utf8") as file:
            file.write(json.dumps(figures) + "\n")
    show(figures)


def _to_console(bar: "tqdm[None]") -> ReportStep:
    def show(figures: dict[str, Any] | None) -> None:
        if figures is not None:
            bar.write(_shown(figures))

    return show


def _shown(report: dict[str, Any]) -> str:
    return "  ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {'-' if value is None else value}"
        for name, value in report.items()
    )


def _cut(path: Path, size: int) -> None:
    """Reports after the saved state come again."""
    if path.exists():
        with path.open("r+b") as file:
            file.truncate(size)
