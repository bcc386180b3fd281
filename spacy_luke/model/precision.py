"""float32 or bfloat16: which one a chip computes fast, asked of the chip, never assumed; and passes in it."""

import torch

PRECISIONS = ("auto", "float32", "bfloat16")


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """float32 or bfloat16. "auto" is bfloat16 where the device has instructions for it, and float32 elsewhere: without
    them a CPU was measured 7 times slower in bfloat16 than in float32."""
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
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "cpu":
        asked = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")  # torch has no public question yet
        return any(getattr(torch.cpu, name, bool)() for name in asked)
    return False
