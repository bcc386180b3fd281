"""Vectors of millions of entities in a folder (see `writer` and `names` for its files).

Opening maps the index of names, after the files were checked (see `stores.digests`); asking for rows reads these rows.
Processes share what the system keeps of the files. Shapes: E rows asked for, S numbers in a vector.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..stores.arrays import RowFile, map_array, map_bytes
from ..stores.atomic import write_folder_atomically
from ..stores.folder import StoreFolder
from ..stores.names import NameIndex, NameList
from .writer import DTYPES, VECTOR_STORE, RowWriter, finish_store

_BLOCK = 1 << 14  # rows that are copied at once


class EntityVectors(StoreFolder):
    """A store of vectors, by row and by name. Rows are numbered from 0; what has no row is not in the store.

    Nothing in a store changes; `vectors.build.build_vectors` makes new ones, which may replace a folder that is in use.
    """

    kind = VECTOR_STORE

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        super().__init__(path, manifest)
        self.size: int = manifest["size"]
        self.dtype: str = manifest["dtype"]
        rows, names = manifest["rows"], manifest["names"]
        self._vectors = RowFile(path / "vectors.npy", DTYPES[self.dtype], (rows, self.size))
        self._scales_R = map_array(path / "scales.npy", "<f4", (rows,)) if self.dtype == "int8" else None
        self._further_rows = map_array(path / "name_rows.npy", "<u4", (names - rows,))
        self._names = NameIndex(
            map_bytes(path / "names.txt"),
            map_array(path / "name_starts.npy", "<i8", (names + 1,)),
            map_array(path / "name_hashes.npy", "<u8", (names,)),
            map_array(path / "name_order.npy", "<u4", (names,)),
        )

    def __len__(self) -> int:
        """Number of rows."""
        return self._vectors.shape[0]

    def __repr__(self) -> str:
        return f"EntityVectors({str(self.path)!r}, {len(self):,} x {self.size}, {self.dtype})"

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.row(name) >= 0

    @property
    def checksums(self) -> dict[str, str]:
        """Of the files, as the manifest has them."""
        return {name: checksum for name, (_, checksum) in self.manifest["files"].items()}

    @property
    def name_count(self) -> int:
        """Number of names: one for each row, and the further ones."""
        return len(self._names)

    def row(self, name: str) -> int:
        """The row of an entity, by its id or a further name; -1 where it is not known."""
        return int(self.rows([name])[0])

    def rows(self, names: Sequence[str]) -> np.ndarray:
        """int64 (E,): the row of each name, -1 where it is not known."""
        if isinstance(names, str):
            raise ValueError(f"Expected a list of names, but got the text {names!r}; `row` takes a single name.")
        numbers_E = self._names.find([name.encode("utf8", "surrogatepass") for name in names])
        if len(self._further_rows):
            further = np.flatnonzero(numbers_E >= len(self))
            numbers_E[further] = self._further_rows[numbers_E[further] - len(self)]
        return numbers_E

    def gather(self, rows: np.ndarray | Sequence[int]) -> np.ndarray:
        """float32 (E, S): the vectors of rows (E,), in their order. Each row is read once, and nothing but these
        rows."""
        unique_U, place_E = np.unique(self._check_rows(rows), return_inverse=True)
        vectors_US = self._vectors.read(unique_U).astype(np.float32, copy=False)
        if self._scales_R is not None:
            vectors_US *= self._scales_R[unique_U][:, None]
        return vectors_US[place_E]

    def names_of(self, rows: np.ndarray | Sequence[int]) -> list[str]:
        """The first name of each row, which is its id."""
        return [self._names.text_of(row).decode("utf8") for row in self._check_rows(rows).tolist()]

    def further_names(self) -> list[tuple[str, int]]:
        """Names besides the first one of each row, and whose they are."""
        rows = self._further_rows.tolist()
        return [(self._names.text_of(len(self) + i).decode("utf8"), row) for i, row in enumerate(rows)]

    @property
    def encoder(self) -> str | None:
        """The fingerprint of the encoder that made the vectors of texts; None where it is not known."""
        fingerprint = self.info.get("encoder")
        return fingerprint if isinstance(fingerprint, str) else None

    def subset(self, names: Iterable[str], folder: str | Path) -> "EntityVectors":
        """A smaller store of the rows that have one of these names, with all their names; rows keep their order, and
        vectors are the same to the bit. ValueError for names that are not known."""
        names, folder = list(dict.fromkeys(names)), Path(folder)
        rows_E = self.rows(names)
        if (unknown := np.flatnonzero(rows_E < 0)).size:
            first = ", ".join(repr(names[i]) for i in unknown[:5])
            raise ValueError(
                f"{len(unknown):,} of {len(names):,} names are not in {self.path}: {first}. Leave them out."
            )
        if not names:
            raise ValueError("Expected the names of one or more entities for a smaller store, but got none.")
        VECTOR_STORE.check_replaceable(folder)
        rows_E = np.unique(rows_E)
        further = np.flatnonzero(np.isin(self._further_rows, rows_E))
        with write_folder_atomically(folder) as new:
            with RowWriter(new, self.size, self.dtype) as writer:
                for start in range(0, len(rows_E), _BLOCK):
                    block = rows_E[start : start + _BLOCK]
                    writer.write(self._vectors.read(block), None if self._scales_R is None else self._scales_R[block])
            numbers = [*rows_E.tolist(), *(further + len(self)).tolist()]
            index = NameIndex.of(NameList(map(self._names.text_of, numbers)))
            further_rows = np.searchsorted(rows_E, self._further_rows[further])
            info = {key: value for key, value in self.info.items() if key != "dropped"}
            finish_store(new, writer, index, further_rows, info={**info, "subset_of": len(self)})
        return type(self).open(folder)

    def _check_rows(self, rows: np.ndarray | Sequence[int]) -> np.ndarray:
        rows_E = np.asarray(rows)
        if rows_E.size == 0:
            rows_E = rows_E.astype(np.int64)
        if rows_E.ndim != 1 or rows_E.dtype.kind not in "iu":
            raise ValueError(f"Expected whole numbers of shape (E,) as rows, but got {rows_E.dtype} {rows_E.shape}.")
        if rows_E.size and not (0 <= rows_E.min() and rows_E.max() < len(self)):
            i = int(np.flatnonzero((rows_E < 0) | (rows_E >= len(self)))[0])
            raise ValueError(
                f"Expected rows from 0 to {len(self) - 1:,}, but row {i} of those asked for is {rows_E[i]}. "
                "A name that is not known (-1) has no vector: leave it out."
            )
        return rows_E
