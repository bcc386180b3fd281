"""Files that commands write: never those that they read, and where a file can be written, which is known before the
work."""

import os
from collections.abc import Iterable
from pathlib import Path

from ..stores.plain_text import printable_name


def check_target(output: Path | None, inputs: Iterable[Path | str | None]) -> None:
    """Raises ValueError where the file that is to be written, if any, is one of those that are read, or cannot be
    written."""
    if output is None:
        return
    folder = next(x for x in (output.parent, *output.parent.absolute().parents) if x.exists())
    if not folder.is_dir():
        raise ValueError(f"Expected a folder for {printable_name(output)}, but {printable_name(folder)} is a file.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(
            f"Expected a folder for {printable_name(output)} that can be written, but {printable_name(folder)} cannot."
        )
    for path in inputs:
        if path is not None and output.exists() and Path(path).exists() and output.samefile(path):
            raise ValueError(f"{printable_name(output)} is what is read here, and would be lost: give another name.")
