"""Tables of MediaWiki's SQL dumps (`page.sql`, `langlinks.sql`, plain, .gz or .bz2): rows of their INSERT statements.

    INSERT INTO `langlinks` VALUES (7,'de','Ada Lovelace'),(7,'fr','L\\'Ada');

A line is a statement of up to some MB, and is read as one.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ..stores.opening import open_source

_ROW = re.compile(r"\((?:[^()'\\]|'(?:[^'\\]|\\.)*')*\)", re.DOTALL)
_VALUE = re.compile(r"'((?:[^'\\]|\\.)*)'|([^,()']+)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "Z": "\x1a"}
Row = tuple[str, ...]


def read_rows(path: Path, table: str, *, progress: bool = False) -> Iterator[Row]:
    """The values of each row, as texts. ValueError where the file has no rows of the table, or a line is damaged."""
    begin = f"INSERT INTO `{table}` VALUES "
    found = False
    with open_source(path, progress=progress, task=f"{table} of") as file:
        for number, data in enumerate(file, 1):
            line = data.decode("utf8", errors="replace")
            if not line.startswith(begin):
                continue
            found, at = True, len(begin)
            while (row := _ROW.match(line, at)) is not None:
                yield _values(row[0][1:-1])
                at = row.end()
                if line[at : at + 1] != ",":
                    break
                at += 1
            if line[at:].rstrip() != ";":
                raise ValueError(
                    f"{path}, line {number}: expected rows of `{table}` up to a semicolon, but at character {at} is "
                    f"{line[at : at + 60]!r}. The file is damaged: download it again."
                )
    if not found:
        raise ValueError(f"{path}: expected a dump of MediaWiki's table `{table}`, but it has no {begin!r}.")


def _values(text: str) -> Row:
    return tuple(
        _ESCAPE.sub(lambda x: _ESCAPED.get(x[1], x[1]), quoted) if plain == "" else plain
        for quoted, plain in _VALUE.findall(text)
    )
