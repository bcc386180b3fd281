"""Tables with tabs: quotes of spreadsheets, and quotes that are letters like others."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.stores.tabs import split_tabs, tsv_rows


def rows(text, width=0):
    return list(tsv_rows(io.StringIO(text, newline="\n"), width))


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ('001\t"Hammer ""Pro"""|Nagel\t"a ""b"" c"\n', ["001", '"Hammer ""Pro"""|Nagel', 'a "b" c']),
        ('"Hammer ""Pro""|Nagel"\r\n', ['Hammer "Pro"|Nagel']),
        ('5" nail\t"\t""\t"""\t""""', ['5" nail', '"', "", '"""', '"']),
        ('"Heroes" (album)\tthe "end"\t"a" or "b"\n', ['"Heroes" (album)', 'the "end"', '"a" or "b"']),
        ('"open\tclose"\n', ['"open', 'close"']),
        ("\ta\t\n", ["", "a", ""]),
        (" \t\r\n", []),
    ],
)
def test_quotes_of_a_line(line, fields):
    assert split_tabs(line) == fields
    assert rows(line) == [(1, fields)]


@given(st.lists(st.lists(st.text('ab"\r\n ', max_size=6), min_size=3, max_size=3), max_size=5))
def test_all_that_spreadsheets_quote_is_read(table):
    table = [["id", "text", "note"], *([x.replace("\r", "\r\n") for x in row] for row in table)]
    file = io.StringIO(newline="")
    csv.writer(file, delimiter="\t", quoting=csv.QUOTE_ALL).writerows(table)
    assert [fields for _, fields in rows(file.getvalue())] == table


def test_tabs_and_line_feeds_in_quotes():
    text = 'id\ttext\n1\t"No,\nnever."\n"2\n"\t"x\n""y"""\n3\t"a\tand\tb"\n\n4\tz\n'
    lines = [(2, ["1", "No,\nnever."]), (4, ["2\n", 'x\n"y"']), (7, ["3", "a\tand\tb"]), (8, []), (9, ["4", "z"])]
    assert rows(text)[1:] == lines
    assert rows(text.partition("\n")[2], 2) == [(number - 1, fields) for number, fields in lines]


@pytest.mark.parametrize(
    "text",
    [
        'id\ttext\n1\t"Oh no\n2\tsaid he."\n3\t"\n4\tend"\n',
        'form\ttag\n"\tPUNCT\nNo\tDET\n"\tPUNCT\n5"\tX\n',
        'text\n"Oh no\nsaid he."\n',
        '"a\tb\n"c\td\ne"\tf\n',
        'a\tb\n1\t"open\nbad\n\n2\tx\n',
        'a\tb\n"bad\n2\tx\n3\t"y\n',
        'a\tb\n"bad\n2\t"x"\n3\ty\n',
    ],
)
def test_quotes_that_are_letters(text):
    """Lines that are rows stay rows, whatever quotes they have."""
    found = [[field.replace('""', '"') for field in line.split("\t")] if line else [] for line in text.split("\n")[:-1]]
    found = [[x[1:-1] if len(x) > 1 and x[0] == x[-1] == '"' else x for x in row] for row in found]
    assert rows(text) == list(enumerate(found, start=1))
