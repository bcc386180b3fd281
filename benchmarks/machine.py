"""Which machine and versions a result was measured with."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def describe_machine() -> dict[str, Any]:
    import torch

    return {"chip": chip_name(), "threads": torch.get_num_threads(), "versions": _versions()}


def chip_name() -> str:
    from spacy_luke.bridge.machine import read_chip

    return f"{read_chip()[0]} ({os.cpu_count()} cores)"


def has_amx() -> bool:
    """Whether the chip multiplies matrices of bfloat16 and int8 in tiles (Intel's, since 2023)."""
    return "amx_tile" in instructions()


def instructions() -> list[str]:
    """Those of the chip that matrix products may use, as Linux names them."""
    from spacy_luke.bridge.machine import read_chip

    kinds = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx")
    return sorted(x for x in read_chip()[1] if x.startswith(kinds))


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("torch", "spacy", "thinc", "transformers", "spacy-transformers", "span-marker", "spacy-luke"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
