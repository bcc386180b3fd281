"""Text and JSON that others wrote: errors name the file, the place in it and what to do; and how files are named to
people."""

import codecs
import json
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

STANDARD_INPUT = Path("-")
CSV_FIELD = 1 << 26  # characters of a field of a .csv at most
_PACKED_AS = {b"\x1f\x8b": ("gzip", "gunzip"), b"BZh91AY&SY": ("bzip2", "bunzip2")}  # by how files begin
_WESTERN = "cp1252"  # latin1, too, whose further signs are control characters that no text has
_IN_QUOTES = re.compile('"[^"]*"')
_FOR_EXCEL = re.compile(r'"?sep=(.?)"?')
_ESCAPED = re.compile(r"\\x[89a-f][0-9a-f]")  # as a byte of a name that is no UTF-8 is shown


def parse_json(text: str | bytes, **settings: Any) -> Any:
    """As json.loads; also of values that are nested too deeply for it a JSONDecodeError, which is a ValueError."""
    try:
        return json.loads(text, **settings)
    except RecursionError:
        raise json.JSONDecodeError("the values are nested too deeply", "", 0) from None


def single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, as `object_pairs_hook`. ValueError where a key is there twice: the first would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(
            f"expected each key once, but {_twice([key for key, _ in pairs])!r} is there twice, in {_shown(found)}"
        )
    return found


def check_columns(path: Path | str, columns: Sequence[str]) -> None:
    """ValueError where a table has two columns of one name, of which nobody could say which is meant."""
    if len(set(columns)) < len(columns):
        raise ValueError(
            f"{path}: expected each column once, but {_twice(columns)!r} is there twice: the columns are "
            f"{list(columns[:20])}."
        )


def _shown(found: dict[str, Any]) -> str:
    text = repr(found)
    return text if len(text) <= 120 else f"{text[:120]} ..."


def _twice(names: Sequence[str]) -> str:
    return next(name for i, name in enumerate(names) if name in names[:i])


def printable_name(path: Path) -> str:
    """A path as text that can be printed, written and be an id, whatever the locale: its bytes as UTF-8, those that are
    none as \\xfc. Other paths have other names: where one could be taken for another, backslashes of its own are
    doubled. The path itself is what opens the file."""
    held = "surrogatepass" if os.name == "nt" else "surrogateescape"  # how Python holds what it cannot decode
    raw = path.as_posix().encode("utf8", held)
    name = raw.decode("utf8", "backslashreplace")
    if _ESCAPED.search(name) is None:
        return name
    return raw.replace(b"\\", b"\\\\").decode("utf8", "backslashreplace")


def read_text(path: Path) -> str:
    """A whole file in UTF-8, its line ends as they are. ValueError names the byte that is not."""
    return decode_text(path.read_bytes(), path)


def read_lines(path: Path) -> list[str]:
    """As `read_text`, and `split_lines` of it."""
    return split_lines(read_text(path))


def split_lines(text: str) -> list[str]:
    """Lines without their ends: only \\n and \\r\\n end them, so that other line separators may stand in words."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def decode_text(raw: bytes, name: Path | str) -> str:
    """The text of a whole file, as `read_text` gives it."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name}, line {line}: {not_utf8(error, name)}") from None


def read_plain_text(path: Path) -> str:
    """As `read_text`, of a text for people; Path("-"): standard input. ValueError for a PDF, too."""
    standard = path == STANDARD_INPUT
    raw, name = (sys.stdin.buffer.read(), "standard input") if standard else (path.read_bytes(), path)
    if raw.startswith(b"%PDF-"):
        raise ValueError(f"{name}: expected text, but it is a PDF. Extract its text, such as by pdftotext.")
    return decode_text(raw, name)


def read_object(path: Path, **settings: Any) -> dict[str, Any]:
    """The object of a JSON file. settings: see `parse_json`. ValueError where the file holds anything else."""
    try:
        data = parse_json(read_text(path), **settings)
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} must hold a JSON object, but it holds a {type(data).__name__}.")
    return data


def csv_lines(path: Path | str, lines: Iterable[str], *, known: Collection[str]) -> Iterator[str]:
    """The lines of a .csv. ValueError where semicolons are between its columns, as some spreadsheets write them, and
    where the first line says what is between them, to Excel. known: columns of which there is at least one."""
    for number, line in enumerate(lines):
        if number == 0 and (said := _FOR_EXCEL.fullmatch(line.strip())):
            save = "" if said[1] == "," else ", and save it with commas, or with tabs as .tsv"
            raise ValueError(
                f"{path}: expected the names of the columns in the first line of a .csv, but it is {line.strip()!r}, "
                f"which only Excel reads. Remove this line{save}."
            )
        columns = [x.strip(' "\r\n') for x in line.split(";")] if number == 0 and "," not in line else []
        if len(columns) > 1 and not set(columns).isdisjoint(known):
            raise ValueError(
                f"{path}: expected commas between the columns of a .csv, but its first line is {line.strip()!r:.200}. "
                "Save it with commas, or with tabs as .tsv."
            )
        yield line


def tsv_lines(path: Path | str, lines: Iterable[str]) -> Iterator[str]:
    """The lines of a .tsv. ValueError where its first one has a carriage return outside of quotes: see
    `check_line_end`."""
    for number, line in enumerate(lines, 1):
        if number == 1:
            check_line_end(path, number, _IN_QUOTES.sub("", line))
        yield line


def check_line_end(path: Path | str, number: int, line: str) -> None:
    """ValueError where a line, with or without its end, has a carriage return inside: there line feeds end no lines."""
    if "\r" in line.rstrip("\r\n"):
        raise ValueError(
            f"{path}, line {number}: expected a line feed at the end of each line, but here is a carriage return "
            rf"alone, as old Macs wrote it: {line[:40]!r}. Convert it, such as by tr '\r' '\n' < {path} > NEW."
        )


def not_utf8(error: UnicodeDecodeError, path: Path | str) -> str:
    """What is wrong and what to do, of a file or a part of it that was decoded."""
    begins = error.object[: error.start + 2]
    if error.object.startswith(b"PK\x03\x04"):
        return "expected text in UTF-8, but it is a zip archive, as .docx, .odt and .xlsx are: save it as text."
    for start, (kind, unpack) in _PACKED_AS.items():
        if begins.startswith(start):
            return f"expected text in UTF-8, but it is packed by {kind}. Unpack it by {unpack} -c {path} > NEW."
    coding = "utf16" if begins.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else _WESTERN
    return (
        f"expected UTF-8, but byte {error.start} is {error.object[error.start]:#04x} ({error.reason}). Convert it "
        f"from what it is in, such as by iconv -f {coding} -t utf8 {path} > NEW."
    )
