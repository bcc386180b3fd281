"""Files that commands write, which are never those that they read."""

from collections.abc import Iterable
from pathlib import Path

from ..stores.plain_text import printable_name


def check_apart(output: Path | None, inputs: Iterable[Path | str | None]) -> None:
    """Raises ValueError where the file that is to be written, if any, is one of those that are read."""
    if output is None or not output.exists():
        return
    for path in inputs:
        if path is not None and Path(path).exists() and output.samefile(path):
            raise ValueError(f"{printable_name(output)} is what is read here, and would be lost: give another name.")
