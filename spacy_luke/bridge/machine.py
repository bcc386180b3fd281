"""What this machine computes with: chip, threads, GPUs, number formats, and the kernels that are chosen on it."""

import os
import platform
from pathlib import Path

import torch

from ..model.int8 import is_operator_best
from ..model.linear import is_onednn_faster
from ..model.precision import has_bfloat16

_APPLE = "Apple's (MPS), which this package does not use"
_CPU_INFO = Path("/proc/cpuinfo")
_INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16")


def describe_machine() -> list[tuple[str, str]]:
    """What there is and what it is, to be shown. Measures, once in a process, which of two kernels is the faster."""
    name, flags = read_chip()
    gpus = [
        f"{torch.cuda.get_device_name(i)}{', bfloat16' if has_bfloat16(torch.device('cuda', i)) else ''}"
        for i in range(torch.cuda.device_count())
    ]
    fast = has_bfloat16(torch.device("cpu"))
    rows = [
        ("chip", f"{name}, {os.cpu_count()} processors, torch takes {torch.get_num_threads()} threads"),
        ("instructions", ", ".join(x for x in _INSTRUCTIONS if x in flags) or "unknown"),
        ("GPU", "; ".join(gpus) or (_APPLE if torch.backends.mps.is_available() else "none")),
        ("float32", f"linear layers by {'oneDNN' if is_onednn_faster() else 'torch'}, the faster one here"),
        ("bfloat16", f"{'by instructions of the chip' if fast else 'slow here: no instructions for it, or slow ones'}"),
        ("int8", f"{'by instructions of the chip' if is_operator_best() else 'by float32, no faster: no VNNI here'}"),
    ]
    return [(f"auto: {what}" if what == ("bfloat16" if fast else "float32") else what, is_) for what, is_ in rows]


def read_chip() -> tuple[str, set[str]]:
    """Name of the CPU, and its instructions as Linux names them; of the latter none where the system does not tell."""
    text = _CPU_INFO.read_text(encoding="utf8", errors="replace") if _CPU_INFO.exists() else ""
    lines = [line.partition(":") for line in text.splitlines()]
    values = {key.strip(): value.strip() for key, _, value in reversed(lines)}
    flags = set(values.get("flags", values.get("Features", "")).split())
    return values.get("model name") or platform.processor() or platform.machine(), flags
