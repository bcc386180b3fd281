"""Dropout that costs little on a CPU.

torch draws a double for each number, one after the other, which is up to a fifth of a training step there. Here NumPy
draws, 64 bits at once, in a sequence that torch's generator begins: a byte a number where that gives the rate, else
two. On other devices it is torch's own.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Parts of a module, names of their attributes, and the values of these.
Mode = list[tuple[nn.Module, str, bool | float]]
_NEAR = 0.02  # by how much of itself a rate may be rounded to one in bytes


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """x with a share of `rate` of its numbers set to 0, and the others divided by 1 - that share; x itself where
    training is False. The share is the rate as so many 256ths, where these are near, or as so many 65536ths. Torch's
    generator decides, by other draws than in torch.nn.functional.dropout."""
    kind = np.dtype(np.int8 if abs(round(rate * 256) - rate * 256) <= _NEAR * rate * 256 else np.int16)
    steps = 1 << 8 * kind.itemsize
    dropped = round(rate * steps)
    if not (training and x.device.type == "cpu" and 0 < dropped < steps) or torch.compiler.is_compiling():
        return F.dropout(x, rate, training)
    seed = int(torch.randint(torch.iinfo(torch.int64).max, ()))
    drawn = np.random.SFC64(seed).random_raw(-(-x.numel() * kind.itemsize // 8))
    bits = torch.from_numpy(drawn.view(kind)[: x.numel()]).view(x.shape)
    keep = torch.empty_like(bits, dtype=x.dtype)
    torch.ge(bits, dropped - steps // 2, out=keep)  # into x's own format, which is several times faster than by bools
    return x * keep.mul_(steps / (steps - dropped))


class Dropout(nn.Dropout):
    """`dropout` as a module."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)


def drop_at(module: nn.Module, rate: float) -> None:
    """Give every dropout in a module this rate."""
    for part in module.modules():
        if (name := _rate_name(part)) is not None:
            setattr(part, name, float(rate))


def mode_of(module: nn.Module) -> Mode:
    """What says whether a module drops anything out, and how much."""
    mode: Mode = []
    for part in module.modules():
        names = ("training", _rate_name(part))
        mode += [(part, name, getattr(part, name)) for name in names if name is not None]
    return mode


@contextmanager
def in_mode(mode: Mode) -> Iterator[None]:
    """Around passes of a module as it was when `mode_of` was asked."""
    before: Mode = [(part, name, getattr(part, name)) for part, name, _ in mode]
    _set(mode)
    try:
        yield
    finally:
        _set(before)


def _set(mode: Mode) -> None:
    for part, name, value in mode:
        setattr(part, name, value)


def _rate_name(part: nn.Module) -> str | None:
    """Of its attribute with a rate; None: it drops nothing out itself."""
    if isinstance(part, nn.Dropout):
        return "p"
    return "dropout" if isinstance(getattr(part, "dropout", None), float) else None  # as of `Attention`
