"""The fairseq/TorchNet IndexedDataset of ERNIE's pretraining: NAME.idx says where records lie in NAME.bin.

NAME.idx, all numbers little-endian int64: the magic TNTIDX\\0\\0, version 1, code and size of an element's type, number
of records R, number of sizes; then R + 1 offsets into the sizes, R + 1 offsets into the elements, and the sizes.
NAME.bin has the elements of all records one after another, each stored plus one ("Lua indexing").

S places of a window; an ERNIE record has 6 S + 1 numbers (code/create_instances.py): pieces, 1 where there is a piece,
token types, pieces to predict (-1 none), entities (-1 none), 1 where there is an entity, and 1 if the second sentence
is a random one.
"""

import struct
from pathlib import Path

import numpy as np

from .instances import Instance

INDEX_MAGIC = b"TNTIDX\x00\x00"
_TYPES = {1: np.uint8, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64}
INSTANCE_PARTS = 6


class Records:
    """Reads records by number, memory-mapped: `len(records)`, `records[i]` (int64, the one taken off again).

    path: with or without .idx or .bin. Raises ValueError where the two files are not whole or do not fit one another.
    """

    def __init__(self, path: Path):
        self.path = _without_suffix(path)
        index, data = self.path.with_name(self.path.name + ".idx"), self.path.with_name(self.path.name + ".bin")
        for file in (index, data):
            if not file.is_file():
                raise ValueError(
                    f"Expected the two files of records {index.name} and {data.name}, but {file} is missing."
                )
        dtype, self.starts, self.sizes = _read_index(index)
        found, expected = data.stat().st_size, int(self.starts[-1]) * dtype.itemsize
        if found != expected:
            whole = int(np.searchsorted(self.starts * dtype.itemsize, found, side="right")) - 1
            where = f"record {whole} is cut" if found < expected else "the rest belongs to no record"
            raise ValueError(
                f"{data} has {found:,} bytes, but {index.name} speaks of {expected:,} ({len(self)} records): {where}. "
                "Copy both files again, from the same place."
            )
        self.values = np.memmap(data, dtype=dtype, mode="r") if expected else np.zeros(0, dtype)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, i: int) -> np.ndarray:
        if not 0 <= i < len(self):
            raise IndexError(f"{self.path} has the records 0 to {len(self) - 1}, but record {i} was asked for.")
        return self.values[self.starts[i] : self.starts[i + 1]].astype(np.int64) - 1

    def pieces_of(self, i: int, *, name: str) -> int:
        """Pieces of the instance in record i, by its mask alone. Raises ValueError as `from_record` does."""
        size, start = _places(int(self.sizes[i]), name), int(self.starts[i])
        return _pieces(self.values[start + size : start + 2 * size].astype(np.int64) - 1, name)


def from_record(record: np.ndarray, *, name: str) -> Instance:
    """The instance in a record (6 S + 1,), without padding. name: for messages. Raises ValueError where it is none."""
    pieces, real, types, labels, entities, marks = record[:-1].reshape(INSTANCE_PARTS, _places(len(record), name))
    n = _pieces(real, name)
    if (pieces[:n] < 0).any() or not np.isin(types[:n], (0, 1)).all() or record[-1] not in (0, 1):
        raise ValueError(
            f"{name}: expected pieces from 0, token types of 0 and 1, and 0 or 1 at the end; it is damaged."
        )
    if (
        ((entities >= 0) != (marks == 1)).any()
        or (entities[n:] >= 0).any()
        or (labels[n:] >= 0).any()
        or entities[0] >= 0
    ):
        raise ValueError(
            f"{name}: its entities stand where its mask has no 1, or on padding or the first piece; it is damaged."
        )
    return Instance(pieces[:n], types[:n], labels[:n], entities[:n], bool(record[-1]), name)


def _places(numbers: int, name: str) -> int:
    """S of a record with so many numbers."""
    size, rest = divmod(numbers, INSTANCE_PARTS)
    if rest != 1 or size == 0:
        raise ValueError(
            f"{name}: expected 6 S + 1 numbers (1,537 for windows of 256 pieces), but it has {numbers}: it is not "
            "a record of ERNIE's pretraining, or it is cut."
        )
    return size


def _pieces(real: np.ndarray, name: str) -> int:
    """How many a mask (S,) has."""
    n = int(real.sum())
    if n < 1 or not (real[:n] == 1).all() or real[n:].any():
        raise ValueError(f"{name}: expected a mask of ones followed by zeros, but it is {_shown(real)}.")
    return n


def _read_index(path: Path) -> tuple[np.dtype, np.ndarray, np.ndarray]:
    """Type of the elements, starts (R + 1,) and sizes (R,) of the records."""
    with path.open("rb") as file:
        header = file.read(48)
    if header[:8] != INDEX_MAGIC or len(header) < 48:
        raise ValueError(
            f"{path} must begin with {INDEX_MAGIC!r} and a header of 48 bytes, but it begins with {header[:8]!r}."
        )
    version, code, element, n, n_sizes = struct.unpack("<5Q", header[8:])
    if version != 1 or code not in _TYPES or element != np.dtype(_TYPES[code]).itemsize:
        raise ValueError(
            f"{path}: expected version 1 and integers (type codes {sorted(_TYPES)} of their size), but the version is "
            f"{version} and the type code {code} of {element} bytes."
        )
    expected = 48 + 8 * (2 * (n + 1) + n_sizes)
    if (found := path.stat().st_size) != expected:
        raise ValueError(f"{path}: {n:,} records need {expected:,} bytes, but it has {found:,}: it is cut, or damaged.")
    numbers = np.memmap(path, "<i8", mode="r", offset=48)
    dims, starts, sizes = numbers[: n + 1], numbers[n + 1 : 2 * n + 2], numbers[2 * n + 2 :]
    if n_sizes != n or (dims != np.arange(n + 1)).any():
        raise ValueError(f"{path}: expected vectors, one size a record, but {n} records have {n_sizes} sizes.")
    wrong = np.flatnonzero((np.diff(starts) != sizes) | (sizes < 0))
    if starts[0] != 0 or len(wrong):
        i = int(wrong[0]) if len(wrong) else 0
        raise ValueError(
            f"{path}: record {i} should reach from {starts[i]} over {sizes[i] if n else 0} numbers, but the next "
            f"begins at {starts[min(i + 1, n)]}: it is damaged."
        )
    return np.dtype(_TYPES[code]).newbyteorder("<"), starts, sizes


def _without_suffix(path: Path) -> Path:
    path = Path(path)
    return path.with_suffix("") if path.suffix in (".idx", ".bin") else path


def _shown(values: np.ndarray) -> str:
    return str(values[:12].tolist())[:-1] + (", ...]" if len(values) > 12 else "]")
