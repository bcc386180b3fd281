"""Tables for a terminal: as wide as it is, and never wider."""

import shutil
import unicodedata
from collections.abc import Sequence

_GAP = "  "
_LEAST = 8  # characters that a column keeps however narrow the terminal is


def terminal_width() -> int:
    """Characters in a line; 100 where the output goes to a file."""
    return shutil.get_terminal_size((100, 24)).columns


def draw_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, width: int, numbers: Sequence[str] = ()) -> str:
    """Lines of a table. Columns without any text are left out; where a line would be longer than `width` characters,
    texts in the widest columns end in "…". numbers: names of the columns that stand at the right."""
    columns = [i for i in range(len(header)) if any(row[i] for row in rows)]
    cells = [[header[i] for i in columns], *([row[i] for i in columns] for row in rows)]
    sizes = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    least = [min(size, _LEAST) for size in sizes]
    while sum(sizes) + len(_GAP) * (len(sizes) - 1) > width and sizes != least:
        widest = max(range(len(sizes)), key=lambda i: sizes[i] - least[i])
        sizes[widest] -= 1
    right = [header[i] in numbers for i in columns]
    lines = [_line(row, sizes, right) for row in cells]
    return "\n".join([lines[0], _GAP.join("─" * size for size in sizes), *lines[1:]])


def _line(row: Sequence[str], sizes: Sequence[int], right: Sequence[bool]) -> str:
    cells = []
    for cell, size, at_right in zip(row, sizes, right, strict=True):
        shown = _cut(cell, size)
        blanks = " " * (size - _width(shown))
        cells.append(blanks + shown if at_right else shown + blanks)
    return _GAP.join(cells).rstrip()


def _cut(text: str, size: int) -> str:
    if _width(text) <= size:
        return text
    kept = text
    while _width(kept) > size - 1:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def _width(text: str) -> int:
    """Characters of a terminal's line: wide ones of East Asia take two, what is put upon others none."""
    return sum(0 if unicodedata.combining(x) else 2 if unicodedata.east_asian_width(x) in "WF" else 1 for x in text)
