"""Names of rows: a compact list while a store is built, and an index that finds them in a file without reading it all.

    names.txt          UTF-8, a name a line: line k (from 0) is the name of row k; further names of rows follow
    name_starts.npy    int64 (N + 1,): the byte where each name begins
    name_hashes.npy    uint64 (N,), sorted: the 8-byte BLAKE2b digests of the names
    name_order.npy     uint32 (N,): whose digest each one is, as a number of a name
    name_rows.npy      uint32 (N - rows,): the rows of the further names

A name is compared byte by byte with what its digest finds, so two names of one digest are told apart.
"""

import mmap
from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from .progress import ProgressBar

MOST_NAMES = 2**32 - 1
_BLOCK = 1 << 16  # names that are hashed at once


def hash_names(names: Iterable[bytes]) -> np.ndarray:
    """uint64 (N,): the 8-byte BLAKE2b digest of each name, the same on all machines."""
    digests = b"".join(blake2b(name, digest_size=8).digest() for name in names)
    return np.frombuffer(digests, "<u8")


class NameList:
    """Millions of names in two buffers: 16 bytes a name beside its text. An empty name stands for none."""

    def __init__(self, names: Iterable[bytes] = ()) -> None:
        self.text = bytearray()
        self._starts = array("q", [0])
        self._hashes = np.zeros(0, np.uint64)
        for name in names:
            self.append(name)

    def append(self, name: bytes) -> None:
        assert b"\n" not in name, name
        self.text += name
        self.text += b"\n"
        self._starts.append(len(self.text))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> bytes:
        return bytes(self.text[self._starts[number] : self._starts[number + 1] - 1])

    def __iter__(self) -> Iterator[bytes]:
        return (self[i] for i in range(len(self)))

    def starts(self) -> np.ndarray:
        """int64 (N + 1,): the byte where each name begins, and the end of the text."""
        return np.array(self._starts, np.int64)

    def hashes(self, *, progress: bool = False) -> np.ndarray:
        """uint64 (N,): `hash_names` of them, which is kept, so that only new names are hashed again."""
        parts = [self._hashes]
        total = len(self) - len(self._hashes)
        with ProgressBar[str](None, "digests of names", total=total, show=progress) as bar:
            for start in range(len(self._hashes), len(self), _BLOCK):
                parts.append(hash_names(self[i] for i in range(start, min(start + _BLOCK, len(self)))))
                bar.update(len(parts[-1]))
        self._hashes = np.concatenate(parts)
        return self._hashes


class NameIndex:
    """Finds the numbers of names. text: a name a line; the arrays are those of the files of this module."""

    def __init__(self, text: bytearray | mmap.mmap, starts: np.ndarray, hashes: np.ndarray, order: np.ndarray) -> None:
        self._text = text
        self._starts, self._hashes, self._order = map(np.asarray, (starts, hashes, order))

    @classmethod
    def of(cls, names: NameList, *, progress: bool = False) -> "NameIndex":
        """In memory: 20 bytes a name beside the list."""
        hashes = names.hashes(progress=progress)
        order = np.argsort(hashes, kind="stable").astype(np.uint32)
        return cls(names.text, names.starts(), hashes[order], order)

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, names: Sequence[bytes]) -> np.ndarray:
        """int64 (N,): the number of each name, -1 where it is not known."""
        found = np.full(len(names), -1, np.int64)
        if not len(names) or not len(self):
            return found
        wanted = hash_names(names)
        places = np.searchsorted(self._hashes, wanted)
        inside = np.minimum(places, len(self) - 1)
        maybe = np.flatnonzero(self._hashes[inside] == wanted)
        numbers = self._order[inside[maybe]].astype(np.int64)
        starts, ends = self._starts[numbers].tolist(), self._starts[numbers + 1].tolist()
        for i, number, start, end in zip(maybe.tolist(), numbers.tolist(), starts, ends, strict=True):
            if self._text[start : end - 1] == names[i]:
                found[i] = number
            else:
                found[i] = self._find_among_equal(names[i], wanted[i], int(places[i]) + 1)
        return found

    def _find_among_equal(self, name: bytes, digest: np.uint64, place: int) -> int:
        while place < len(self) and self._hashes[place] == digest:
            number = int(self._order[place])
            if self.text_of(number) == name:
                return number
            place += 1
        return -1

    def text_of(self, number: int) -> bytes:
        return bytes(self._text[int(self._starts[number]) : int(self._starts[number + 1]) - 1])

    def repeated(self) -> Iterator[tuple[int, int]]:
        """Names that come again: (number, number of the first one), by digest; empty names do not count."""
        same = np.flatnonzero(self._hashes[1:] == self._hashes[:-1]) + 1
        groups: list[list[int]] = []
        last = -2
        for place in same.tolist():
            if place != last + 1:
                groups.append([int(self._order[place - 1])])
            groups[-1].append(int(self._order[place]))
            last = place
        for group in groups:
            firsts: dict[bytes, int] = {}
            for number in sorted(group):
                first = firsts.setdefault(self.text_of(number), number)
                if first != number and self.text_of(number):
                    yield number, first

    def write(self, folder: Path, further_rows: np.ndarray) -> None:
        """The five files. further_rows: rows of the names that follow those of the rows themselves."""
        (folder / "names.txt").write_bytes(self._text)
        np.save(folder / "name_starts.npy", self._starts.astype("<i8"))
        np.save(folder / "name_hashes.npy", self._hashes.astype("<u8"))
        np.save(folder / "name_order.npy", self._order.astype("<u4"))
        np.save(folder / "name_rows.npy", further_rows.astype("<u4"))
