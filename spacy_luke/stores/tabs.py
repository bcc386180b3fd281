"""Rows of tables with tabs (.tsv), as Excel and pandas write them and as people do who quote nothing.

A field that begins and ends with a quote, with all quotes between them doubled, is what stands between, as in .csv. Any
other field is as it is: `5" nail`, `"Heroes" (album)`. A line with as many fields as the table has columns is a row.
Tabs and line feeds are parts of a field in such quotes where the lines would be no rows otherwise: of a line with more
fields than columns, or with fewer or an open quote in the last one, and those that follow.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator

from .plain_text import CSV_FIELD

_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)"')
_CLOSES = re.compile(r'(?<!")(?:"")*"[\t\r\n]')
_MOST_LINES = 10_000  # of a row
_OPEN: list[str] = []


def tsv_rows(lines: Iterable[str], width: int = 0) -> Iterator[tuple[int, list[str]]]:
    """The fields of each row, with the number of its first line; of a blank line none. lines: with their ends. width:
    number of columns; 0: as many as the first line has."""
    held: list[str] = []  # what may be a row, as a quote is open
    whole, number = False, 0  # whole: the first line that is held has as many fields as there are columns
    for number, line in enumerate(lines, start=1):
        fields = split_tabs(line)
        if held and len(held) < _MOST_LINES and not (whole and len(fields) >= width):
            held.append(line)
            row = _one_row("".join(held), width) if _CLOSES.search(f"{line}\n") else _OPEN
            if row is _OPEN:
                continue
            if row:
                yield number - len(held) + 1, row
                held = []
                continue
            held.pop()
        yield from enumerate(map(split_tabs, held), start=number - len(held))
        held = []
        width = width or len(fields)
        if len(fields) > width and (row := _one_row(line, width)):
            yield number, row
        elif '"' in line and len(fields) <= width and _one_row(line, width) is _OPEN:
            held, whole = [line], len(fields) == width
        else:
            yield number, fields
    yield from enumerate(map(split_tabs, held), start=number - len(held) + 1)


def split_tabs(line: str) -> list[str]:
    """The fields of a line with tabs between them, with or without its end, whose quotes are none where it has line
    feeds; [] for a blank line."""
    if not line.strip():
        return []
    if '"' not in line:
        return _parts(line)
    found = ((part, _QUOTED.fullmatch(part)) for part in _parts(line))
    return [match[1].replace('""', '"') if match else part for part, match in found]


def _parts(line: str) -> list[str]:
    return line.rstrip("\r\n").split("\t")


def _one_row(text: str, width: int) -> list[str]:
    """The fields of a row whose quotes are those of .csv: [] where it is none of so many fields, _OPEN where its last
    quote is open."""
    csv.field_size_limit(CSV_FIELD)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True))
    except csv.Error as error:
        return _OPEN if "unexpected end" in str(error) else []
    return rows[0] if len(rows) == 1 and len(rows[0]) == width else []
