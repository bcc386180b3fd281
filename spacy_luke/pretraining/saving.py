"""The state of a pretraining in a folder: parameters, optimizer, random states, place in the data; replaced as a
whole."""

import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ..bridge.identity import Identity, check_same_run
from ..checkpoint.files import read_tensors
from ..distributed.processes import Processes
from ..model.randomness import random_states, restore_random
from ..stores.atomic import write_folder_atomically

STATE_FOLDER = "resume"
_STATES = "states"
_VERSION = 3


def has_state(folder: Path) -> bool:
    """Whether there is something to resume."""
    return (folder / STATE_FOLDER / "state.pt").is_file()


def saved_steps(folder: Path) -> int:
    """Of the state in a stage's folder."""
    return int(torch.load(folder / STATE_FOLDER / "state.pt", weights_only=True, mmap=True)["step"])


def save_state(
    model: nn.Module,
    stepper: torch.optim.Optimizer,
    state: dict[str, Any],
    folder: Path,
    identity: Identity,
    processes: Processes,
) -> None:
    """All processes gather, the main one writes."""
    tensors, moments = processes.tensors(model), processes.optimizer_state(model, stepper)
    saved = {**state, "optimizer": moments, "random": processes.gather(random_states())}
    if processes.is_main:
        with write_folder_atomically(folder) as new:
            save_file({name: tensors[name].contiguous() for name in _parameters(model)}, new / "model.safetensors")
            torch.save({**saved, "version": _VERSION, "identity": identity.to_json()}, new / "state.pt")
    processes.wait()


def keep_states(folder: Path, step: int, *, keep: int) -> None:
    """The state of a step that was just saved stays in FOLDER/states, and of those there the last `keep`. Files are
    links to the same bytes where the file system has such."""
    states = folder / _STATES
    if keep:
        with write_folder_atomically(states / f"step-{step}") as new:
            for file in (folder / STATE_FOLDER).iterdir():
                try:
                    os.link(file, new / file.name)
                except OSError:
                    shutil.copy2(file, new / file.name)
    known = sorted(states.glob("step-*"), key=lambda path: int(path.name.partition("-")[2]))
    for path in known[:-keep] if keep else ():
        shutil.rmtree(path)


def load_state(
    model: nn.Module, stepper: torch.optim.Optimizer, folder: Path, identity: Identity, processes: Processes
) -> dict[str, Any]:
    """Into the model and the optimizer; of other processes than those that saved it, too. RETURNS: the rest of the
    state, with "changed", what differs without consequence for what is computed."""
    if not (folder / "state.pt").is_file():
        raise ValueError(f"There is nothing to resume in {folder}: expected state.pt. Start without --resume.")
    state = torch.load(folder / "state.pt", weights_only=True)
    if state.pop("version") != _VERSION:
        raise ValueError(f"{folder} was written by another version of this package, and cannot be gone on with.")
    changed = check_same_run(state.pop("identity"), identity, folder=folder)
    random = state.pop("random")
    load_tensors(model, folder, processes)
    processes.load_optimizer(model, stepper, state.pop("optimizer"))
    if processes.rank < len(random):
        restore_random(random[processes.rank])
    else:  # one more than there were, with numbers of its own
        torch.manual_seed(torch.initial_seed() + int(state["step"]))
    return {**state, "changed": changed}


def load_tensors(model: nn.Module, folder: Path, processes: Processes = Processes()) -> None:
    """Take over the model's state from a saved one."""
    tensors, wanted = read_tensors(folder / "model.safetensors"), _parameters(model)
    if set(tensors) != set(wanted):
        raise ValueError(f"{folder} belongs to another model: they differ in {sorted(set(tensors) ^ set(wanted))}.")
    processes.load_tensors(model, tensors)


def _parameters(model: nn.Module) -> dict[str, Tensor]:
    """Parameters, each once, and the buffers that are part of a model's state."""
    known: dict[str, Tensor] = model.state_dict(keep_vars=True)
    named: dict[str, Tensor] = {}
    for name, tensor in known.items():
        if not any(tensor is other for other in named.values()):
            named[name] = tensor
    return named
