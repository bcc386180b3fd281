"""The state of a pretraining in a folder: parameters, optimizer, random states, place in the data; replaced as a
whole.

    state.pt             optimizer, random states of all processes, place in the data
    model.safetensors    the model; or, where it is divided among processes,
    divided/             model and optimizer by torch.distributed.checkpoint, a file of each process
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ..bridge.identity import Identity, check_same_run
from ..checkpoint.files import read_tensors
from ..distributed.divided import first_names, read_divided, read_divided_tensors, write_divided
from ..distributed.processes import Processes
from ..model.randomness import random_states, restore_random
from ..stores.atomic import write_folder_atomically

STATE_FOLDER = "resume"
_STATES = "states"
_DIVIDED = "divided"
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
    """All processes call it. The main one writes; of a model that is divided each writes its part."""
    saved = {**state, "random": processes.gather(random_states()), "version": _VERSION, "identity": identity.to_json()}
    with _write_together(folder, processes) as new:
        if processes.is_sharded:
            write_divided(model, stepper, new / _DIVIDED)
        elif processes.is_main:
            tensors = {name: x.detach().cpu().contiguous() for name, x in first_names(model).items()}
            save_file(tensors, new / "model.safetensors")
            saved["optimizer"] = stepper.state_dict()
        if processes.is_main:
            torch.save(saved, new / "state.pt")


@contextmanager
def _write_together(folder: Path, processes: Processes) -> Iterator[Path]:
    """As `write_folder_atomically`, of all processes, which see the same files."""
    with ExitStack() as held:
        new = held.enter_context(write_folder_atomically(folder)) if processes.is_main else folder
        yield processes.first(new)
        processes.wait()
    processes.wait()


def keep_states(folder: Path, step: int, *, keep: int) -> None:
    """The state of a step that was just saved stays in FOLDER/states, and of those there the last `keep`. Files are
    links to the same bytes where the file system has such."""
    states = folder / _STATES
    if keep:
        with write_folder_atomically(states / f"step-{step}") as new:
            shutil.copytree(folder / STATE_FOLDER, new, copy_function=_link, dirs_exist_ok=True)
    known = sorted(states.glob("step-*"), key=lambda path: int(path.name.partition("-")[2]))
    for path in known[:-keep] if keep else ():
        shutil.rmtree(path)


def _link(file: str, new: str) -> None:
    try:
        os.link(file, new)
    except OSError:
        shutil.copy2(file, new)


def load_state(
    model: nn.Module, stepper: torch.optim.Optimizer, folder: Path, identity: Identity, processes: Processes
) -> dict[str, Any]:
    """Into the model and the optimizer; of other processes than those that saved it, too. RETURNS: the rest of the
    state, with "changed", what differs without consequence for what is computed."""
    if not (folder / "state.pt").is_file():
        raise ValueError(f"There is nothing to resume in {folder}: expected state.pt. Delete the folder to begin anew.")
    state = torch.load(folder / "state.pt", weights_only=True)
    if state.pop("version") != _VERSION:
        raise ValueError(f"{folder} was written by another version of this package, and cannot be gone on with.")
    changed = check_same_run(state.pop("identity"), identity, folder=folder)
    random = state.pop("random")
    if (folder / _DIVIDED).is_dir():
        read_divided(model, stepper, folder / _DIVIDED)
    else:
        load_tensors(model, folder, processes)
        processes.load_optimizer(stepper, state.pop("optimizer"))
    if processes.rank < len(random):
        restore_random(random[processes.rank])
    else:  # one more than there were, with numbers of its own
        torch.manual_seed(torch.initial_seed() + int(state["step"]))
    return {**state, "changed": changed}


def load_tensors(model: nn.Module, folder: Path, processes: Processes = Processes()) -> None:
    """Take over the model's state from a saved one."""
    tensors, wanted = read_model(folder), first_names(model)
    if set(tensors) != set(wanted):
        raise ValueError(f"{folder} belongs to another model: they differ in {sorted(set(tensors) ^ set(wanted))}.")
    processes.load_tensors(model, tensors)


def read_model(folder: Path) -> dict[str, Tensor]:
    """The whole model of a saved state."""
    if (folder / _DIVIDED).is_dir():
        return read_divided_tensors(folder / _DIVIDED)
    return read_tensors(folder / "model.safetensors")
