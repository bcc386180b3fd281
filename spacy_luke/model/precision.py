"""float32 or bfloat16: which one a chip computes fast, asked of the chip, never assumed; and passes in it.

A CPU that has instructions of bfloat16 need not be faster by them: the layers of an encoder took an AMD EPYC 0.6 of
float32's time, a Xeon without AMX 1.6 times as long. So it is measured, once in a process.
"""

from functools import cache

import torch
import torch.nn.functional as F

from .linear import is_clearly_faster

PRECISIONS = ("auto", "float32", "bfloat16")


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """float32 or bfloat16. "auto" is bfloat16 where the device computes it faster, and float32 elsewhere: without
    instructions for it a CPU was measured 7 times slower in bfloat16 than in float32."""
    if name not in PRECISIONS:
        raise ValueError(f"precision must be one of {PRECISIONS}, but it is {name!r}.")
    if name == "auto":
        return torch.bfloat16 if has_bfloat16(device) else torch.float32
    return torch.bfloat16 if name == "bfloat16" else torch.float32


def passes_in(dtype: torch.dtype, device: torch.device) -> torch.autocast:
    """A context whose passes multiply in this number format: autocast for bfloat16 and float16, nothing for float32.
    Around several passes without gradients it lets them share the cast parameters."""
    half = dtype if dtype != torch.float32 else torch.bfloat16
    return torch.autocast(device.type, dtype=half, enabled=dtype != torch.float32)


def has_bfloat16(device: torch.device) -> bool:
    """Whether it computes bfloat16 faster than float32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "cpu":
        asked = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")  # torch has no public question yet
        return any(getattr(torch.cpu, name, bool)() for name in asked) and _is_faster_on_cpu()
    return False


@cache
@torch.no_grad()
def _is_faster_on_cpu() -> bool:
    """Whether a product of an encoder's size is. It is measured outside of any autocast."""
    x_NK, weight_MK = (torch.zeros(shape, device="cpu") for shape in ((256, 384), (384, 384)))
    half_NK, half_MK = x_NK.bfloat16(), weight_MK.bfloat16()
    with torch.autocast("cpu", enabled=False):
        return is_clearly_faster(lambda: F.linear(half_NK, half_MK), lambda: F.linear(x_NK, weight_MK))
