"""OUTPUT/resume: all that a killed training needs to go on, and what must be as it was for that."""

from pathlib import Path
from typing import Any

import torch
from spacy.language import Language
from thinc.api import Model

from ..bridge.identity import Identity, check_same_run, identify, with_contents
from ..bridge.optimizer import AdamW, ThincKey
from ..distributed.processes import Processes
from ..model.randomness import random_states
from ..stores.atomic import write_folder_atomically

RESUME = "resume"
RUN_FOLDERS = ("model-best", "model-last", RESUME)
_VERSION = 2
_STATE = "state.pt"
# Sections whose settings count where others refer to them, or only for the start of the first run.
_WITHOUT = ("paths", "system", "initialize", "pretraining")
# What changes no update that was made: a run may go on with others. How long it is counts by way of the learning rate.
_FREE = ("training.logger", "training.gpu_allocator", "training.max_steps", "training.max_epochs", "training.patience")
_CAUSES = {"counted": ("training.max_epochs", "training.max_steps")}  # what the steps of a schedule follow from


def identity_of(config: dict[str, Any]) -> Identity:
    """What a training is made of: its settings, and of corpora with a path the content in its place.

    config: interpolated, with all numbers of steps.
    """
    settings = {name: section for name, section in config.items() if name not in _WITHOUT}
    return identify({**settings, "corpora": with_contents(settings.get("corpora", {}))}, free=_FREE)


def check_output(output: Path, *, resume: bool, overwrite: bool) -> None:
    """ValueError where a run would be lost, and where there is a file."""
    file = next((path for path in (output, *output.parents) if path.is_file()), None)
    if file is not None:
        raise ValueError(
            f"--output is {output}, but {file} is a file: expected a folder, or a name that is not there yet."
        )
    if resume and overwrite:
        raise ValueError("--resume goes on with the run that --overwrite would replace: choose one.")
    there = folders_of_run(output)
    if there and not resume and not overwrite:
        goes_on = (output / RESUME / _STATE).is_file()
        raise ValueError(
            f"{output} has {', '.join(there)} of an earlier run. "
            f"{'Go on with it (--resume), replace' if goes_on else 'It left no state to go on with: replace'} it "
            "(--overwrite), or choose another --output."
        )


def folders_of_run(output: Path) -> list[str]:
    """What an earlier run left in its output."""
    return [name for name in RUN_FOLDERS if (output / name).exists()]


def save_run_state(
    nlp: Language, optimizer: AdamW, state: dict[str, Any], folder: Path, identity: Identity, processes: Processes
) -> None:
    """The main process writes, with the random states of all."""
    saved = {**state, "version": _VERSION, "identity": identity.to_json(), "random": processes.gather(random_states())}
    if processes.is_main:
        with write_folder_atomically(folder) as temporary:
            nlp.to_disk(temporary / "pipeline")
            torch.save({**saved, "optimizer": optimizer.state_dict(name_parameters(nlp))}, temporary / _STATE)
    processes.wait()


def name_parameters(nlp: Language) -> dict[str, ThincKey]:
    """Thinc's parameters by names that are the same in each process of a run: the component, the place of the node in
    its model and what the parameter is called there; one that several components share has the first one's."""
    named: dict[ThincKey, str] = {}
    for owner, proc in nlp.pipeline:
        model = getattr(proc, "model", None)
        for number, node in enumerate(model.walk() if isinstance(model, Model) else ()):
            for name in node.param_names:
                named.setdefault((node.id, name), f"{owner}/{number}/{name}")
    return {name: key for key, name in named.items()}


def read_state(folder: Path, identity: Identity) -> dict[str, Any]:
    """The state of a run that is the same. RETURNS: it, with "changed", what differs without consequence, and "random",
    the states of all its processes."""
    if not (folder / _STATE).is_file():
        raise ValueError(
            f"There is nothing to resume in {folder}: expected {_STATE}, which is written at each evaluation. Give "
            "--overwrite in the place of --resume to replace the earlier run."
        )
    state = torch.load(folder / _STATE, weights_only=True)
    if state.pop("version", None) != _VERSION:
        raise ValueError(f"{folder} was written by another version of this package, and cannot be gone on with.")
    changed = check_same_run(state.pop("identity"), identity, folder=folder, causes=_CAUSES)
    state["results"] = [tuple(result) for result in state["results"]]
    if isinstance(state["random"], dict):  # of versions that knew one process
        state["random"] = [state["random"]]
    return {**state, "changed": changed}
