"""The state of a model and its optimizer in a folder of torch.distributed.checkpoint: each process writes what it has,
and any number of processes, one too, reads what it needs.

Names of tensors are "model/NAME" and "moments/NAME/MOMENT", of parameters by their first name.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

_MODEL, _MOMENTS = "model/", "moments/"


def first_names(model: nn.Module) -> dict[str, Tensor]:
    """Parameters, each once, and the buffers that are part of a model's state."""
    known: dict[str, Tensor] = model.state_dict(keep_vars=True)
    named: dict[str, Tensor] = {}
    for name, tensor in known.items():
        if not any(tensor is other for other in named.values()):
            named[name] = tensor
    return named


def write_divided(model: nn.Module, stepper: torch.optim.Optimizer, folder: Path) -> None:
    """All processes call it, for the same folder."""
    from torch.distributed.checkpoint.state_dict_saver import save

    named = first_names(model)
    tensors = {f"{_MODEL}{name}": x.detach() for name, x in named.items()}
    for name, p in named.items():
        for moment, x in stepper.state.get(p, {}).items():
            tensors[f"{_MOMENTS}{name}/{moment}"] = x
    save(tensors, checkpoint_id=folder)


def read_divided(model: nn.Module, stepper: torch.optim.Optimizer | None, folder: Path) -> None:
    """Into the model, and the moments into the optimizer where there is one. Of a model that is divided all processes
    call it; else each for itself. ValueError where the state is another model's."""
    named = first_names(model)
    saved = _sizes(folder)
    there = {name.removeprefix(_MODEL) for name in saved if name.startswith(_MODEL)}
    if there != set(named):
        raise ValueError(f"{folder} belongs to another model: they differ in {sorted(there ^ set(named))}.")
    tensors = {f"{_MODEL}{name}": x.detach() for name, x in named.items()}
    moments: dict[str, dict[str, Tensor]] = {}
    for key, (size, dtype) in saved.items():
        if stepper is not None and key.startswith(_MOMENTS):
            name, _, moment = key.removeprefix(_MOMENTS).rpartition("/")
            p = named[name].detach()
            like = torch.zeros_like(p, dtype=dtype) if size == p.shape else torch.zeros(size, dtype=dtype).to(p.device)
            moments.setdefault(name, {})[moment] = tensors[key] = like
    _load(tensors, folder)
    for name, state in moments.items():
        assert stepper is not None
        stepper.state[named[name]] = state


def read_divided_tensors(folder: Path) -> dict[str, Tensor]:
    """The whole model's tensors by their names."""
    tensors = {name: torch.zeros(size, dtype=dtype) for name, (size, dtype) in _sizes(folder).items()}
    tensors = {name: x for name, x in tensors.items() if name.startswith(_MODEL)}
    _load(tensors, folder)
    return {name.removeprefix(_MODEL): x for name, x in tensors.items()}


def _sizes(folder: Path) -> dict[str, tuple[torch.Size, torch.dtype]]:
    from torch.distributed.checkpoint.filesystem import FileSystemReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    known: Mapping[str, Any] = FileSystemReader(folder).read_metadata().state_dict_metadata
    return {name: (x.size, x.properties.dtype) for name, x in known.items() if isinstance(x, TensorStorageMetadata)}


def _load(tensors: dict[str, Tensor], folder: Path) -> None:
    """In place."""
    from torch.distributed.checkpoint.state_dict_loader import load
    from torch.distributed.tensor import DTensor

    divided = any(isinstance(x, DTensor) for x in tensors.values())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")  # which is meant
        load(tensors, checkpoint_id=folder, no_dist=not divided)
