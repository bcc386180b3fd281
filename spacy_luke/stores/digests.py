"""Digests of what is mapped into memory, and what is remembered of them: they are BLAKE2b of 16 bytes, hexadecimal.

What is small is read and compared at every opening. A larger file is compared when it is first opened on a machine,
which is then remembered in `~/.cache/spacy_luke/digests.txt` (in $XDG_CACHE_HOME where that is set): a line for each
part that was right, made of its digest and of the file's inode, size and times in nanoseconds. A file that was changed,
copied or linked has others, and is compared again. Nothing is believed that is not there, so a lost, damaged or
unwritable memory costs time and nothing else.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from .atomic import write_atomically
from .progress import ProgressBar

SMALL = 1 << 18  # bytes that are compared at every opening
_SHOWN = 1 << 30  # bytes whose reading is shown in a terminal
SETTLED = 2_000_000_000  # nanoseconds after which a change of a file has another time than the last one
MOST_REMEMBERED = 1 << 18  # bytes of the memory, of which the later half stays

_remembered: set[str] = set()  # by this process


class FilePart(NamedTuple):
    """Bytes [start, start + size) of a file, whose digest is to be `digest`."""

    file: Path
    digest: str
    size: int
    start: int = 0


def digest_bytes(data: bytes | memoryview) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def digest_file(path: Path, *, progress: bool = False) -> str:
    with _bar(path.name, path.stat().st_size, progress) as count:
        return _digest(path, 0, None, count)


def find_changed(parts: Iterable[FilePart], *, every: bool = False, progress: bool = False) -> FilePart | None:
    """The first part whose digest is another, None where all are right. every: also those that are remembered."""
    parts = list(parts)
    large = [part for part in parts if part.size > SMALL]
    known = _remembered | _read_memory() if large and not every else set()
    wanted = [part for part in parts if part.size <= SMALL or _key(part) not in known]
    right: list[str] = []
    total = sum(part.size for part in wanted)
    try:
        with _bar("checking files, once on this machine", total, progress) as count:
            for part in wanted:
                key, begin = _key(part), time.time_ns()
                if _digest(part.file, part.start, part.size, count) != part.digest:
                    return part
                about = part.file.stat()
                settled = begin - max(about.st_mtime_ns, about.st_ctime_ns) > SETTLED
                if part.size > SMALL and settled and key == _key(part):
                    right.append(key)
    finally:
        _remember(right)
    return None


def _digest(path: Path, start: int, size: int | None, count: Callable[[int], Any]) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        file.seek(start)
        while chunk := file.read(1 << 20 if size is None else min(1 << 20, size)):
            digest.update(chunk)
            count(len(chunk))
            size = None if size is None else size - len(chunk)
    return digest.hexdigest()


@contextmanager
def _bar(what: str, total: int, progress: bool) -> Iterator[Callable[[int], Any]]:
    """What counts bytes: shown where it is asked for, and where it takes long."""
    show = progress or total > _SHOWN
    with ProgressBar[bytes](None, what, total=total, unit="B", scaled=True, show=show) as bar:
        yield bar.update


def _key(part: FilePart) -> str:
    """Without the device, whose number changes when a disk is mounted again."""
    about = part.file.stat()
    state = (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    return digest_bytes(repr((part.digest, part.start, part.size, *state)).encode())


def _memory() -> Path | None:
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        cache = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    except RuntimeError:  # nobody's home
        return None
    return cache / "spacy_luke" / "digests.txt"


def _read_memory() -> set[str]:
    path = _memory()
    try:
        return set() if path is None else set(path.read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return set()


def _remember(keys: list[str]) -> None:
    _remembered.update(keys)
    path = _memory()
    if path is None or not keys:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="ascii") as file:  # lines of several processes stand one after the other
            file.write("".join(f"{key}\n" for key in keys))
        if path.stat().st_size > MOST_REMEMBERED:
            lines = path.read_text(encoding="ascii", errors="replace").splitlines(keepends=True)
            with write_atomically(path) as new:
                new.write_text("".join(lines[len(lines) // 2 :]), encoding="ascii", errors="replace")
    except OSError:
        pass
