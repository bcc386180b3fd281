"""Arrays in .npy files that are never read as a whole: mapped into memory, or read row by row.

Mapping suits the index of names. For vectors it does not: the system maps large stretches around each row (2,000 rows
of a file of 400 MB counted for 320 MB of memory), and waits for the disk row by row. `RowFile` asks the disk for all
rows of a batch first and then copies these rows alone; the system's cache of the file is shared between processes
either way.
"""

import mmap
import os
import weakref
from pathlib import Path

import numpy as np

_CAN_ADVISE = hasattr(os, "posix_fadvise")  # macOS has pread, but not this
AGAIN = "Copy the whole folder again, or build it again."


def map_array(file: Path, descr: str, shape: tuple[int, ...] | None) -> np.memmap:
    """A .npy file mapped into memory. shape: None for one dimension of any length. ValueError where it does not hold
    such an array."""
    try:
        found: np.memmap = np.load(file, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # the parser of numpy's headers raises many kinds: TokenError, SyntaxError, ...
        raise ValueError(f"{file} is damaged ({error}). {AGAIN}") from error
    if shape is None and found.ndim == 1:
        shape = found.shape
    if found.dtype != np.dtype(descr) or found.shape != shape or not found.flags.c_contiguous:
        raise ValueError(
            f"{file} belongs to another store: expected {descr} {shape}, but it has {found.dtype.str} {found.shape}. "
            f"{AGAIN}"
        )
    return found


def map_bytes(file: Path) -> mmap.mmap:
    """The bytes of a file. ValueError where it is empty."""
    with file.open("rb") as opened:
        if not os.fstat(opened.fileno()).st_size:
            raise ValueError(f"{file} is empty. {AGAIN}")
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)


class RowFile:
    """Rows of a .npy file of shape (rows, size). Processes that are forked may read it at once."""

    def __init__(self, file: Path, descr: str, shape: tuple[int, int]) -> None:
        mapped = map_array(file, descr, shape)
        self.file, self.dtype, self.shape = file, mapped.dtype, shape
        self._mapped = None if hasattr(os, "pread") else mapped  # Windows has no pread
        if self._mapped is None:
            self._start, self._width = mapped.offset, shape[1] * mapped.dtype.itemsize
            self._descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            weakref.finalize(self, os.close, self._descriptor)
            if _CAN_ADVISE:
                os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_RANDOM)

    def read(self, rows_E: np.ndarray) -> np.ndarray:
        """(E, size), a copy, in the dtype of the file; fastest where rows_E (E,) are in order."""
        if self._mapped is not None:
            return np.asarray(self._mapped[rows_E])
        file, width, pread = self._descriptor, self._width, os.pread
        places = (rows_E.astype(np.int64) * width + self._start).tolist()
        if _CAN_ADVISE:
            advise, soon = os.posix_fadvise, os.POSIX_FADV_WILLNEED
            for place in places:
                advise(file, place, width, soon)
        data = bytearray().join([pread(file, width, place) for place in places])
        if len(data) != len(places) * width:
            raise ValueError(
                f"{self.file} ends before the rows that were asked for: it was cut while it was open. {AGAIN}"
            )
        return np.frombuffer(data, self.dtype).reshape(len(places), self.shape[1])
