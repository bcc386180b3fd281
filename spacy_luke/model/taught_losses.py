"""Losses of what another model says: a student learns its probabilities (Hinton, Vinyals and Dean, 2015, at
temperature 1). Each returns its gradient by the logits.

E spans or units, L classes.
"""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor


def distributions(logits_EL: Tensor, *, several: bool = False) -> NDArray[np.float64]:
    """A teacher's probabilities, of logits on the host: of one class for each unit, or, with several, of each label by
    itself; (E, L)."""
    logits_EL = logits_EL.detach().double()
    return (logits_EL.sigmoid() if several else logits_EL.softmax(-1)).numpy()


def taught_cross_entropy(logits_EL: Tensor, taught_EL: Tensor) -> tuple[Tensor, Tensor]:
    """How far the student's distributions are from the teacher's (Kullback-Leibler), summed over the rows that are
    taught, whose sums are 1; others begin with -1. And the gradient by the logits, (E, L)."""
    known_E1, target_EL = taught_EL[:, :1] >= 0, taught_EL.clamp(min=0)
    log_EL = logits_EL.detach().float().log_softmax(-1)
    loss = (known_E1 * (torch.xlogy(target_EL, target_EL) - target_EL * log_EL)).sum()
    return loss, (log_EL.exp() - target_EL) * known_E1


def taught_binary_cross_entropy(logits_E: Tensor, taught_EL: Tensor) -> tuple[Tensor, Tensor]:
    """The same of "is any mention": of all classes but the first, by one logit of each span. And its gradient, (E,)."""
    known_E = taught_EL[:, 0] >= 0
    none_E = taught_EL[:, 0].clamp(0, 1)
    logits_E, some_E = logits_E.detach().float(), 1 - none_E
    loss_E = F.binary_cross_entropy_with_logits(logits_E, some_E, reduction="none")
    loss_E = loss_E + torch.xlogy(some_E, some_E) + torch.xlogy(none_E, none_E)
    return (loss_E * known_E).sum(), (logits_E.sigmoid() - some_E) * known_E
