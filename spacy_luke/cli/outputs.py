"""Files that commands write: never those that they read, each once, and where a file can be written, which is known
before the work."""

import os
from collections.abc import Iterable
from pathlib import Path

from ..stores.plain_text import printable_name


def check_targets(outputs: Iterable[Path | None], inputs: Iterable[Path | str | None]) -> None:
    """Raises ValueError where something that is to be written, if any, is one of what is read, or is what another
    option writes, or cannot be written."""
    targets = [path for path in outputs if path is not None]
    sources = [Path(path) for path in inputs if path is not None]
    for number, target in enumerate(targets):
        _check_folder(target)
        if any(_is_same(target, source) for source in sources):
            raise ValueError(f"{printable_name(target)} is what is read here, and would be lost: give another name.")
        if any(_is_same(target, other) for other in targets[:number]):
            raise ValueError(
                f"Expected a name for each file that is written, but two are {printable_name(target)}, of which one "
                "would be lost: give one another name."
            )


def _check_folder(target: Path) -> None:
    place = Path(os.path.realpath(target))
    folder = next(x for x in place.parents if x.exists())
    if not folder.is_dir():
        raise ValueError(f"Expected a folder for {printable_name(target)}, but {printable_name(folder)} is a file.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(
            f"Expected a folder for {printable_name(target)} that can be written, but {printable_name(folder)} cannot."
        )


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths, of which none need be there, lead to one place."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)
