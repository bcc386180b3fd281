"""Opening what stores are built from: plain, gzip or bzip2, with a progress bar over the bytes that were read."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast
from xml.etree.ElementTree import ParseError

from tqdm import tqdm

from .bzip2 import open_bzip2
from .plain_text import not_utf8


@contextmanager
def open_source(path: str | Path, *, progress: bool = False, task: str = "reading") -> Iterator[BinaryIO]:
    """The unpacked bytes of a file. ValueError, also from the block, where the file is damaged or truncated."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"Expected a table of names or a Wikipedia dump at {path}, but there is no such file.")
    show = {"total": path.stat().st_size, "desc": f"{task} {path.name}", "leave": False, "disable": not progress}
    with path.open("rb") as raw, tqdm.wrapattr(raw, "read", **show) as counted:
        start = raw.read(3)
        raw.seek(0)
        kind = {b"\x1f\x8b": "gzip", b"BZ": "bzip2"}.get(start[:2], "plain")
        try:
            if kind == "gzip":
                yield cast(BinaryIO, gzip.GzipFile(fileobj=counted))
            elif kind == "bzip2" and start == b"BZh":
                with open_bzip2(counted) as unpacked:
                    yield unpacked
            else:
                yield cast(BinaryIO, counted)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: {not_utf8(error, path)}") from error
        except (EOFError, zlib.error, ParseError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk's fault, not the file's
            what = f"not XML ({error})" if isinstance(error, ParseError) else f"not a whole {kind} file ({error})"
            raise ValueError(f"{path} is {what}. It may be truncated: copy or download it again.") from error


def is_dump(path: str | Path) -> bool:
    """Whether a file is XML, and so a dump; otherwise it is a table."""
    with open_source(path) as file:
        start = file.read(200)
    return start.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").startswith(b"<")
