"""Numbers that are none: losses, gradients and scores that are infinite or not a number (nan) end a run, and no Doc
gets them. What is looked at is read from the device anyway: the sum of a batch's losses, its scores before they are
written.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc
from torch import Tensor

from .arrays import from_xp

_REMEDY = (
    "Lower the learning rate (learn_rate in [training.optimizer]), set grad_clip = 1.0 there, or train_precision = "
    '"float32" in the encoder\'s model'
)


def check_loss(loss: float, *, name: str, steps: int) -> None:
    """Raises ValueError for a loss that is no number. name: of the component; steps: that it has made."""
    if not math.isfinite(loss):
        raise ValueError(
            f"'{name}': expected a number as the loss, but it is {loss} after {steps} step(s): its weights have grown "
            f"beyond all measure, or were no numbers before. {_REMEDY}, and begin from weights that are whole: a "
            "checkpoint, or a pipeline that was saved before."
        )


def check_gradient(norm: float, *, name: str, steps: Callable[[], int]) -> None:
    """Raises ValueError for the norm of a gradient that is no number. The step must not have been made."""
    if not math.isfinite(norm):
        raise ValueError(
            f"'{name}': expected a number as the norm of the gradient, but it is {norm} after {steps()} step(s). The "
            f"step was not made: its weights are as they were, and what was learned for it is dropped. {_REMEDY}."
        )


def check_squares(squared: float, *, name: str, owner: str) -> None:
    """Raises ValueError for a gradient whose squares sum to no number. name: of the component that gave it back to the
    encoder `owner`."""
    if not math.isfinite(squared):
        raise ValueError(
            f"'{name}' gave back a gradient to '{owner}' whose squares sum to {squared}; expected a number. The "
            f"weights of one of the two have grown beyond all measure. {_REMEDY}, and begin from weights that are "
            "whole."
        )


def check_scores(
    scores_RS: Any, owner_R: Callable[[], Sequence[int] | NDArray[np.int64]], docs: Sequence[Doc], *, name: str
) -> None:
    """Raises ValueError where a score is no number. scores_RS: a tensor or array; owner_R: gives the Doc of each
    row."""
    if not isinstance(scores_RS, Tensor):
        scores_RS = from_xp(scores_RS)
    finite = torch.isfinite(scores_RS)
    if finite.all():
        return
    row = int(np.flatnonzero(~finite.reshape(len(finite), -1).all(1).cpu().numpy())[0])
    text = docs[int(owner_R()[row])].text
    raise ValueError(
        f"'{name}': expected numbers as scores of the Doc that begins {text[:60]!r}, but some are infinite or no "
        "numbers (nan): the weights of this component or of its encoder are broken, most often by a learning rate "
        "that was too high. Load a pipeline that was saved before, or train again with a lower learn_rate and "
        "grad_clip = 1.0."
    )
