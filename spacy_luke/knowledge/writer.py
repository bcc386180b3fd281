"""Writing a store: rows as they come, in a dtype, then the index of names and the manifest, which is checked on opening.

manifest.json    {"format", "version", "rows", "size", "dtype", "names", "files": {file: [bytes, BLAKE2b]}, "info"}
vectors.npy      float32, float16 or int8 (rows, size), little-endian
scales.npy       int8 only: float32 (rows,); a row is its numbers times its scale
dropped.tsv      what a builder left out, where it did (see `build`)
"""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Dict, Optional, Tuple

import numpy as np
from tqdm import tqdm

from .manifest import MANIFEST
from .names import MOST_NAMES, NameIndex

FORMAT = "spacy_luke entity vectors"
VERSION = 1
DTYPES = {"float32": "<f4", "float16": "<f2", "int8": "|i1"}
LEVELS = 127  # int8 numbers go from -127 to 127


def check_dtype(dtype: str) -> str:
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {tuple(DTYPES)}, but it is {dtype!r}.")
    return dtype


def encode(values_RS: np.ndarray, dtype: str) -> Tuple[np.ndarray, Optional[np.ndarray]]:
    """float32 (R, size) as a store keeps them: the numbers, and for int8 the scale of each row, its largest / 127.
    float16 becomes infinite beyond 65,504, which the caller checks."""
    if dtype != "int8":
        with np.errstate(over="ignore"):
            return values_RS.astype(DTYPES[dtype]), None
    scales_R = np.abs(values_RS).max(axis=1, initial=0).astype(np.float32) / np.float32(LEVELS)
    divisors_R = np.where(scales_R > 0, scales_R, 1)
    numbers_RS = np.clip(np.rint(values_RS / divisors_R[:, None]), -LEVELS, LEVELS)
    return numbers_RS.astype(np.int8), scales_R


class RowWriter:
    """vectors.npy and scales.npy, whose number of rows is known only in the end. To be used in a `with` statement."""

    def __init__(self, folder: Path, size: int, dtype: str) -> None:
        self.rows, self.size, self.dtype = 0, size, check_dtype(dtype)
        self._vectors = (folder / "vectors.npy").open("wb")
        self._scales = (folder / "scales.npy").open("wb") if dtype == "int8" else None
        self._write_headers()

    def write(self, numbers_RS: np.ndarray, scales_R: Optional[np.ndarray]) -> None:
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


def _write_header(file: BinaryIO, descr: str, shape: Tuple[int, ...]) -> None:
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})


def finish_store(
    folder: Path,
    writer: RowWriter,
    names: NameIndex,
    further_rows: np.ndarray,
    *,
    info: Dict[str, Any],
    progress: bool = False,
) -> None:
    """The index of names and the manifest. names: one for each row, then those of `further_rows`, each name once."""
    if len(names) > MOST_NAMES:
        raise ValueError(f"A store holds at most {MOST_NAMES:,} names, but there are {len(names):,}.")
    assert len(names) == writer.rows + len(further_rows)
    names.write(folder, further_rows)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "rows": writer.rows,
        "size": writer.size,
        "dtype": writer.dtype,
        "names": len(names),
        "files": {
            path.name: [path.stat().st_size, digest_file(path, progress=progress)] for path in sorted(folder.iterdir())
        },
        "info": info,
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf8")


def digest_file(path: Path, *, progress: bool = False) -> str:
    """BLAKE2b (16 bytes) of a file, hexadecimal."""
    digest = blake2b(digest_size=16)
    show = {"total": path.stat().st_size, "desc": f"checksum of {path.name}", "unit": "B", "unit_scale": True}
    with path.open("rb") as raw, tqdm.wrapattr(raw, "read", leave=False, disable=not progress, **show) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def changed_file(folder: Path, files: Dict[str, Tuple[int, str]], *, progress: bool = False) -> Optional[str]:
    """The first file whose checksum is not the manifest's (files: name -> size and checksum), None where all are."""
    for name, (_, digest) in files.items():
        if digest_file(folder / name, progress=progress) != digest:
            return name
    return None


def check_files(
    folder: Path,
    files: Dict[str, Tuple[int, str]],
    *,
    not_whole: str,
    damaged: str,
    again: str,
    verify: bool = False,
    progress: bool = False,
) -> None:
    """ValueError where a file of a manifest is missing or has another size, or with `verify` another checksum.

    not_whole, damaged: beginnings of the messages, such as "X is no whole corpus"; again: the advice at their end.
    """
    for name, (size, _) in files.items():
        file = folder / name
        found = file.stat().st_size if file.is_file() else None
        if found != size:
            what = "it is missing" if found is None else f"it has {found:,}"
            raise ValueError(f"{not_whole}: expected {size:,} bytes in {name}, but {what}. {again}")
    if verify and (name := changed_file(folder, files, progress=progress)) is not None:
        raise ValueError(f"{damaged}: the checksum of {name} is another. {again}")
