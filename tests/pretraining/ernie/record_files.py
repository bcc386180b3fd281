"""Writes the files that `spacy_luke.pretraining.ernie.records` reads, which only the original's code makes."""

import struct
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from spacy_luke.pretraining.ernie.instances import Instance
from spacy_luke.pretraining.ernie.records import INDEX_MAGIC, INSTANCE_PARTS
from spacy_luke.stores.atomic import write_atomically


class RecordWriter:
    """Writes records when the `with` block ends well.

    with RecordWriter(path) as writer:
        writer.add(values)
    """

    def __init__(self, path: Path):
        self.path = path
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.sizes: list[int] = []

    def __enter__(self) -> "RecordWriter":
        self._writing = write_atomically(self.path.with_name(self.path.name + ".bin"))
        self._file: BinaryIO = self._writing.__enter__().open("wb")
        return self

    def add(self, values: np.ndarray) -> None:
        """values: a vector of integers from -1 that fit 32 bits."""
        values = np.asarray(values)
        if values.ndim != 1 or (len(values) and (values.min() < -1 or values.max() >= 2**31 - 1)):
            raise ValueError(
                f"Record {len(self.sizes)}: expected a vector of integers from -1 to 2**31 - 2, but got shape "
                f"{values.shape}" + (f" with {values.min()} to {values.max()}." if values.size else ".")
            )
        self._file.write((values + 1).astype("<i4").tobytes())
        self.sizes.append(len(values))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._writing.__exit__(kind, error, trace)
        if error is not None:
            return
        n = len(self.sizes)
        header = INDEX_MAGIC + struct.pack("<5Q", 1, 4, 4, n, n)
        offsets = np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])
        with write_atomically(self.path.with_name(self.path.name + ".idx")) as temporary:
            numbers = np.concatenate([np.arange(n + 1), offsets, self.sizes])
            temporary.write_bytes(header + numbers.astype("<i8").tobytes())


def to_record(instance: Instance, size: int) -> np.ndarray:
    """The 6 S + 1 numbers of an instance; size: S. Raises ValueError where it has more than S pieces."""
    n = len(instance.pieces_N)
    if n > size:
        raise ValueError(f"{instance.name} has {n} pieces, but a record is to have places for {size}.")
    record = np.zeros((INSTANCE_PARTS, size), dtype=np.int64)
    record[3:5] = -1
    record[:5, :n] = [
        instance.pieces_N,
        np.ones(n),
        instance.types_N,
        instance.labels_N,
        instance.entities_N,
    ]
    record[5] = record[4] >= 0
    return np.append(record.ravel(), int(instance.is_random))
