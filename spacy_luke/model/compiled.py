"""Parts of layers compiled by torch (`torch.compile`): what follows attention, of any number of rows.

Windows differ in number and length from batch to batch, and attention is planned by them on the host; residuals, norms,
activation and the two products of the feed-forward are the same for any rows, so one graph of them serves all batches.
"""

import os
import shutil

import torch
from torch import nn

from .layer import Layer

_COMPILERS = ("g++", "clang++", "cl")


def compile_layers(module: nn.Module, device: torch.device) -> int:
    """Compile what follows attention in all layers of a module, when it is first run. RETURNS: the number of layers.
    ValueError where there is no compiler of C++, which torch needs on a CPU."""
    names = [name for name in (os.environ.get("CXX"), *_COMPILERS) if name]
    if device.type == "cpu" and not any(map(shutil.which, names)):
        raise ValueError(
            f"torch.compile needs a compiler of C++ on the CPU, but there is none of {', '.join(names)}: install one "
            "(apt-get install g++), name it in CXX, or set compile = false."
        )
    layers = [x for x in module.modules() if isinstance(x, Layer)]
    for layer in layers:
        layer.finish = torch.compile(layer.finish, dynamic=True)  # type: ignore[method-assign]
    return len(layers)
