"""Names and entities from a table: .tsv, .csv (a first line names the columns) or .jsonl (an object a line); .gz, .bz2.

    name                the text that is looked for
    entity              the title of an entity that it may mean: one row for each name and entity
    count               times that the name was linked to the entity; or
    probability         p(entity | name), which need not sum to 1 where rare entities were left out
    occurrences         times that the name occurs, linked or not; or
    link_probability    times linked / times occurring; without either column it is 1 for each name

`occurrences` and `link_probability` belong to the name, so all its rows have the same. Quotes in .tsv: `stores.tabs`.
"""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

from ..stores.opening import open_source
from ..stores.plain_text import CSV_FIELD, check_columns, csv_lines, parse_json, single_keys, tsv_lines
from ..stores.tabs import tsv_rows
from .counts import AliasCounts

_KINDS = (".tsv", ".csv", ".jsonl")
WEIGHTS = ("count", "probability")
_RATES = ("occurrences", "link_probability")
SLACK = 1e-4  # probabilities in tables are rounded

Row = tuple[int, dict[str, Any]]
Skip = Callable[[ValueError], None]  # what is done with a line that is not as expected


def count_table(path: str | Path, counts: AliasCounts, *, progress: bool = False) -> dict[str, int]:
    """Add a table's names to `counts`, and say how many rows it has. ValueError names the line that is not as
    expected."""
    path = Path(path)
    known: dict[str, list[Any]] = {}  # the name's number, sum of its weights, its rate
    columns: tuple[str, str | None] | None = None
    rows = 0
    for line, row in read_table(path, progress=progress):
        rows += 1
        try:
            columns = columns or _columns(row)
            name, entity, weight, rate = _values(row, *columns)
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from error
        if name not in known:
            known[name] = [counts.add_name(name), 0.0, rate]
        state = known[name]
        state[1] += weight
        if state[2] != rate:
            raise ValueError(
                f"{path}, line {line}: the name {name!r} has {columns[1]} {rate}, but {state[2]} in an earlier line; "
                "expected the same in all its lines."
            )
        if columns[0] == "probability" and state[1] > 1 + SLACK:
            raise ValueError(f"{path}, line {line}: the probabilities of the name {name!r} sum up to {state[1]:g}.")
        if state[0] is not None:
            counts.add_link(state[0], entity, weight)
    if columns is None:
        raise ValueError(f"{path} has no names: expected lines with name, entity and {' or '.join(WEIGHTS)}.")
    for number, total, rate in known.values():
        if number is not None:
            linked = total if columns[0] == "count" else 1.0
            counts.add_total(number, total=linked, linked=linked, occurring=_occurring(linked, rate, columns[1]))
    return {"rows": rows}


def table_kind(path: Path) -> str:
    """The suffix that says how a table is read. ValueError where it says nothing."""
    kind = Path(path.name.lower().removesuffix(".gz").removesuffix(".bz2")).suffix
    if kind not in _KINDS:
        raise ValueError(f"{path} is no XML, and its name does not say which table it is: expected one of {_KINDS}.")
    return kind


def read_table(
    path: Path,
    *,
    columns: Sequence[str] | None = None,
    progress: bool = False,
    task: str = "reading",
    skip: Skip | None = None,
) -> Iterator[Row]:
    """The rows of a table with their lines, as the first line (of .jsonl: the keys) names the columns. columns: their
    names in a .tsv or .csv that has no such line. ValueError names the line that is none; skip: gets it, and reading
    goes on."""
    kind = table_kind(path)
    if kind == ".jsonl" and columns is not None:
        raise ValueError(f"{path}: the columns of .jsonl are the keys of its objects; they cannot be named.")
    with open_source(path, progress=progress, task=task) as file:
        if kind == ".jsonl":
            yield from _read_jsonl(path, file, skip)
        elif kind == ".tsv":
            yield from _read_tsv(path, file, columns, skip)
        else:
            yield from _read_csv(path, file, columns, skip)


def _occurring(linked: float, rate: float | None, column: str | None) -> float:
    if column is None:
        return linked
    assert rate is not None
    if column == "occurrences":
        return rate
    return linked / rate if rate else float("inf")


def _columns(row: dict[str, Any]) -> tuple[str, str | None]:
    """The columns that say how often a name is linked, and how often it occurs."""
    weights, rates = [x for x in WEIGHTS if x in row], [x for x in _RATES if x in row]
    unknown = sorted(set(row) - {"name", "entity", *WEIGHTS, *_RATES})
    if unknown or not {"name", "entity"} <= set(row) or len(weights) != 1 or len(rates) > 1:
        raise ValueError(
            f"expected the columns name, entity, one of {WEIGHTS} and at most one of {_RATES}, but got {list(row)}."
        )
    return weights[0], rates[0] if rates else None


def _values(row: dict[str, Any], weight: str, rate: str | None) -> tuple[str, str, float, float | None]:
    wanted = {"name", "entity", weight, *([rate] if rate else [])}
    if set(row) != wanted:
        raise ValueError(f"expected {sorted(wanted)} as in the first line, but got {sorted(row)}.")
    for column in ("name", "entity"):
        if not isinstance(row[column], str) or not row[column].strip():
            raise ValueError(f"expected a text for {column}, but got {row[column]!r}.")
        if "\0" in row[column]:  # which a trie cannot hold
            raise ValueError(f"expected no NUL character in {column}, but got {row[column]!r}; remove it.")
    entity = " ".join(row["entity"].split())
    return (
        row["name"],
        entity,
        read_number(row, weight, zero=False),
        read_number(row, rate, zero=True) if rate else None,
    )


def read_number(row: dict[str, Any], column: str, *, zero: bool, most: float | None = None) -> float:
    """A finite number, 0 or more (above 0 without `zero`), and 1 at most of probabilities. ValueError tells what
    came."""
    value = row[column]
    try:
        number = float("nan") if isinstance(value, bool) or "_" in str(value) else float(value)
    except (TypeError, ValueError, OverflowError):  # the last one: a whole number that is too large
        number = float("nan")
    if most is None:
        most = 1 if column in ("probability", "link_probability") else float("inf")
    if not (isfinite(number) and 0 <= number <= most and (zero or number > 0)):
        low = "from 0" if zero else "above 0"
        raise ValueError(f"expected a number {low}{' to 1' if most == 1 else ''} for {column}, but got {value!r}.")
    return number


def _read_tsv(path: Path, file: BinaryIO, columns: Sequence[str] | None, skip: Skip | None) -> Iterator[Row]:
    """Only a line feed ends a line."""
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n") as lines:
        rows = (row for row in tsv_rows(tsv_lines(path, lines), len(columns or ())) if row[1])
        yield from _read_columns(path, rows, columns, skip)


def _read_csv(path: Path, file: BinaryIO, columns: Sequence[str] | None, skip: Skip | None) -> Iterator[Row]:
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as lines:
        csv.field_size_limit(CSV_FIELD)
        reader = csv.reader(csv_lines(path, lines, known=("id", "name", "names", "entity")), strict=True)
        try:
            lines_of = ((reader.line_num, fields) for fields in reader if fields)
            yield from _read_columns(path, lines_of, columns, skip)
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: not CSV ({error}).") from error


def _read_columns(
    path: Path, lines: Iterator[tuple[int, list[str]]], columns: Sequence[str] | None, skip: Skip | None
) -> Iterator[Row]:
    given = "as columns are named" if columns is not None else "as the first line has"
    if columns is None:
        _, columns = next(lines, (0, []))
    check_columns(path, columns)
    for line, fields in lines:
        if len(fields) != len(columns):
            told = f"{path}, line {line}: expected {len(columns)} fields, {given}, but got {len(fields)}."
            _refuse(ValueError(told), skip)
            continue
        yield line, dict(zip(columns, fields, strict=True))


def _refuse(error: ValueError, skip: Skip | None) -> None:
    if skip is None:
        raise error
    skip(error)


def _read_jsonl(path: Path, file: BinaryIO, skip: Skip | None) -> Iterator[Row]:
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n") as lines:
        for line, text in enumerate(lines, 1):
            if not text.strip():
                continue
            try:
                row = parse_json(text, object_pairs_hook=single_keys)
            except ValueError as error:
                _refuse(ValueError(f"{path}, line {line}: not JSON ({error})."), skip)
                continue
            if not isinstance(row, dict):
                told = f"{path}, line {line}: expected an object, but got {text.strip()[:80]!r}."
                _refuse(ValueError(told), skip)
                continue
            yield line, row
