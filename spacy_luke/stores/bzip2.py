"""bzip2 files of many streams, as Wikipedia's multistream dumps, unpacked by several threads; bytes come out in
order."""

import bz2
import io
import os
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO

from .blocks import open_blocks

_LONGEST = 1 << 23  # bytes of a packed stream that are kept in memory; a longer one is unpacked as it is read
_READ = 1 << 20
_HEAD = re.compile(rb"BZh[1-9]1AY&SY")  # how a stream begins; by chance once in 10 ** 23 bytes
_HEAD_SIZE = 10


def open_bzip2(file: BinaryIO, *, threads: int | None = None, longest: int = _LONGEST) -> BinaryIO:
    """The unpacked bytes of a file, whose errors are those of `bz2.BZ2File`. threads: None for one a core, up to 8."""
    threads = min(8, os.cpu_count() or 1) if threads is None else threads
    if threads < 2:
        return io.BufferedReader(bz2.BZ2File(file))
    return open_blocks(_unpack(file, threads, longest))


def _unpack(file: BinaryIO, threads: int, longest: int) -> Iterator[bytes]:
    waiting: deque[Future[bytes]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for stream in _split(file, longest):
            if isinstance(stream, bytes):
                waiting.append(pool.submit(_unpack_stream, stream))
            while waiting and (len(waiting) > 2 * threads or not isinstance(stream, bytes)):
                yield waiting.popleft().result()
            if not isinstance(stream, bytes):
                with bz2.BZ2File(stream) as rest:
                    while block := rest.read(_READ):
                        yield block
        while waiting:
            yield waiting.popleft().result()


def _split(file: BinaryIO, longest: int) -> Iterator[bytes | BinaryIO]:
    """Streams, each whole; and from one on that is too long, a file with the rest."""
    data = b""
    while True:
        start = max(1, len(data) - _HEAD_SIZE)
        chunk = file.read(_READ)
        data += chunk
        begin = 0
        for head in _HEAD.finditer(data, start):
            yield data[begin : head.start()]
            begin = head.start()
        data = data[begin:]
        if not chunk:
            yield data
            return
        if len(data) > longest:
            yield open_blocks(_continue(data, file))
            return


def _continue(data: bytes, file: BinaryIO) -> Iterator[bytes]:
    yield data
    while chunk := file.read(_READ):
        yield chunk


def _unpack_stream(data: bytes) -> bytes:
    try:
        return bz2.decompress(data)
    except ValueError as error:
        raise EOFError(str(error)) from error
