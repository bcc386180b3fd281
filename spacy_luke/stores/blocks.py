"""A file whose bytes come as blocks."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BUFFER = 1 << 20  # bytes that are held, so that reading line by line is fast


def open_blocks(blocks: Iterator[bytes]) -> io.BufferedReader:
    """A file of blocks of bytes, one after the other, none of them empty. Closing it closes a generator of blocks."""
    return io.BufferedReader(_Blocks(blocks), BUFFER)


class _Blocks(io.RawIOBase):
    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._left = blocks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        room = memoryview(buffer).cast("B")
        while not self._left:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._left = memoryview(block)
        size = min(len(room), len(self._left))
        room[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

    def close(self) -> None:
        if not self.closed and hasattr(self._blocks, "close"):
            self._blocks.close()
        super().close()
