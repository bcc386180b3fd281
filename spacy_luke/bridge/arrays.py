"""Between torch's tensors and the arrays that Thinc knows, of NumPy or CuPy: the numbers stay where they are."""

from typing import Any, cast

import numpy as np
import torch
from thinc.types import Floats2d, FloatsXd
from thinc.util import torch2xp
from torch import Tensor
from torch.utils.dlpack import from_dlpack


def from_xp(array: Any) -> Tensor:
    """A tensor. Thinc's `xp2torch` takes NumPy's numbers to the GPU that there may be, and asks CuPy by a function that
    will be removed."""
    return torch.from_numpy(array) if isinstance(array, np.ndarray) else from_dlpack(array)


def to_floats(x: Tensor) -> FloatsXd:
    """For Thinc, whose optimizers know no array without a dimension: a number alone becomes an array of one. A cast, as
    `torch2xp` does not say of which type the numbers are."""
    return cast(FloatsXd, torch2xp(torch.atleast_1d(x)))


def to_floats2d(x: Tensor) -> Floats2d:
    return cast(Floats2d, torch2xp(x))
