"""The state of a pretraining in a folder: parameters, optimizer, random states, place in the data; replaced as a whole."""

import difflib
from pathlib import Path
from typing import Any, Dict, List

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ..atomic import write_folder_atomically
from ..bridge.randomness import random_states, restore_random
from ..checkpoint.files import read_tensors
from .processes import Processes

RESUME = "resume"
VERSION = 2


def has_state(folder: Path) -> bool:
    """Whether there is something to resume."""
    return (folder / RESUME / "state.pt").is_file()


def save_state(
    model: nn.Module,
    stepper: torch.optim.Optimizer,
    state: Dict[str, Any],
    folder: Path,
    fingerprint: str,
    processes: Processes,
) -> None:
    """All processes gather, the main one writes."""
    tensors, moments = processes.tensors(model), processes.optimizer_state(model, stepper)
    saved = {**state, "optimizer": moments, "random": processes.gather(random_states())}
    if processes.is_main:
        with write_folder_atomically(folder) as new:
            save_file({name: tensors[name].contiguous() for name in _parameters(model)}, new / "model.safetensors")
            torch.save({**saved, "version": VERSION, "fingerprint": fingerprint}, new / "state.pt")
    processes.wait()


def load_state(
    model: nn.Module, stepper: torch.optim.Optimizer, folder: Path, fingerprint: str, processes: Processes
) -> Dict[str, Any]:
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
    random = state.pop("random")
    if len(random) != processes.size:
        raise ValueError(
            f"{folder} was written by {len(random)} processes, but there are {processes.size} now. To go on exactly, start "
            f"as many."
        )
    load_tensors(model, folder, processes)
    processes.load_optimizer(model, stepper, state.pop("optimizer"))
    restore_random(random[processes.rank])
    return state


def load_tensors(model: nn.Module, folder: Path, processes: Processes = Processes()) -> None:
    """Take over the model's state from a saved one."""
    tensors, wanted = read_tensors(folder / "model.safetensors"), _parameters(model)
    if set(tensors) != set(wanted):
        raise ValueError(f"{folder} belongs to another model: they differ in {sorted(set(tensors) ^ set(wanted))}.")
    processes.load_tensors(model, tensors)


def _parameters(model: nn.Module) -> Dict[str, Tensor]:
    """Parameters, each once, and the buffers that are part of a model's state."""
    known, named = model.state_dict(keep_vars=True), {}
    for name, tensor in known.items():
        if not any(tensor is other for other in named.values()):
            named[name] = tensor
    return named


def _differences(old: str, new: str) -> List[str]:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
