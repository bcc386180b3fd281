"""Dropout that costs little on a CPU.

torch draws a double for each number, one after the other, which is up to a fifth of a training step there; here four
numbers share the 64 bits of one draw. On other devices it is torch's own.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_STEPS = 1 << 16  # a rate is rounded to one of so many


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """x with a share of `rate` of its numbers set to 0, and the others divided by 1 - rate; x itself where training is
    False. From torch's generator, other draws than torch.nn.functional.dropout."""
    dropped = round(rate * _STEPS)
    if not (training and x.device.type == "cpu" and 0 < dropped < _STEPS):
        return F.dropout(x, rate, training)
    limits = torch.iinfo(torch.int64)
    bits = torch.randint(limits.min, limits.max, (-(-x.numel() // 4),)).view(torch.int16)[: x.numel()].view(x.shape)
    keep = bits >= dropped - _STEPS // 2
    return x * keep.to(x.dtype).mul_(_STEPS / (_STEPS - dropped))


class Dropout(nn.Dropout):
    """`dropout` as a module."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)
