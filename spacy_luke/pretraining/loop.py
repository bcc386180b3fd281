"""The pretraining loop, whatever is pretrained: accumulation, schedule, precision, reports, and exact resume.

A model takes a batch and returns its loss and what it measured; a stream gives batches from a `Position` on. FOLDER gets
    metrics.jsonl       a line for each report
    resume/             model.safetensors and state.pt: optimizer, random states, place in the data; replaced as one folder
A run that was killed and resumed computes what an uninterrupted one does, bit for bit, on the same machine and threads.
"""

import difflib
import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Protocol, Tuple

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from tqdm import tqdm

from ..atomic import write_folder_atomically
from ..bridge.precision import PRECISIONS, choose_precision
from ..bridge.randomness import random_states, restore_random
from ..checkpoint.files import read_tensors
from .optimizer import OptimizerSettings, make_optimizer
from .stream import Position

RESUME = "resume"
METRICS = "metrics.jsonl"
VERSION = 1


class Batch(Protocol):
    """name: which part of the data it is, for messages."""

    name: str

    def to(self, device: torch.device) -> "Batch": ...


Measured = Dict[str, Tuple[Tensor, Tensor]]  # sum and number of what is averaged
Stream = Callable[[Position], Iterator[Tuple[Any, Position]]]
Evaluate = Callable[[nn.Module], Dict[str, float]]


@dataclass(frozen=True)
class LoopSettings:
    """max_steps: of the optimizer; accumulate: batches of one step, whose losses are averaged; precision: of the products;
    log_every, save_every, eval_every: steps between reports, saved states and evaluations, 0 for none (of evaluations; the
    state is saved at the end in any case)."""

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
    fingerprint: str,
    evaluate: Optional[Evaluate] = None,
    resume: bool = False,
    is_main: bool = True,
    progress: bool = True,
) -> None:
    """Train `model` in place for settings.max_steps steps, counted from the first start.

    fingerprint: of everything that must be the same to go on: a resumed run whose fingerprint is another is refused.
    evaluate: figures for the reports, with the model in evaluation mode; it must draw no random numbers. resume: go on from FOLDER/resume.
    is_main: only this process writes files. Raises ValueError, naming the batch, for a loss or gradient that is not
    finite; the last saved state then stays.
    """
    stepper = make_optimizer(model, optimizer)
    folder.mkdir(parents=True, exist_ok=True)
    _mend(folder)
    state: Dict[str, Any] = {"step": 0, "position": Position().to_dict(), "sums": {}, "metrics_bytes": 0}
    if resume:
        state = _load(model, stepper, folder / RESUME, fingerprint)
        print(f"Resumed at step {state['step']:,} of {settings.max_steps:,}.", file=sys.stderr)
    elif (folder / RESUME).exists():
        raise ValueError(
            f"{folder / RESUME} has the state of an earlier run: go on with --resume, or choose another folder."
        )
    if is_main:
        _cut(folder / METRICS, state["metrics_bytes"])
    device = next(model.parameters()).device
    dtype = choose_precision(settings.precision, device)
    batches = stream(Position(**state["position"]))
    bar = tqdm(total=settings.max_steps, initial=state["step"], desc="pretraining", unit="step", disable=not progress)
    began, measured = time.perf_counter(), []
    model.train()
    for step in range(state["step"], settings.max_steps):
        for _ in range(settings.accumulate):
            batch, position = next(batches)
            measured.append(_backward(model, batch.to(device), settings.accumulate, dtype, step=step))
        rate = optimizer.rate(step, settings.max_steps)
        _step(model, stepper, rate, optimizer.grad_clip, name=f"step {step + 1}, whose last batch is {batch.name},")
        done = step + 1
        is_logged, is_last = done % settings.log_every == 0, done == settings.max_steps
        is_saved = is_last or bool(settings.save_every and done % settings.save_every == 0)
        is_evaluated = (
            evaluate is not None and bool(settings.eval_every) and (done % settings.eval_every == 0 or is_last)
        )
        if is_logged or is_saved or is_evaluated:
            _add(state["sums"], measured)
            measured = []
        if is_logged or is_evaluated:
            report = {"step": done, "epoch": position.epoch, "learn_rate": rate, **_averages(state["sums"])}
            if evaluate is not None and is_evaluated:
                model.eval()
                report.update({f"dev_{name}": value for name, value in evaluate(model).items()})
                model.train()
            report["seconds"] = round(time.perf_counter() - began, 3)
            began, state["sums"] = time.perf_counter(), {}
            if is_main:
                _report(folder / METRICS, report, bar)
        bar.update()
        if is_saved and is_main:
            size = (folder / METRICS).stat().st_size if (folder / METRICS).exists() else 0
            state.update(step=done, position=position.to_dict(), metrics_bytes=size)
            _save(model, stepper, state, folder / RESUME, fingerprint)
    bar.close()


def _backward(model: nn.Module, batch: Any, parts: int, dtype: torch.dtype, *, step: int) -> Measured:
    """Adds the gradient of a batch's loss, of which a step has `parts`. RETURNS: what was measured."""
    with torch.autocast(batch_device(model), dtype=dtype, enabled=dtype != torch.float32):
        loss, measured = model(batch)
    if not torch.isfinite(loss):
        values = {name: float(total / max(count, 1)) for name, (total, count) in measured.items()}
        raise ValueError(
            f"The loss of step {step + 1} is {float(loss.detach())} in the batch {batch.name} ({_shown(values)}). Look at this part "
            "of the data, or lower learn_rate; training can go on from the last saved state with --resume."
        )
    (loss / parts).backward()
    return measured


def batch_device(model: nn.Module) -> str:
    return next(model.parameters()).device.type


def _step(model: nn.Module, stepper: torch.optim.Optimizer, rate: float, clip: float, *, name: str) -> None:
    norm = nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], clip or torch.inf)
    if not torch.isfinite(norm):
        raise ValueError(
            f"The gradient of {name} is not finite (norm {float(norm)}). Lower learn_rate, or look at this part of the "
            "data; training can go on from the last saved state with --resume."
        )
    for group in stepper.param_groups:
        group["lr"] = rate * group["multiple"]
    stepper.step()
    stepper.zero_grad(set_to_none=True)


def _add(sums: Dict[str, List[float]], measured: List[Measured]) -> None:
    """Exact in float64 whenever it is called, so that a saved state in between changes nothing."""
    for part in measured:
        for name, (total, count) in part.items():
            known = sums.setdefault(name, [0.0, 0.0])
            known[0] += float(total)
            known[1] += float(count)


def _averages(sums: Dict[str, List[float]]) -> Dict[str, float]:
    """None where nothing was counted."""
    return {name: total / count if count else None for name, (total, count) in sums.items()}


def _report(path: Path, report: Dict[str, Any], bar: tqdm) -> None:
    with path.open("a", encoding="utf8") as file:
        file.write(json.dumps(report) + "\n")
    bar.write(_shown(report))


def _shown(report: Dict[str, Any]) -> str:
    return "  ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {'-' if value is None else value}"
        for name, value in report.items()
    )


def _mend(folder: Path) -> None:
    """What a kill during `write_folder_atomically` leaves: a folder between its two renames comes back, and what was half
    written goes."""
    old = folder / f".{RESUME}.old"
    if old.exists() and not (folder / RESUME).exists():
        os.replace(old, folder / RESUME)
    for unfinished in folder.glob(f".{RESUME}.*.new"):
        shutil.rmtree(unfinished)


def _cut(path: Path, size: int) -> None:
    """Reports after the saved state come again."""
    if path.exists():
        with path.open("r+b") as file:
            file.truncate(size)


def _parameters(model: nn.Module) -> Dict[str, Tensor]:
    """Parameters, each once, and the buffers that are part of a model's state."""
    known, named = model.state_dict(keep_vars=True), {}
    for name, tensor in known.items():
        if not any(tensor is other for other in named.values()):
            named[name] = tensor
    return named


def _save(
    model: nn.Module, stepper: torch.optim.Optimizer, state: Dict[str, Any], folder: Path, fingerprint: str
) -> None:
    with write_folder_atomically(folder) as new:
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in _parameters(model).items()}
        save_file(tensors, new / "model.safetensors")
        saved = {**state, "optimizer": stepper.state_dict(), "random": random_states()}
        torch.save({**saved, "version": VERSION, "fingerprint": fingerprint}, new / "state.pt")


def _load(model: nn.Module, stepper: torch.optim.Optimizer, folder: Path, fingerprint: str) -> Dict[str, Any]:
    if not (folder / "state.pt").is_file():
        raise ValueError(f"There is nothing to resume in {folder}: expected state.pt. Start without --resume.")
    state = torch.load(folder / "state.pt", weights_only=True)
    if state.pop("version") != VERSION:
        raise ValueError(f"{folder} was written by another version of this package, and cannot be gone on with.")
    if (found := state.pop("fingerprint")) != fingerprint:
        raise ValueError(
            f"{folder} belongs to a run with other settings or data, so going on would not give what it would have given. "
            "Use the same config. They differ in:\n" + "\n".join(_differences(found, fingerprint))
        )
    tensors, wanted = read_tensors(folder / "model.safetensors"), _parameters(model)
    if set(tensors) != set(wanted):
        raise ValueError(f"{folder} belongs to another model: they differ in {sorted(set(tensors) ^ set(wanted))}.")
    with torch.no_grad():
        for name, tensor in wanted.items():
            tensor.copy_(tensors[name])
    stepper.load_state_dict(state.pop("optimizer"))
    restore_random(state.pop("random"))
    return state


def _differences(old: str, new: str) -> List[str]:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
