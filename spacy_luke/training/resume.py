"""OUTPUT/resume: all that a killed training needs to go on, and what must be as it was for that."""

import json
from pathlib import Path
from typing import Any, Dict, List

import torch
from spacy.language import Language

from ..atomic import write_folder_atomically
from ..bridge.identity import Change, changes, digest, flatten, is_one_of
from ..bridge.optimizer import AdamW
from ..bridge.randomness import random_states

RESUME = "resume"
PARTS = ("model-best", "model-last", RESUME)
VERSION = 2
# Sections whose settings count where others refer to them, or only for the start of the first run.
WITHOUT = ("paths", "system", "initialize", "pretraining")
# What changes no update that was made: a run may go on with others. How long it is counts by way of the learning rate.
FREE = ("training.logger", "training.gpu_allocator", "training.max_steps", "training.max_epochs", "training.patience")


def identify(config: Dict[str, Any]) -> Dict[str, Any]:
    """What a training is made of, flattened: its settings, and of corpora with a path the content in its place.

    config: interpolated, with all numbers of steps.
    """
    found = flatten({name: section for name, section in config.items() if name not in WITHOUT})
    for name, value in found.items():
        if name.startswith("corpora.") and isinstance(value, str) and Path(value).exists():
            found[name] = f"data with the digest {digest(Path(value))}"
    return json.loads(json.dumps(found))


def check_output(output: Path, *, resume: bool, overwrite: bool) -> None:
    """ValueError where a run would be lost."""
    if resume and overwrite:
        raise ValueError("--resume goes on with the run that --overwrite would replace: choose one.")
    there = [name for name in PARTS if (output / name).exists()]
    if there and not resume and not overwrite:
        raise ValueError(
            f"{output} has {', '.join(there)} of an earlier run. Go on with it (--resume), replace it (--overwrite), or "
            "choose another --output."
        )


def save_state(nlp: Language, optimizer: AdamW, state: Dict[str, Any], folder: Path, identity: Dict[str, Any]) -> None:
    with write_folder_atomically(folder) as temporary:
        nlp.to_disk(temporary / "pipeline")
        saved = {**state, "version": VERSION, "identity": json.dumps(identity)}
        torch.save(
            {**saved, "optimizer": optimizer.state_dict(), "random": random_states()},
            temporary / "state.pt",
        )


def read_state(folder: Path, identity: Dict[str, Any]) -> Dict[str, Any]:
    """The state of a run that is the same. RETURNS: it, with "changed", what differs without consequence."""
    if not (folder / "state.pt").is_file():
        raise ValueError(
            f"There is nothing to resume in {folder}: expected state.pt, which is written at each evaluation. "
            "Start without --resume."
        )
    state = torch.load(folder / "state.pt", weights_only=True)
    if state.pop("version", None) != VERSION:
        raise ValueError(f"{folder} was written by another version of this package, and cannot be gone on with.")
    changed = changes(json.loads(state.pop("identity")), identity)
    if wrong := [change for change in changed if not is_one_of(change.name, FREE)]:
        raise ValueError(_refusal(folder, wrong))
    state["results"] = [tuple(result) for result in state["results"]]
    return {**state, "changed": changed}


def _refusal(folder: Path, wrong: List[Change], most: int = 10) -> str:
    more = [f"and {len(wrong) - most} more"] if len(wrong) > most else []
    return (
        f"{folder} belongs to a run with another config or other data, so going on would not give what either of them gives. "
        "Use the same ones, or start anew in another folder. They differ in:\n"
        + "\n".join([*map(str, wrong[:most]), *more])
    )
