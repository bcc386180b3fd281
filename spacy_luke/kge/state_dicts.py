"""The entities' vectors in what PyTorch saved: a model's state, or a checkpoint that holds one. Nothing is
unpickled."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..vectors.matrices import choose_tensor

STATE_DICTS = (".pt", ".pth", ".ckpt")
_INSIDE = ("model_state_dict", "state_dict")  # where checkpoints keep the model's state


def read_entity_table(path: str | Path) -> np.ndarray:
    """Floating-point (rows, size), memory-mapped where the file allows it. PyKEEN: `torch.save(model.state_dict(),
    path)`;
    OpenKE: `model.save_checkpoint(path)`. ValueError where the file holds more than tensors, or no table of
        entities."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"Expected a model's state at {path}, but there is no such file.")
    try:
        state = _load(path)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise ValueError(
            f"{path} is no whole state of a model, or holds more than tensors, which could run code: save "
            f"`model.state_dict()` alone. ({str(error).splitlines()[0] if str(error) else type(error).__name__})"
        ) from error
    for key in _INSIDE:
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict):
        raise ValueError(f"{path}: expected tensors by their names, but it holds a {type(state).__name__}.")
    tensors: dict[str, torch.Tensor] = {str(key): x for key, x in state.items() if isinstance(x, torch.Tensor)}
    key = choose_tensor({key: tuple(x.shape) for key, x in tensors.items()}, str(path))
    table = tensors[key].detach()
    return (table.float() if table.dtype == torch.bfloat16 else table).numpy()


def _load(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a pickle's protocol: what it cannot read, it refuses
        try:
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError as error:
            if "mmap" not in str(error):
                raise
            return torch.load(path, map_location="cpu", weights_only=True)  # the format before PyTorch 1.6
