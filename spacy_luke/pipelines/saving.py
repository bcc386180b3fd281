"""Saving whole pipelines so that a crash leaves the old one or the new one."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..stores.atomic import write_folder_atomically


def save(nlp: Any, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
    """Save a pipeline as `nlp.to_disk` does, but as a whole: whenever the process is killed, the folder holds the old
    pipeline or the new one, where `nlp.to_disk` over an old one would leave parts of both.

    path: folder that is replaced, with all that is in it. exclude: as of `nlp.to_disk`. Raises ValueError where the
    folder holds something else than a pipeline.
    """
    folder = check_replaceable(path)
    with write_folder_atomically(folder) as temporary:
        nlp.to_disk(temporary, exclude=list(exclude))


def check_replaceable(folder: str | Path, source: str | Path | None = None) -> Path:
    """Raises ValueError where a folder that would be replaced by a pipeline holds something else (no meta.json), or is
    `source`, the pipeline that it is made of and that has more than the new one. RETURNS: the folder."""
    folder = Path(folder)
    if source is not None and folder.exists() and Path(source).exists() and folder.samefile(source):
        raise ValueError(f"{folder} is the pipeline itself, of which something would be lost: choose another folder.")
    if folder.is_file() or (folder.is_dir() and not (folder / "meta.json").is_file() and any(folder.iterdir())):
        raise ValueError(
            f"{folder} would be replaced as a whole, but it holds no pipeline (no meta.json). Choose a new or an empty "
            f"folder."
        )
    return folder
