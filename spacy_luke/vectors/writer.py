"""Writing a store: rows as they come, in a dtype, then the index of names and the manifest, which is checked on
opening.

manifest.json    {"rows", "size", "dtype", "names", "info"}, and what all manifests have (see `stores.folder`)
vectors.npy      float32, float16 or int8 (rows, size), little-endian
scales.npy       int8 only: float32 (rows,); a row is its numbers times its scale
dropped.tsv      what a builder left out, where it did (see `build`)
"""

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..stores.folder import StoreKind, is_count
from ..stores.names import MOST_NAMES, NameIndex

DTYPES = {"float32": "<f4", "float16": "<f2", "int8": "|i1"}
_LEVELS = 127  # int8 numbers go from -127 to 127


def _is_whole(manifest: dict[str, Any]) -> bool:
    good = all(is_count(manifest[key], least=1) for key in ("rows", "size", "names"))
    return good and manifest["dtype"] in DTYPES and isinstance(manifest["info"], dict)


VECTOR_STORE = StoreKind(
    what="store of vectors",
    many="vectors",
    form="spacy_luke entity vectors",
    build="Build it with `python -m spacy luke build-vectors`.",
    is_whole=_is_whole,
)


def check_dtype(dtype: str) -> str:
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {tuple(DTYPES)}, but it is {dtype!r}.")
    return dtype


def encode(values_RS: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray | None]:
    """float32 (R, size) as a store keeps them: the numbers, and for int8 the scale of each row, its largest / 127.
    float16 becomes infinite beyond 65,504, which the caller checks."""
    if dtype != "int8":
        with np.errstate(over="ignore"):
            return values_RS.astype(DTYPES[dtype]), None
    scales_R = np.abs(values_RS).max(axis=1, initial=0).astype(np.float32) / np.float32(_LEVELS)
    divisors_R = np.where(scales_R > 0, scales_R, 1)
    numbers_RS = np.clip(np.rint(values_RS / divisors_R[:, None]), -_LEVELS, _LEVELS)
    return numbers_RS.astype(np.int8), scales_R


class RowWriter:
    """vectors.npy and scales.npy, whose number of rows is known only in the end. To be used in a `with` statement."""

    def __init__(self, folder: Path, size: int, dtype: str) -> None:
        self.rows, self.size, self.dtype = 0, size, check_dtype(dtype)
        self._vectors = (folder / "vectors.npy").open("wb")
        self._scales = (folder / "scales.npy").open("wb") if dtype == "int8" else None
        self._write_headers()

    def write(self, numbers_RS: np.ndarray, scales_R: np.ndarray | None) -> None:
        """What `encode` gives."""
        assert (numbers_RS.shape[1], numbers_RS.dtype) == (self.size, np.dtype(DTYPES[self.dtype]))
        self._vectors.write(np.ascontiguousarray(numbers_RS).data)
        if self._scales is not None:
            assert scales_R is not None
            self._scales.write(scales_R.astype("<f4").data)
        self.rows += len(numbers_RS)

    def __enter__(self) -> "RowWriter":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self._vectors.seek(0)
            if self._scales is not None:
                self._scales.seek(0)
            self._write_headers()
        self._vectors.close()
        if self._scales is not None:
            self._scales.close()

    def _write_headers(self) -> None:
        """numpy leaves room in a header for any number of rows."""
        _write_header(self._vectors, DTYPES[self.dtype], (self.rows, self.size))
        if self._scales is not None:
            _write_header(self._scales, "<f4", (self.rows,))


def _write_header(file: BinaryIO, descr: str, shape: tuple[int, ...]) -> None:
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})


def finish_store(
    folder: Path,
    writer: RowWriter,
    names: NameIndex,
    further_rows: np.ndarray,
    *,
    info: dict[str, Any],
    progress: bool = False,
) -> None:
    """The index of names and the manifest. names: one for each row, then those of `further_rows`, each name once."""
    if len(names) > MOST_NAMES:
        raise ValueError(f"A store holds at most {MOST_NAMES:,} names, but there are {len(names):,}.")
    assert len(names) == writer.rows + len(further_rows)
    names.write(folder, further_rows)
    values = {"rows": writer.rows, "size": writer.size, "dtype": writer.dtype, "names": len(names), "info": info}
    VECTOR_STORE.write_manifest(folder, values, progress=progress)
