"""Finding and opening what things are built from: plain, gzip or bzip2, with a progress bar over the bytes that were
read."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from xml.etree.ElementTree import ParseError

from .blocks import BUFFER, open_blocks
from .bzip2 import open_bzip2
from .plain_text import not_utf8
from .progress import ProgressBar

_TOLD = 1 << 14  # bytes


@contextmanager
def open_source(
    path: str | Path,
    *,
    progress: bool = False,
    task: str = "reading",
    count: Callable[[int], None] | None = None,
) -> Iterator[BinaryIO]:
    """The unpacked bytes of a file. ValueError, also from the block, where the file is damaged or truncated. count: is
    told how many bytes of the file, as it lies there, were read."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"Expected a file at {path}, but there is no such file.")
    size = path.stat().st_size
    bar = ProgressBar[bytes](None, f"{task} {path.name}", total=size, unit="B", scaled=True, show=progress)
    with path.open("rb") as raw, bar:
        start = raw.read(3)
        raw.seek(0)
        kind = {b"\x1f\x8b": "gzip", b"BZ": "bzip2"}.get(start[:2], "plain")
        counted = open_blocks(_counted(raw, bar, count))
        try:
            if kind == "gzip":
                yield io.BufferedReader(gzip.GzipFile(fileobj=counted), BUFFER)
            elif kind == "bzip2" and start == b"BZh":
                with open_bzip2(counted) as unpacked:
                    yield unpacked
            else:
                yield counted
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: {not_utf8(error, path)}") from error
        except (EOFError, zlib.error, ParseError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk's fault, not the file's
            what = f"not XML ({error})" if isinstance(error, ParseError) else f"not a whole {kind} file ({error})"
            raise ValueError(f"{path} is {what}. It may be truncated: copy or download it again.") from error


def find_files(path: Path, suffix: str = "") -> list[Path]:
    """A file as it is; of a folder, and of folders in it, the files whose names end in `suffix`, in order, without what
    is hidden there."""
    if not path.is_dir():
        return [path]
    found = [x for x in path.rglob(f"*{suffix}") if x.is_file()]
    return sorted(x for x in found if not any(name.startswith(".") for name in x.relative_to(path).parts))


def _counted(file: BinaryIO, bar: ProgressBar[bytes], count: Callable[[int], None] | None) -> Iterator[bytes]:
    size = BUFFER if count is None else _TOLD  # who counts knows how far the reader is
    while block := file.read(size):
        bar.update(len(block))
        if count is not None:
            count(len(block))
        yield block


def is_dump(path: str | Path) -> bool:
    """Whether a file is XML, and so a dump; otherwise it is a table."""
    with open_source(path) as file:
        start = file.read(200)
    return start.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").startswith(b"<")
