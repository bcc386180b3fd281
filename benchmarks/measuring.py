"""What the benchmarks of stores measure with: seconds, bytes of this process, files that the system forgets."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def forget(folder: Path) -> None:
    """Let the system drop what it has cached of a folder's files."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns, and the seconds that it took."""
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def memory() -> dict[str, int]:
    """Bytes of this process, as Linux tells them."""
    lines = Path("/proc/self/status").read_text(encoding="utf8").splitlines()
    return {x.split(":")[0]: 1024 * int(x.split()[1]) for x in lines if x.startswith(("VmRSS", "VmHWM", "Rss"))}


def mb(size: float) -> float:
    return round(size / 1e6, 1)
