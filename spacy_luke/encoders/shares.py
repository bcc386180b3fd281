"""What components teach an encoder that they share, until it makes its step."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..bridge.wrapper import TorchShim


@dataclass
class Share:
    """Of one component: what the mean of its losses counts, how many losses there were since the last step, and the
    gradients of their sum by the parameter's name."""

    weight: float
    losses: float = 0.0
    gradients: dict[str, Tensor] = field(default_factory=dict)


@contextlib.contextmanager
def teaching(shim: TorchShim, name: str, weight: float) -> Iterator[Share]:
    """Around the passes of a component: their gradients go to its share. Whoever adds them adds to `losses`.

    Each component has its own, as only at the step it is known how many losses each of them has had: in several updates
    before a step (accumulate_gradient) one may have gold where another has none.
    """
    share = shim.shares.setdefault(name, Share(weight))
    parameters = shim.named_parameters()
    for key, p in parameters:
        p.grad = share.gradients.get(key)
    try:
        yield share
    finally:
        for key, p in parameters:
            if p.grad is not None:
                share.gradients[key] = p.grad
            p.grad = None


def gather_shares(shim: TorchShim) -> None:
    """Give the parameters their gradients: the sum of the components' means, each as much as it counts, and of what
    spaCy's components have added."""
    parameters = shim.named_parameters()
    for share in shim.shares.values():
        if share.losses:
            _add(parameters, share.gradients, share.weight / share.losses)
    _add(parameters, shim.sums, 1.0)
    shim.shares.clear()
    shim.sums.clear()


def _add(parameters: list, gradients: dict[str, Tensor], factor: float) -> None:
    if factor != 1.0 and gradients:
        torch._foreach_mul_(list(gradients.values()), factor)
    both = []
    for name, p in parameters:
        if p.grad is None:
            p.grad = gradients.get(name)
        elif name in gradients:
            both.append((p.grad, gradients[name]))
    if both:
        torch._foreach_add_(*map(list, zip(*both)))
