"""Tables fit the terminal."""

import unicodedata

import pytest

from spacy_luke.pages.terminal import draw_table, terminal_width

HEADER = ("entity", "label", "score", "nothing", "what it is")
ROWS = [
    ("Ada Lovelace", "PER", "0.99", "", "an English mathematician and writer, who saw what a computer might be"),
    ("東京都 and its neighbours", "LOC", "1.00", "", "the capital of Japan"),
    ("É" * 3, "ORG", "0.50", "", ""),
]


def cells(line):
    return sum(0 if unicodedata.combining(x) else 2 if unicodedata.east_asian_width(x) in "WF" else 1 for x in line)


@pytest.mark.parametrize("width", [45, 60, 80, 100, 200])
def test_lines_are_no_wider(width):
    lines = draw_table(HEADER, ROWS, width=width, numbers=("score",)).split("\n")
    assert len(lines) == 2 + len(ROWS)
    assert max(map(cells, lines)) <= width
    assert ("…" in lines[2]) == (width < 120)
    assert "nothing" not in lines[0]
    for line, row in zip(lines[2:], ROWS, strict=True):
        assert row[2] in line
    right = lines[0].index("score") + len("score")
    assert lines[2][right - 4 : right] == "0.99"


def test_a_terminal_that_is_too_narrow_keeps_something():
    lines = draw_table(HEADER, ROWS, width=3).split("\n")
    assert all(row[1] in line for line, row in zip(lines[2:], ROWS, strict=True))


def test_a_file_has_a_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    assert terminal_width() == 72
