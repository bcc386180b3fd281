"""A store of vectors from the files of other programs, or from an array.

Names are read first, then the rows, which go to the new store block by block; memory is that of the names, some 70
bytes and their text for each. Rows that are damaged are named in one error, or left out and listed in the store's
`dropped.tsv`; none is repaired.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ..stores.atomic import write_folder_atomically
from ..stores.names import NameIndex, NameList
from ..stores.unicode_forms import warn_of_forms
from .matrices import (
    BLOCK_ROWS,
    Matrix,
    ReportRow,
    RowBlock,
    matrix_of,
    open_matrix,
    open_word2vec,
    read_word2vec_names,
)
from .sources import VectorFiles, check_text, find_vector_files, read_row_names, read_titles
from .store import EntityVectors
from .writer import VECTOR_STORE, RowWriter, check_dtype, encode, finish_store

_SHOWN = 5
_ON_DAMAGE = ("error", "drop")


@dataclass(frozen=True)
class Built:
    """A new store; how many entities and titles were left out, and the first of them in words."""

    store: EntityVectors
    dropped: int
    first: list[str]


def build_vectors(
    source: str | Path | np.ndarray,
    folder: str | Path,
    *,
    format: str = "auto",
    dtype: str = "float32",
    names: str | Path | Iterable[str] | None = None,
    titles: str | Path | None = None,
    further: Sequence[tuple[str, str]] = (),
    size: int | None = None,
    on_damage: str = "error",
    encoder: str | None = None,
    progress: bool = False,
) -> Built:
    """Write a store of vectors, from the files of other programs or from an array.

    source: a file or folder in one of the formats of docs/tasks/graphs.md, or float (rows, size). names: the file that
    names the rows, or the names; titles: a file `title TAB id` of further names; further: such pairs, where there is no
    file. size: of the vectors, where most of the file's first rows do not tell it. on_damage: "error" raises ValueError
    for damaged entities, "drop" leaves them out and lists them. encoder: the fingerprint of what made the vectors.

    An entity is damaged whose row has too few or too many numbers, one that is none or not finite or too large for the
    dtype, or that is missing; a row without a name; a name that comes again (the first one stays); a title whose id has
    no row. Files that are not whole are errors always.
    """
    check_dtype(dtype)
    if on_damage not in _ON_DAMAGE:
        raise ValueError(f"on_damage must be one of {_ON_DAMAGE}, but it is {on_damage!r}.")
    folder = Path(folder)
    VECTOR_STORE.check_replaceable(folder)
    found, matrix, named, noted = _open(source, format, names, titles, size, progress)
    with write_folder_atomically(folder) as new:
        with Damage(new / "dropped.tsv", noted["source"], on_damage) as damage:
            keep = _unique(named, damage, progress)
            with RowWriter(new, matrix.size, dtype) as writer:
                _copy_rows(matrix, named, keep, writer, damage, progress)
            kept = named if keep.all() else NameList(named[i] for i in np.flatnonzero(keep).tolist())
            title_file = found.titles if found else (Path(titles) if titles is not None else None)
            pairs = _pairs(further) if title_file is None else read_titles(title_file, progress=progress)
            place = "further names" if title_file is None else title_file.name
            index, further_rows = _add_titles(kept, pairs, place, damage, progress)
            _warn_of_names(index, further_rows)
        damage.check()
        if not writer.rows:
            raise ValueError(f"{noted['source']} has no entity that can be stored: {damage.summary()}")
        info = {**noted, "dropped": damage.count, **({} if encoder is None else {"encoder": encoder})}
        finish_store(new, writer, index, further_rows, info=info, progress=progress)
    return Built(EntityVectors.open(folder), damage.count, damage.first)


class Damage:
    """What is wrong with single entities: raised together when all is read, or written down and left out."""

    def __init__(self, path: Path, source: str, on_damage: str) -> None:
        self.count = 0
        self.first: list[str] = []
        self._path, self._source, self._drop = path, source, on_damage == "drop"
        self._file: TextIO | None = None

    def __enter__(self) -> "Damage":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, place: str, name: bytes, what: str) -> None:
        text = name.decode("utf8")
        self.count += 1
        if len(self.first) < _SHOWN:
            self.first.append(f"{place}, {repr(text) if text else 'without a name'}: {what}")
        if self._drop:
            if self._file is None:
                self._file = self._path.open("w", encoding="utf8", newline="\n")
                self._file.write("place\tentity\tdamage\n")
            self._file.write(f"{place}\t{text}\t{what}\n")

    def summary(self) -> str:
        more = f"; and {self.count - len(self.first):,} more" if self.count > len(self.first) else ""
        return "; ".join(self.first) + more

    def check(self) -> None:
        if self.count and not self._drop:
            raise ValueError(
                f"{self._source}: {self.count:,} entities or titles are damaged. {self.summary()}. Repair the source, "
                'or leave them out with on_damage="drop" (--on-damage drop).'
            )


def _open(
    source: str | Path | np.ndarray,
    format: str,
    names: str | Path | Iterable[str] | None,
    titles: str | Path | None,
    size: int | None,
    progress: bool,
) -> tuple[VectorFiles | None, Matrix, NameList, dict[str, Any]]:
    if isinstance(source, np.ndarray):
        if names is None:
            raise ValueError("Expected names for the rows of an array, but got none.")
        named = _given_names(names, progress)
        return None, matrix_of(source, size=size, source="the array"), named, {"source": "array", "format": "numpy"}
    given = names if names is None or isinstance(names, (str, Path)) else None
    if names is not None and given is None:
        source, named = Path(source), _given_names(names, progress)
        matrix = open_matrix(source, names=len(named), size=size)
        return None, matrix, named, {"source": source.name, "format": "numpy"}
    found = find_vector_files(source, format=format, names=given, titles=titles)
    noted = {"source": found.vectors.name, "format": found.format}
    if found.format == "word2vec":
        matrix, separator = open_word2vec(found.vectors, size=size)
        named = NameList()
        for line, name in read_word2vec_names(found.vectors, separator, progress=progress):
            named.append(check_text(found.vectors, line, name))
        if matrix.rows is not None and matrix.rows != len(named):
            raise ValueError(
                f"{found.vectors}: the first line says {matrix.rows:,} rows, but {len(named):,} follow. The file may "
                "be truncated: copy it again, or correct its first line."
            )
        return found, matrix, named, noted
    assert found.names is not None
    named = read_row_names(found.names, progress=progress)
    if not len(named):
        raise ValueError(f"{found.names} has no names.")
    return found, open_matrix(found.vectors, names=len(named), size=size), named, noted


def _given_names(names: str | Path | Iterable[str], progress: bool) -> NameList:
    if isinstance(names, (str, Path)):
        return read_row_names(Path(names), progress=progress)
    return NameList(_check_name(i, name).encode("utf8") for i, name in enumerate(names))


def _check_name(row: int, name: str) -> str:
    if not isinstance(name, str) or name != name.strip() or "\n" in name:
        raise ValueError(f"Expected a line of text without blank ends as the name of row {row}, but got {name!r}.")
    return name


def _unique(names: NameList, damage: Damage, progress: bool) -> np.ndarray:
    """bool (rows,): False for a name that an earlier row has. Rows without a name are found when they are read."""
    keep = np.ones(len(names), bool)
    for number, first in sorted(NameIndex.of(names, progress=progress).repeated()):
        keep[number] = False
        damage.add(f"row {number}", names[number], f"expected each name once, but row {first} has it too")
    return keep


def _copy_rows(
    matrix: Matrix, names: NameList, keep: np.ndarray, writer: RowWriter, damage: Damage, progress: bool
) -> None:
    """keep: becomes False for rows that are damaged, missing or without a name."""
    seen, has_name = np.zeros(len(names), bool), np.diff(names.starts()) > 1

    def report(row: int, place: str, what: str) -> None:
        if row >= len(names):
            damage.add(place, b"", what)
            return
        seen[row] = True
        if keep[row]:  # else reported before
            damage.add(place, names[row], what)
        keep[row] = False

    for block in matrix.blocks(report, progress):
        numbers, scales = encode(block.values, writer.dtype)
        _report_numbers(block, numbers, writer.dtype, report)
        inside = np.flatnonzero(block.rows < len(names))
        rows = block.rows[inside]
        seen[rows] = True
        nameless = [*inside[~has_name[rows]].tolist(), *np.flatnonzero(block.rows >= len(names)).tolist()]
        for i in nameless:
            report(int(block.rows[i]), block.places(i), "the names do not tell whose row it is")
        good = inside[keep[rows]]
        writer.write(numbers[good], None if scales is None else scales[good])
    for row in np.flatnonzero(~seen & keep).tolist():
        keep[row] = False
        if has_name[row]:
            damage.add(f"row {row}", names[row], f"its row is missing: the vectors end after row {int(seen.sum()) - 1}")


def _report_numbers(block: RowBlock, numbers_RS: np.ndarray, dtype: str, report: ReportRow) -> None:
    """Rows that are not finite, as they came or in the dtype."""
    bad = ~np.isfinite(block.values) if dtype == "int8" else ~np.isfinite(numbers_RS)
    for i in np.flatnonzero(bad.any(axis=1)).tolist():
        at = int(bad[i].argmax())
        value = block.values[i, at]
        what = f"number {at + 1} is {value}"
        report(
            int(block.rows[i]), block.places(i), what if not np.isfinite(value) else f"{what}, too large for {dtype}"
        )


def _warn_of_names(index: NameIndex, further_rows: np.ndarray) -> None:
    """Of names of different rows that are equal but for their Unicode form."""
    rows = len(index) - len(further_rows)

    def row_of(name: str) -> int | None:
        number = int(index.find([name.encode("utf8")])[0])
        return None if number < 0 else number if number < rows else int(further_rows[number - rows])

    names = (index.text_of(number).decode("utf8") for number in range(len(index)))
    warn_of_forms(names, row_of, what="names of vectors")


def _pairs(further: Sequence[tuple[str, str]]) -> Iterator[tuple[int, bytes, bytes]]:
    """As `read_titles`."""
    for number, (title, name) in enumerate(further, 1):
        yield number, title.encode("utf8"), name.encode("utf8")


def _add_titles(
    names: NameList, lines: Iterator[tuple[int, bytes, bytes]], place: str, damage: Damage, progress: bool
) -> tuple[NameIndex, np.ndarray]:
    """An index of the names of the rows and of titles, whose rows (uint32) it gives too. place: where the lines are."""
    index, rows = NameIndex.of(names, progress=progress), len(names)
    row_T, line_T = array("q"), array("q")
    while block := list(islice(lines, BLOCK_ROWS)):
        found = index.find([name for _, _, name in block]).tolist()
        for (line, title, name), row in zip(block, found, strict=True):
            if row < 0:
                what = f"its id {name.decode('utf8')} has no vector"
                damage.add(f"{place}, line {line}", title, what)
                continue
            names.append(title)
            row_T.append(row)
            line_T.append(line)
    if not row_T:
        return index, np.zeros(0, np.uint32)
    both, again = NameIndex.of(names, progress=progress), set()
    for number, first in sorted(both.repeated()):
        again.add(number)
        old, new = (x if x < rows else row_T[x - rows] for x in (first, number))
        if old != new:
            what = f"stands for {names[new].decode('utf8')}, but before for {names[old].decode('utf8')}"
            damage.add(f"{place}, line {line_T[number - rows]}", names[number], what)
    if again:
        kept = [i for i in range(len(names)) if i not in again]
        both = NameIndex.of(NameList(names[i] for i in kept), progress=progress)
        return both, np.array([row_T[i - rows] for i in kept[rows:]], np.uint32)
    return both, np.array(row_T, np.uint32)
