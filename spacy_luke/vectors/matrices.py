"""Rows of numbers from files, block by block: text, OpenKE's json, .npy, .safetensors, and bare float32.

Shapes: R rows of a block, S numbers in a row. A row that cannot be read is reported, and is not in any block.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..stores.opening import open_source
from ..stores.progress import ProgressBar
from .sources import read_numbered_lines

BLOCK_ROWS = 1 << 12  # rows
_SAMPLE = 1000  # rows that are looked at to learn the size of all
_JSON_KEYS = (b'"ent_embeddings.weight"', b'"ent_embeddings"')
_TENSORS = ("entity_representations.0._embeddings.weight", "ent_embeddings.weight", "entity_embeddings.weight")

ReportRow = Callable[[int, str, str], None]  # row, place in the file, what is wrong


class RowBlock(NamedTuple):
    """rows (R,): int64, numbers of the rows in the source, from 0, and places: where they stand; values (R, S):
    float32."""

    rows: np.ndarray
    places: Callable[[int], str]
    values: np.ndarray


class Matrix(NamedTuple):
    """rows: None where only reading tells; blocks(report, progress) reads all of them once."""

    rows: int | None
    size: int
    blocks: Callable[[ReportRow, bool], Iterator[RowBlock]]


def open_matrix(path: Path, *, names: int, size: int | None) -> Matrix:
    """A file of vectors, by its ending. names: of its rows, which tells the size of a bare `.bin`."""
    kind = path.suffix.lower()
    if kind == ".json":
        return _open_lines(path, size, lambda progress: _json_lines(path, progress), b",")
    if kind in (".npy", ".safetensors", ".bin"):
        opened: dict[str, Callable[[Path], Any]] = {
            ".npy": _open_npy,
            ".safetensors": _open_safetensors,
            ".bin": lambda path: _open_bare(path, names),
        }
        return matrix_of(opened[kind](path), size=size, source=str(path))
    return _open_lines(path, size, lambda progress: _text_lines(path, progress), b"\t")


def open_word2vec(path: Path, *, size: int | None) -> tuple[Matrix, bytes]:
    """A text file whose lines begin with a name, and what stands between the fields of a line."""
    heading, separator = _word2vec_heading(path)

    def lines(progress: bool) -> Iterator[tuple[str, bytes]]:
        for place, line in _text_lines(path, progress, skip=heading is not None):
            yield place, line.partition(separator)[2].strip()

    matrix = _open_lines(path, size or (heading[1] if heading else None), lines, separator)
    return matrix._replace(rows=heading[0] if heading else None), separator


def read_word2vec_names(path: Path, separator: bytes, *, progress: bool) -> Iterator[tuple[int, bytes]]:
    """Line and name of each row; b"" where the line is empty."""
    heading, _ = _word2vec_heading(path)
    for number, line in islice(
        read_numbered_lines(path, task="names of", progress=progress), heading is not None, None
    ):
        yield number, line.partition(separator)[0].strip()


def matrix_of(matrix: Any, *, size: int | None, source: str) -> Matrix:
    """From what has a shape and can be sliced. ValueError where it is no table of floating-point numbers."""
    shape, dtype = tuple(matrix.shape), np.dtype(matrix.dtype)
    if len(shape) != 2 or dtype.kind != "f" or 0 in shape:
        raise ValueError(f"{source}: expected floating-point numbers of shape (rows, size), but got {dtype} {shape}.")
    if size is not None and size != shape[1]:
        raise ValueError(f"{source}: expected vectors of {size} numbers, but they have {shape[1]}.")

    def blocks(report: ReportRow, progress: bool) -> Iterator[RowBlock]:
        with ProgressBar[RowBlock](None, "vectors", total=shape[0], unit="row", show=progress) as bar:
            for start in range(0, shape[0], BLOCK_ROWS):
                with np.errstate(over="ignore"):
                    values = np.asarray(matrix[start : min(start + BLOCK_ROWS, shape[0])], dtype=np.float32)
                rows = np.arange(start, start + len(values))
                yield RowBlock(rows, lambda i, rows=rows: f"row {rows[i]}", values)  # type: ignore[misc]
                bar.update(len(values))

    return Matrix(shape[0], shape[1], blocks)


# ---- text

Lines = Callable[[bool], Iterator[tuple[str, bytes]]]  # progress -> place and numbers of each row


def _text_lines(path: Path, progress: bool, *, skip: bool = False) -> Iterator[tuple[str, bytes]]:
    lines = islice(read_numbered_lines(path, task="vectors of", progress=progress), skip, None)
    return ((f"line {number}", line) for number, line in lines)


def _open_lines(path: Path, size: int | None, lines: Lines, separator: bytes) -> Matrix:
    """The size, where it is not given, is that of most of the first rows."""
    if size is None:
        sizes = Counter(line.count(separator) + 1 for _, line in islice(lines(False), _SAMPLE) if line)
        if not sizes:
            raise ValueError(f"{path} is empty; expected a line of numbers for each entity.")
        size = sizes.most_common(1)[0][0]

    def blocks(report: ReportRow, progress: bool) -> Iterator[RowBlock]:
        given, first = lines(progress), 0
        while taken := list(islice(given, BLOCK_ROWS)):
            yield _parse(taken, first, size, separator, report)
            first += len(taken)

    return Matrix(None, size, blocks)


def _parse(lines: list[tuple[str, bytes]], first: int, size: int, separator: bytes, report: ReportRow) -> RowBlock:
    values = np.empty((len(lines), size), np.float32)
    good: list[int] = []
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("error", DeprecationWarning)  # numpy's way to say that a text is no number
        for i, (place, line) in enumerate(lines):
            fields = line.count(separator) + 1 if line else 0
            try:
                row = np.fromstring(line, np.float32, sep=separator.decode())
            except (DeprecationWarning, ValueError):
                row = None
            if row is not None and fields == len(row) == size:
                values[len(good)] = row
                good.append(i)
            else:
                report(first + i, place, _fault(line, fields, size, separator))
    where = np.array(good, np.int64)
    return RowBlock(first + where, lambda i: lines[good[i]][0], values[: len(good)])


def _fault(line: bytes, fields: int, size: int, separator: bytes) -> str:
    if fields != size:
        return f"expected {size} numbers, but got {fields}"
    for i, field in enumerate(line.split(separator), 1):
        try:
            float(field)
        except ValueError:
            return f"expected a number, but number {i} is {field[:40].decode('utf8', 'replace')!r}"
    return f"expected {size} numbers between single separators, but got {line[:60].decode('utf8', 'replace')!r}"


def _word2vec_heading(path: Path) -> tuple[tuple[int, int] | None, bytes]:
    """Rows and size where the first line has them; the separator of the first row: a tab where there is one."""
    lines = [line for _, line in islice(read_numbered_lines(path), 2)]
    if not lines:
        raise ValueError(f"{path} is empty; expected a name and its numbers in each line.")
    fields = lines[0].split()
    heading = (int(fields[0]), int(fields[1])) if len(fields) == 2 and all(x.isdigit() for x in fields) else None
    row = lines[-1] if heading else lines[0]
    return heading, b"\t" if b"\t" in row else b" "


# ---- json: only what stands between the brackets of one key is looked at, so that gigabytes need no memory


def _json_lines(path: Path, progress: bool) -> Iterator[tuple[str, bytes]]:
    with open_source(path, task="vectors of", progress=progress) as file:
        buffer, row = _after_key(path, file), 0
        start = 0
        while True:
            end = buffer.find(b"]", start)
            if end < 0:
                chunk = file.read(1 << 20)
                if not chunk:
                    raise ValueError(f"{path} ends in the middle of the entities' vectors, after {row:,} rows.")
                buffer, start = buffer[start:] + chunk, 0
                continue
            before, bracket, numbers = buffer[start:end].partition(b"[")
            if not bracket and not before.strip():
                return
            if not bracket or before.strip() not in (b"", b",") or b"[" in numbers:
                raise ValueError(
                    f"{path}: expected a list of lists of numbers, but after row {row} it has something else."
                )
            yield f"row {row}", numbers.strip()
            row, start = row + 1, end + 1


def _after_key(path: Path, file: BinaryIO) -> bytes:
    """What follows the outer bracket of the entities' vectors."""
    buffer, keep = b"", max(map(len, _JSON_KEYS)) + 16
    while chunk := file.read(1 << 20):
        buffer += chunk
        for key in _JSON_KEYS:
            at = buffer.find(key)
            while 0 <= at and (bracket := buffer.find(b"[", at)) < 0 and (more := file.read(1 << 20)):
                buffer += more
            if at >= 0 and bracket >= 0 and buffer[at + len(key) : bracket].strip() == b":":
                return buffer[bracket + 1 :]
        buffer = buffer[-keep:]
    raise ValueError(
        f"{path}: expected OpenKE's vectors under one of {[x.decode() for x in _JSON_KEYS]}, but found none."
    )


# ---- arrays


class _FileRows:
    """Rows of a file of numbers, of which slices are read: a mapped file would count as memory of the process."""

    def __init__(self, path: Path, dtype: np.dtype, shape: tuple[int, int], start: int) -> None:
        self.path, self.dtype, self.shape, self.start = path, dtype, shape, start

    def __getitem__(self, rows: slice) -> np.ndarray:
        first, last, _ = rows.indices(self.shape[0])
        size, start = self.shape[1], self.start + first * self.shape[1] * self.dtype.itemsize
        return np.fromfile(self.path, self.dtype, (last - first) * size, offset=start).reshape(last - first, size)


def _open_npy(path: Path) -> Any:
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # the parser of numpy's headers raises many kinds: TokenError, SyntaxError, ...
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault
        raise ValueError(f"{path} is no whole .npy file of numbers ({error}).") from error
    if mapped.ndim != 2 or not mapped.flags.c_contiguous:
        return mapped
    return _FileRows(path, mapped.dtype, mapped.shape, mapped.offset)


def _open_bare(path: Path, names: int) -> _FileRows:
    bytes_ = path.stat().st_size
    if not names or bytes_ == 0 or bytes_ % (4 * names):
        raise ValueError(f"{path}: expected float32 for {names:,} entities, but {bytes_:,} bytes are no whole rows.")
    return _FileRows(path, np.dtype("<f4"), (names, bytes_ // (4 * names)), 0)


class _Slices:
    """A tensor of a .safetensors file, of which slices are read."""

    def __init__(self, tensor: Any, key: str, dtype: np.dtype) -> None:
        self._tensor, self.key, self.shape, self.dtype = tensor, key, tuple(tensor.get_shape()), dtype

    def __getitem__(self, rows: slice) -> np.ndarray:
        return np.asarray(self._tensor[rows])


def _open_safetensors(path: Path) -> _Slices:
    from safetensors import SafetensorError, safe_open

    dtypes = {"F64": "f8", "F32": "f4", "F16": "f2"}
    try:
        file = safe_open(path, framework="numpy")
        found = {key: file.get_slice(key) for key in file.keys()}
    except SafetensorError as error:
        raise ValueError(f"{path} is no whole .safetensors file ({error}).") from error
    key = choose_tensor({key: tuple(tensor.get_shape()) for key, tensor in found.items()}, str(path))
    dtype = found[key].get_dtype()
    if dtype not in dtypes:
        raise ValueError(f"{path}: expected one of {sorted(dtypes)} in {key}, but it is {dtype}. Save it as float32.")
    return _Slices(found[key], key, np.dtype(dtypes[dtype]))


def choose_tensor(shapes: dict[str, tuple[int, ...]], source: str) -> str:
    """Which tensor holds the entities: one of a known name, or the only one of two dimensions."""
    tables = [key for key, shape in shapes.items() if len(shape) == 2]
    known = [key for key in _TENSORS if key in tables]
    if not known and len(tables) != 1:
        raise ValueError(
            f"{source}: expected one of {_TENSORS}, or a single tensor of shape (rows, size), but it has {shapes}."
        )
    return (known or tables)[0]
