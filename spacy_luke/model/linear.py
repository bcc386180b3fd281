"""Linear layers that multiply, in predictions in float32, by the faster one of the libraries that torch has on a CPU.

torch multiplies float32 by MKL, which is slow on chips of other makers: on an AMD EPYC with AVX-512, oneDNN was
measured at 2.1 times its speed. Which one is faster is measured once in a process. oneDNN makes code anew for each
number of rows, so few numbers are used: rows in groups, of which the last two overlap.

N rows, K inputs, M outputs.
"""

from collections.abc import Callable
from functools import cache
from time import perf_counter as clock

import torch
import torch.nn.functional as F
from torch import Tensor, nn

GROUP = 64  # rows; of fewer than these MKL multiplies
MANY = 1024  # rows from which making code anew costs next to nothing
_GAIN = 1.3  # how much faster is clearly faster
_FUSED = {"": ("none", ""), "gelu": ("gelu", "none"), "gelu_new": ("gelu", "tanh"), "relu": ("relu", "")}


class Linear(nn.Linear):
    """torch's, with the same parameters and, but for rounding, the same results."""

    def forward(self, x: Tensor) -> Tensor:
        """x: (..., K). RETURNS: (..., M)."""
        return multiply(x, self.weight, self.bias)


def multiply(x: Tensor, weight_MK: Tensor, bias_M: Tensor | None, activation: str = "") -> Tensor:
    """A linear layer of x (..., K), and what follows it: (..., M)."""
    if _is_for_onednn(x, weight_MK) and is_onednn_faster():
        return _multiply_in_groups(x, weight_MK, bias_M, activation)
    return activate(F.linear(x, weight_MK, bias_M), activation)


def activate(x: Tensor, name: str) -> Tensor:
    if name == "gelu":
        return F.gelu(x)
    if name == "gelu_new":
        return F.gelu(x, approximate="tanh")
    return F.relu(x) if name == "relu" else x


def _is_for_onednn(x: Tensor, weight_MK: Tensor) -> bool:
    return (
        x.dim() == 2
        and len(x) >= GROUP
        and x.dtype == weight_MK.dtype == torch.float32
        and x.device.type == "cpu"
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )


def _multiply_in_groups(x_NK: Tensor, weight_MK: Tensor, bias_M: Tensor | None, activation: str = "") -> Tensor:
    x_NK, rest = x_NK.contiguous(), len(x_NK) % GROUP
    if not rest or len(x_NK) >= MANY:
        return _multiply(x_NK, weight_MK, bias_M, activation)
    first_NM = _multiply(x_NK[:-rest], weight_MK, bias_M, activation)
    last_NM = _multiply(x_NK[-GROUP:], weight_MK, bias_M, activation)
    return torch.cat([first_NM, last_NM[-rest:]])


def _multiply(x_NK: Tensor, weight_MK: Tensor, bias_M: Tensor | None, activation: str) -> Tensor:
    """By oneDNN, in an operator that is private to torch."""
    name, algorithm = _FUSED[activation]
    out_NM: Tensor = torch.ops.mkldnn._linear_pointwise(x_NK, weight_MK, bias_M, name, [], algorithm)
    return out_NM


@cache
def is_onednn_faster() -> bool:
    """Whether this torch has the operator, it computes what is expected, and is the faster one on this chip."""
    return torch.backends.mkldnn.is_available() and _is_right() and _is_faster()


@torch.no_grad()
def _is_right() -> bool:
    x_NK, weight_MK, bias_M = (torch.arange(float(n), device="cpu").sin() for n in (5 * 24, 7 * 24, 7))
    x_NK, weight_MK = x_NK.view(5, 24), weight_MK.view(7, 24)
    try:
        for activation in _FUSED:
            for bias in (bias_M, None):
                found_NM = _multiply(x_NK, weight_MK, bias, activation)
                torch.testing.assert_close(found_NM, activate(F.linear(x_NK, weight_MK, bias), activation))
    except Exception:  # absent, or called otherwise, or wrong: torch raises many kinds
        return False
    return True


@torch.no_grad()
def _is_faster() -> bool:
    x_NK, weight_MK, bias_M = (torch.zeros(shape, device="cpu") for shape in ((256, 384), (384, 384), (384,)))
    return is_clearly_faster(lambda: _multiply(x_NK, weight_MK, bias_M, ""), lambda: F.linear(x_NK, weight_MK, bias_M))


def is_clearly_faster(one: Callable[[], Tensor], other: Callable[[], Tensor], *, gain: float = _GAIN) -> bool:
    """Whether one way is `gain` times as fast as another, in ten turns of both, so that chance does not choose."""
    times: list[list[float]] = [[], []]
    for _ in range(10):
        for way, own in zip((one, other), times, strict=True):
            start = clock()
            way()
            own.append(clock() - start)
    return min(times[0]) * gain < min(times[1])
