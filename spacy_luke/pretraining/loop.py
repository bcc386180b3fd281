"""The pretraining loop, whatever is pretrained: accumulation, schedule, precision, reports, and exact resume.

A model takes a batch and what its losses' sums are divided by, and returns its loss and what it measured; a stream
gives batches from a `Position` on. The loss of a step is the mean over all that its batches, in all processes, are
asked, however these are divided among them. FOLDER gets
    metrics.jsonl       a line for each report
    resume/             the last state, see `saving`; replaced as one folder
    states/step-N/      the last ones of these, as many as are to be kept

A run that was killed and resumed computes what an uninterrupted one does, bit for bit, on the same machine and
threads.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..bridge.freed_memory import keep_freed_memory
from ..bridge.identity import Identity
from ..distributed.processes import Processes
from ..model.compiled import compile_layers
from ..model.precision import PRECISIONS, choose_precision, passes_in
from ..model.recompute import recomputing
from ..model.transfer import to_device
from ..stores.atomic import mend
from ..stores.progress import ProgressBar
from .ahead import Ahead, can_fork
from .measures import Measures, Totals, add_measured, averages, total_counts
from .optimizer import OptimizerSettings, clip_gradients, freeze, make_stepper
from .saving import STATE_FOLDER, keep_states, load_state, save_state
from .stream import Position, Stream, TrainingBatch
from .watch import Learned, Watch, shown

_METRICS = "metrics.jsonl"
_HALF = "float16"  # of cards without bfloat16 (V100, T4); losses are scaled
# Settings that change nothing that is computed, or, as the number of steps, that may be others from here on.
FREE_OF_LOOP = ("max_steps", "log_every", "save_every", "eval_every", "ahead", "recompute", "keep")

Evaluate = Callable[[nn.Module], dict[str, float]]
ReportStep = Callable[[dict[str, Any] | None], None]  # after each step: the report, None where there is none


@dataclass(frozen=True)
class LoopSettings:
    """max_steps: of the optimizer; step_batches: batches of one step, of all processes together; precision: of the
    products; log_every, save_every, eval_every: steps between reports, saved states and evaluations, 0 for none (of
    evaluations; the state is saved at the end in any case). ahead: batches that are made ahead of the steps, in a
    process of their own, 0: none. recompute: activation checkpointing. keep: how many of the last states stay in
    FOLDER/states, 0: the last one alone. compile: layers are compiled by torch, see `compile_layers`."""

    max_steps: int
    step_batches: int = 1
    precision: str = "float32"
    log_every: int = 10
    save_every: int = 500
    eval_every: int = 0
    ahead: int = 2
    recompute: bool = False
    keep: int = 0
    compile: bool = False

    def __post_init__(self) -> None:
        for name, least in (
            ("max_steps", 1),
            ("step_batches", 1),
            ("log_every", 1),
            ("save_every", 0),
            ("eval_every", 0),
            ("ahead", 0),
            ("keep", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be a whole number from {least}, but it is {getattr(self, name)}.")
        if self.precision not in (*PRECISIONS, _HALF):
            raise ValueError(f"precision must be one of {(*PRECISIONS, _HALF)}, but it is {self.precision!r}.")

    def share(self, processes: int) -> int:
        """The batches of a step that each process takes. Raises ValueError where they cannot be shared out."""
        share, rest = divmod(self.step_batches, processes)
        if rest:
            raise ValueError(
                "step_batches, the batches of one step of all processes together, must be a multiple of their number, "
                f"{processes}, but it is {self.step_batches}. Change one of both, or batch_size with it, so that a "
                "step has as much as before."
            )
        return share


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
    counts: Counter[str] | None = None,
) -> None:
    """Train `model` in place for settings.max_steps steps, counted from the first start.

    identity: what must be the same to go on, and what may differ: a resumed run that differs in the first is refused.
    evaluate: figures for the reports, with the model in evaluation mode; it must draw no random numbers. resume: go on
    from FOLDER/resume where that is there. processes: that train together; the main one alone writes files. report:
    gets each report instead of the console. counts: of the stream's source, where it counts. Raises ValueError, naming
    the batch, for a loss or gradient that is not finite, of a GPU when it is read next; the last saved state then
    stays.
    """
    share = settings.share(processes.size)
    keep_freed_memory(next(model.parameters()).device)
    freeze(model, optimizer)
    if settings.compile:
        if processes.is_sharded:
            raise ValueError('compile = true needs parallel = "ddp": of parts of a model nothing is compiled.')
        compile_layers(model, device_of(model))
    wrapped = processes.wrap(model, _precision(settings, device_of(model)))
    stepper = make_stepper(model, optimizer)
    state = _start(model, stepper, folder, settings, identity, processes, resume=resume)
    learner = _Learner(model, wrapped, stepper, settings, optimizer.grad_clip, processes)
    if state.get("scale"):
        learner.scaler.load_state_dict(state["scale"])
    position = Position(**state["position"])
    ahead = Ahead(stream, position, size=settings.ahead, counts=counts) if settings.ahead and can_fork() else None
    batches = stream(position) if ahead is None else ahead
    is_shown = progress and processes.is_main
    bar = ProgressBar[None](
        None, folder.name, total=settings.max_steps, done=state["step"], unit="step", show=is_shown, keep=True,
        lines=False,
    )  # fmt: skip
    show = report or _to_console(bar)
    began, measured = time.perf_counter(), []
    model.train()
    with closing(ahead) if ahead is not None else nullcontext(), bar:
        for step in range(state["step"], settings.max_steps):
            parts, position = _take(batches, share)
            rate = optimizer.rate(step, settings.max_steps)
            measured += learner.step(parts, step=step, rate=rate)
            due = _due(step + 1, settings, evaluates=evaluate is not None)
            if any(due):
                learner.watch.look()
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
                _report(folder / _METRICS, figures, show)
            bar.update()
            if due.state:
                size = (folder / _METRICS).stat().st_size if (folder / _METRICS).exists() else 0
                state.update(step=step + 1, position=position.to_dict(), metrics_bytes=size)
                state["scale"] = learner.scaler.state_dict()
                save_state(model, stepper, state, folder / STATE_FOLDER, identity, processes)
                if processes.is_main:
                    keep_states(folder, step + 1, keep=settings.keep)


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
        mend(folder / STATE_FOLDER)
    processes.wait()
    state: dict[str, Any] = {"step": 0, "position": Position().to_dict(), "sums": {}, "metrics_bytes": 0}
    there = (folder / STATE_FOLDER).exists()
    if resume and there:
        state = load_state(model, stepper, folder / STATE_FOLDER, identity, processes)
        changed = state.pop("changed")
        if processes.is_main:
            print(f"Resumed at step {state['step']:,} of {settings.max_steps:,}.", file=sys.stderr)
            for change in changed:
                print(f"Goes on with another {change}", file=sys.stderr)
        if state["step"] > settings.max_steps:
            raise ValueError(f"{folder} has done {state['step']:,} steps, but max_steps is {settings.max_steps:,}.")
    elif there:
        raise ValueError(
            f"{folder / STATE_FOLDER} has the state of an earlier run: go on with --resume, or choose another folder."
        )
    elif resume and processes.is_main:
        print(f"Begins anew, as {folder} has nothing to resume.", file=sys.stderr)
    if processes.is_main:
        _cut(folder / _METRICS, state["metrics_bytes"])
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


class _Learner:
    """Makes steps. wrapped: what is called for the model, see `Processes.wrap`."""

    def __init__(
        self,
        model: nn.Module,
        wrapped: nn.Module,
        stepper: torch.optim.Optimizer,
        settings: LoopSettings,
        grad_clip: float,
        processes: Processes,
    ):
        self.model, self.wrapped, self.stepper = model, wrapped, stepper
        self.settings, self.grad_clip, self.processes = settings, grad_clip, processes
        self.device = device_of(model)
        is_half = settings.precision == _HALF
        if is_half and processes.is_sharded:
            raise ValueError(
                'precision = "float16" needs parallel = "ddp": parts of a model know nothing of the scale.'
            )
        self.dtype = _precision(settings, self.device)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=is_half)
        self.watch = Watch()

    def step(self, parts: Sequence[TrainingBatch], *, step: int, rate: float) -> list[Measures]:
        """One step with its batches. RETURNS: what was measured. Raises ValueError, before the step, for a loss or a
        norm that is no number; of a GPU, which is not waited for, it does so when `watch` looks."""
        learned = self._learn(parts)
        scaled = self.scaler.is_enabled()
        if scaled:
            self.scaler.unscale_(self.stepper)
        bad = self.watch.add(learned, clip_gradients(self.model, self.grad_clip), step=step, scaled=scaled)
        if self.device.type == "cpu":
            self.watch.look()
        elif not scaled:
            self.stepper.found_inf = bad  # type: ignore[attr-defined]  # as the scaler gives it
        for group in self.stepper.param_groups:
            group["lr"] = rate * group["multiple"]
        if scaled:  # a step with gradients that are too large is left out, and the scale is lowered
            self.scaler.step(self.stepper)
            self.scaler.update()
        else:
            self.stepper.step()
        self.stepper.zero_grad(set_to_none=True)
        return [part.measured for part in learned]

    def _learn(self, parts: Sequence[TrainingBatch]) -> list[Learned]:
        """Adds the gradients of a step's batches."""
        totals = self.processes.totals(total_counts(parts), self.device)
        learned = []
        for i, batch in enumerate(parts):
            with self.processes.accumulating(self.wrapped, is_last=i == len(parts) - 1):
                loss, measured = self._backward(to_device(batch, self.device), totals)
                learned.append(Learned(batch.name, loss, measured))
        return learned

    def _backward(self, batch: TrainingBatch, totals: Totals) -> tuple[Tensor, Measures]:
        """Adds the gradient of a batch's share of the step's loss. RETURNS: the loss, and what was measured."""
        with passes_in(self.dtype, self.device), recomputing(self.settings.recompute):
            result: tuple[Tensor, Measures] = self.wrapped(batch, totals)
        loss, measured = result
        self.scaler.scale(loss * self.processes.size).backward()  # processes average their gradients
        return loss.detach(), measured


def _precision(settings: LoopSettings, device: torch.device) -> torch.dtype:
    """Of the passes."""
    return torch.float16 if settings.precision == _HALF else choose_precision(settings.precision, device)


def device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def _report(path: Path, figures: dict[str, Any] | None, show: ReportStep) -> None:
    if figures is not None:
        with path.open("a", encoding="utf8") as file:
            file.write(json.dumps(figures) + "\n")
    show(figures)


def _to_console(bar: ProgressBar[None]) -> ReportStep:
    def show(figures: dict[str, Any] | None) -> None:
        if figures is not None:
            bar.write(shown(figures))

    return show


def _cut(path: Path, size: int) -> None:
    """Reports after the saved state come again."""
    if path.exists():
        with path.open("r+b") as file:
            file.truncate(size)
