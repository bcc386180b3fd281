"""Activation checkpointing: a layer keeps what it reads alone, and is computed once more when its gradients are.

Memory for the time of one more forward pass (Chen et al., Training deep nets with sublinear memory cost, 2016).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

import torch
from torch import nn

from .dropout import in_mode, mode_of

P = ParamSpec("P")
R = TypeVar("R")
ModuleT = TypeVar("ModuleT", bound=nn.Module)
_wanted: ContextVar[bool] = ContextVar("recompute", default=False)


@contextmanager
def recomputing(wanted: bool) -> Iterator[None]:
    """Around passes whose layers are to be computed again for their gradients."""
    before = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(before)


def is_recomputing() -> bool:
    """Whether layers are to be computed again: what they leave for one another must then be made outside of them.
    Never in passes that torch.compile makes one graph of, which chooses itself what is kept."""
    return not torch.compiler.is_compiling() and _wanted.get() and torch.is_grad_enabled()


def recomputed(method: Callable[Concatenate[ModuleT, P], R]) -> Callable[Concatenate[ModuleT, P], R]:
    """A pass of a layer that can be, with the dropout of the first time: when gradients are computed, the module may be
    in evaluation mode again, or have other rates. One that is called by another is computed again with it."""

    @wraps(method)
    def run(module: ModuleT, *args: P.args, **kwargs: P.kwargs) -> R:
        if not is_recomputing():
            return method(module, *args, **kwargs)
        from torch.utils.checkpoint import checkpoint

        mode = mode_of(module)

        def alone() -> R:
            with recomputing(False), in_mode(mode):
                return method(module, *args, **kwargs)

        result: R = checkpoint(alone, use_reentrant=False)
        return result

    return cast(Callable[Concatenate[ModuleT, P], R], run)
