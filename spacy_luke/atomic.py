"""Writing files and folders so that a crash leaves the old ones whole."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """Gives a temporary path beside `path`; when the block ends well, what was written there becomes `path`.

    On any error (a full disk, Ctrl-C) the temporary file goes and the old file stays as it was. A killed process
    leaves the old file, and a hidden `.NAME.*.new` file beside it.
    """
    path = Path(path)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        temporary.chmod(usual_mode(0o666))
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


@contextmanager
def write_folder_atomically(folder: Path) -> Iterator[Path]:
    """Gives an empty temporary folder beside `folder`; when the block ends well, it takes the place of `folder`.

    On any error the temporary folder goes and the old one stays as it was. Everything in the old folder goes, so the
    caller checks that it may. A process killed between the two renames leaves the old folder as `.NAME.old`; the next
    call puts it back first.
    """
    folder = Path(folder).resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    old = folder.with_name(f".{folder.name}.old")
    if old.exists():
        if folder.exists():
            shutil.rmtree(old)
        else:
            os.replace(old, folder)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".new", dir=folder.parent))
    try:
        temporary.chmod(usual_mode(0o777))
        yield temporary
        for path in [*sorted(temporary.rglob("*")), temporary]:
            _sync(path)
        _swap(temporary, folder, old)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def link_or_copy(source: Path, target: Path) -> None:
    """A hard link shares the file's mode too, so files that this user may not write are copied."""
    try:
        if not os.access(source, os.W_OK):
            raise PermissionError(source)
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _swap(new: Path, folder: Path, old: Path) -> None:
    had_old = folder.exists()
    if had_old:
        os.replace(folder, old)
    try:
        os.replace(new, folder)
    except BaseException:
        if had_old:
            os.replace(old, folder)
        raise


def usual_mode(mode: int) -> int:
    """What `mode` becomes for files that this process makes."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask


def _sync(path: Path) -> None:
    """Wait until the disk has it; folders cannot be opened on Windows, which needs no such thing."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
