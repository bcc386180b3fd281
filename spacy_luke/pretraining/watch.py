"""Whether losses and gradients are numbers, without waiting for the device at each step: a step that comes after one
that is none is not made there, and the host looks when it must read something anyway."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .measures import Measures


class Learned(NamedTuple):
    """name: of a batch; loss: its share of the step's."""

    name: str
    loss: Tensor
    measured: Measures


class _Step(NamedTuple):
    number: int
    learned: Sequence[Learned]
    norm: Tensor


class Watch:
    """bad: on the device, 1 where any loss or norm since the beginning was no number, 0 else; None before a step."""

    def __init__(self) -> None:
        self.bad: Tensor | None = None
        self.steps: list[_Step] = []

    def add(self, learned: Sequence[Learned], norm: Tensor, *, step: int, scaled: bool = False) -> Tensor:
        """Before the step is made. scaled: the norm may be infinite, see `torch.amp.GradScaler`. RETURNS: `bad`."""
        values = torch.stack([*(part.loss.float() for part in learned), *([] if scaled else [norm.float()])])
        new = (~torch.isfinite(values)).any().float()
        self.bad = new if self.bad is None else torch.maximum(self.bad, new)
        self.steps.append(_Step(step, learned, norm.float() if not scaled else torch.zeros_like(new)))
        return self.bad

    def look(self) -> None:
        """Raises ValueError for the first loss or norm of the gradient that is no number, which the step was not made
        with, nor any after it. A GPU is waited for once."""
        steps, self.steps = self.steps, []
        if not steps:
            return
        flat = torch.stack([x for step in steps for x in (*(part.loss.float() for part in step.learned), step.norm)])
        found = iter(flat.tolist())
        for step in steps:
            for part in step.learned:
                if not math.isfinite(loss := next(found)):
                    values = {name: float(total / count.clamp(min=1)) for name, (total, count) in part.measured.items()}
                    raise ValueError(
                        f"The loss of step {step.number + 1} is {loss} in the batch {part.name} ({shown(values)}). "
                        "Look at this part of the data, or lower learn_rate; training can go on from the last saved "
                        "state with --resume."
                    )
            if not math.isfinite(size := next(found)):
                raise ValueError(
                    f"The gradient of step {step.number + 1}, whose last batch is {step.learned[-1].name}, is not "
                    f"finite (norm {size}). Lower learn_rate, or look at this part of the data; training can go on "
                    "from the last saved state with --resume."
                )


def shown(report: dict[str, float]) -> str:
    return "  ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {'-' if value is None else value}"
        for name, value in report.items()
    )
