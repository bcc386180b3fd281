"""The formats of inputs, a function each: text, a text a line, JSON lines, tables, and Docs.

A record that cannot be read becomes an `UnreadText`, and the next one is read; what makes a whole file unreadable is a
ValueError.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from spacy.vocab import Vocab

from ..annotations import get_document_fields, get_document_id
from ..readers.docbin import read_docbins
from ..stores.plain_text import CSV_FIELD, check_columns, csv_lines, not_utf8, parse_json, single_keys, tsv_lines
from ..stores.tabs import tsv_rows
from .given_texts import InputItem, UnreadText, as_item, unread_record

MOST_BYTES = 1 << 26  # of a line; a longer one is not held in memory
_ASKED = ("questions", "queries")  # fields of JSON lines


class InputFields(NamedTuple):
    """Names of the fields, or columns, of a record; id may be missing. others: that go along, None: all."""

    text: str = "text"
    id: str = "id"
    others: tuple[str, ...] | None = None

    def along(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """What goes along with the text of a record."""
        if self.others is not None:
            return {name: record[name] for name in self.others if name in record}
        return {name: value for name, value in record.items() if name not in (self.text, self.id, *_ASKED)}


def read_whole(file: BinaryIO, name: str, fields: InputFields) -> Iterator[InputItem]:
    """One text, whose id is the file's name."""
    raw = file.read()
    try:
        yield as_item(raw.decode("utf-8-sig"), name, name)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        yield UnreadText(name, name, f"expected UTF-8, but line {line} is not ({error.reason}).")


def read_each_line(file: BinaryIO, name: str, fields: InputFields) -> Iterator[InputItem]:
    """A text a line; blank lines are none."""
    for place, line in _lines(file, name):
        yield line if isinstance(line, UnreadText) else as_item(line, None, place)


def read_json_texts(file: BinaryIO, name: str, fields: InputFields) -> Iterator[InputItem]:
    """Objects with a text, and perhaps an id, "questions", "queries" and other fields."""
    for place, line in _lines(file, name):
        if isinstance(line, UnreadText):
            yield line
            continue
        try:
            data = parse_json(line, object_pairs_hook=single_keys)
        except ValueError as error:
            yield UnreadText(place, place, f"expected a JSON object, but {line[:60]!r} is none: {error}.")
            continue
        if not isinstance(data, dict) or fields.text not in data:
            id, came = (data.get(fields.id), sorted(data)) if isinstance(data, dict) else (None, f"{line[:60]!r}")
            yield unread_record(id, place, f"expected a JSON object with {fields.text!r}, but it is {came}.")
            continue
        asked = {what: data.get(what) for what in _ASKED}
        yield as_item(data[fields.text], data.get(fields.id), place, **asked, fields=fields.along(data))


def read_commas(file: BinaryIO, name: str, fields: InputFields) -> Iterator[InputItem]:
    with _table_lines(file, name, newline="") as lines:
        known = (fields.text, fields.id)
        yield from _read_table(_comma_rows(csv_lines(name, lines, known=known)), name, fields)


def read_tabs(file: BinaryIO, name: str, fields: InputFields) -> Iterator[InputItem]:
    with _table_lines(file, name, newline="\n") as lines:
        yield from _read_table((row for _, row in tsv_rows(tsv_lines(name, lines))), name, fields)


def read_docs(path: Path, name: str, fields: InputFields) -> Iterator[InputItem]:
    """Docs as they are, with their words and annotation; their own ids are in `doc.user_data["id"]`, fields that go
    along in `doc.user_data["luke_fields"]`."""
    vocab = Vocab()
    try:
        for number, doc in enumerate(read_docbins(path, vocab)):
            place = f"{name}:{number}"
            others = fields.along(get_document_fields(doc))
            item = as_item(doc.text, get_document_id(doc), place, fields=others)
            yield item if isinstance(item, UnreadText) else item._replace(doc=doc.to_bytes())
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ValueError(f"{name} is no file of Docs (DocBin): {type(error).__name__}: {error}") from error


def read_parquet(path: Path, name: str, fields: InputFields) -> Iterator[InputItem]:
    """Rows of a table of Parquet, which the extra `parquet` reads."""
    parquet = import_parquet()
    from pyarrow import ArrowException

    try:
        with parquet.ParquetFile(path) as table:
            columns = _columns(name, table.schema_arrow.names, fields)
            number = 0
            for batch in table.iter_batches(batch_size=1000, columns=columns):
                for row in batch.to_pylist():
                    place, others = f"{name}:{number}", fields.along(row)
                    yield as_item(row[fields.text], row.get(fields.id), place, fields=others)
                    number += 1
    except (OSError, ArrowException) as error:
        raise ValueError(f"{name} is no whole Parquet file: {error}") from error


def import_parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("Parquet needs the package pyarrow: pip install 'spacy-luke[parquet]'.") from error
    return parquet


ByLines = Callable[[BinaryIO, str, InputFields], Iterator[InputItem]]
ByPlaces = Callable[[Path, str, InputFields], Iterator[InputItem]]
BY_LINES: dict[str, ByLines] = {
    "text": read_whole,
    "lines": read_each_line,
    "jsonl": read_json_texts,
    "csv": read_commas,
    "tsv": read_tabs,
}
BY_PLACES: dict[str, ByPlaces] = {"parquet": read_parquet, "spacy": read_docs}  # neither packed nor piped


def _lines(file: BinaryIO, name: str) -> Iterator[tuple[str, str | UnreadText]]:
    """Places and lines that are not blank, without their ends."""
    number = 0
    while raw := file.readline(MOST_BYTES + 1):
        number += 1
        place = f"{name}:{number}"
        if len(raw) > MOST_BYTES:
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(MOST_BYTES)
            yield place, UnreadText(place, place, f"expected a line of at most {MOST_BYTES:,} bytes; this is longer.")
            continue
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            yield place, UnreadText(place, place, f"expected UTF-8, but got {raw[:60]!r} ({error.reason}).")
            continue
        if line.strip():
            yield place, line


@contextmanager
def _table_lines(file: BinaryIO, name: str, *, newline: str) -> Iterator[Iterator[str]]:
    """The lines of a table, whose file stays open. ValueError where the first one is no UTF-8."""
    csv.field_size_limit(CSV_FIELD)
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline=newline)
    try:
        first = text.readline()
        if told := _wrong_bytes(first, name):
            raise ValueError(f"{name}, line 1: {told}")
        yield chain([first], text)
    finally:
        text.detach()


def _comma_rows(lines: Iterable[str]) -> Iterator[list[str] | str]:
    """The rows of a .csv; in the place of one that is none, for each of its lines, what is wrong: a quote that is not
    closed takes other lines along."""
    reader = csv.reader(lines, strict=True)
    while True:
        before = reader.line_num
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            first, last = before + 1, reader.line_num
            others = (
                f": the lines {first} to {last} are lost, as a quote that opens in one of them is not closed. Close "
                "it, and double the quotes that are part of a text"
            )
            yield from repeat(f"{error}{others if last > first else ''}", last - before)


def _read_table(rows: Iterator[list[str] | str], name: str, fields: InputFields) -> Iterator[InputItem]:
    """Rows under a line with the names of the columns. A place is a row, the first one 1: a row may have many lines."""
    header = next(rows, [])
    if isinstance(header, str):
        raise ValueError(f"{name}: expected a first line with the names of the columns, but {header}.")
    kept = _columns(name, header, fields)
    for number, row in enumerate(rows, 1):
        place = f"{name}:{number}"
        if isinstance(row, str):
            yield UnreadText(place, place, f"expected a row of a table, but {row}.")
            continue
        if row and len(row) != len(header):
            told = f"expected {len(header)} columns, as in the first line, but this row has {len(row)}."
            yield UnreadText(place, place, told)
            continue
        if not row:  # a blank line
            continue
        data = dict(zip(header, row, strict=True))
        if wrong := [(column, told) for column in kept if (told := _wrong_bytes(data[column], name))]:
            column, told = wrong[0]
            yield unread_record(data.get(fields.id), place, f"column {column!r}: {told}")
            continue
        yield as_item(data[fields.text], data.get(fields.id), place, fields=fields.along(data))


def _columns(name: str, header: list[str], fields: InputFields) -> list[str]:
    """Those that are read."""
    check_columns(name, header)
    if fields.text not in header:
        raise ValueError(
            f"{name}: expected a column {fields.text!r} with the texts, but the columns are {header[:20]}. Say which "
            "by --text-field."
        )
    if missing := [x for x in fields.others or () if x not in header]:
        raise ValueError(f"{name}: expected the columns {missing} of --fields, but the columns are {header[:20]}.")
    others = header if fields.others is None else fields.others
    return [x for x in dict.fromkeys((fields.text, fields.id, *others)) if x in header]


def _wrong_bytes(text: str, name: str) -> str:
    """What is wrong with bytes that are no UTF-8, which `surrogateescape` has kept; "" where all are."""
    if not text.isascii():
        try:
            text.encode("utf8", "surrogateescape").decode()
        except UnicodeDecodeError as error:
            return not_utf8(error, name)
    return ""
