"""The states of all random numbers that a process draws, of a GPU those of its own, as values that `torch.save` writes
and `weights_only` reads: for exact resuming."""

import random
from typing import Any

import numpy
import torch


def random_states() -> dict[str, Any]:
    generator = numpy.random.get_state(legacy=False)
    return {
        "python": random.getstate(),
        "numpy": [
            generator["bit_generator"],
            generator["state"]["key"].tolist(),
            generator["state"]["pos"],
            generator["has_gauss"],
            generator["gauss"],
        ],
        "torch": torch.get_rng_state(),
        "cuda": [torch.cuda.get_rng_state()] if torch.cuda.is_available() else [],
    }


def restore_random(states: dict[str, Any]) -> None:
    version, internal, gauss = states["python"]
    random.setstate((version, tuple(internal), gauss))
    name, keys, *rest = states["numpy"]
    numpy.random.set_state((name, numpy.array(keys, dtype=numpy.uint32), *rest))
    torch.set_rng_state(states["torch"])
    if len(states["cuda"]) == 1:
        torch.cuda.set_rng_state(states["cuda"][0])
    elif states["cuda"]:  # of versions that kept those of all GPUs
        torch.cuda.set_rng_state_all(states["cuda"])
