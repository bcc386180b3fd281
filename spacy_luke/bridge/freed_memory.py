"""Memory that a step of training frees serves the next step, instead of going back to the system.

A step takes large tensors and frees them: the gradient of MiniLM's table of 30,522 pieces has 47 MB, logits of masked
words as much. glibc's malloc gets blocks of more than 32 MB from the system each time, which gives zeroed pages one by
one: the gradient of that table takes 17 ms with them and 3 ms without (one core). In predictions there is nothing as
large, and a server's memory shall shrink again, so only training asks for this.
"""

import ctypes
import sys
from functools import cache

import torch

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT = 1 << 30  # bytes: smaller blocks than this are kept, and as many free ones at the end of the heap


@cache
def keep_freed_memory(device: torch.device) -> bool:
    """Let malloc keep what this process frees from now on, where tensors are on the CPU and the C library is glibc.
    RETURNS: whether malloc took it; results are the same in any case."""
    if device.type != "cpu" or sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    return mallopt is not None and all(mallopt(name, _KEPT) == 1 for name in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))
