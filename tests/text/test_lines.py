"""Where sentences begin, by lines and full stops."""

import pytest
import spacy

from spacy_luke.text.lines import line_starts, sentence_starts

NLP = spacy.blank("en")
WRAPPED = """The museum on the old harbour was closed for the whole of the winter of
Two Thousand and Nine, when the Royal Society of Arts, the owner of the
House of Lords Library, could not pay for its heating."""


def begin(text, *, lines=False):
    """The lines, or sentences, of a text, without white space around them."""
    doc = NLP.make_doc(text)
    words, spaces = [word.text for word in doc], [bool(word.whitespace_) for word in doc]
    starts = line_starts(words, spaces) if lines else sentence_starts(words, spaces, full_stops={".", "!", "?"})
    return [doc[a:b].text.strip() for a, b in zip(starts, [*starts[1:], len(doc)])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One line\n\nanother one", ["One line", "another one"]),  # a blank line always ends it
        ("One line\r\n \t\r\nanother one", ["One line", "another one"]),
        ("One line\fanother one", ["One line", "another one"]),
        ("One line\u2029another one", ["One line", "another one"]),
        ("Early life\nAda was born in London.", ["Early life", "Ada was born in London."]),  # headings
        ("FLOODS IN COIMBRA\nCrews stacked sandbags along the river.", None),
        (
            "We need:\n- milk\n- bread from\n  Aarhus\n* salt",
            ["We need:", "- milk", "- bread from\n  Aarhus", "* salt"],
        ),
        ("1. Ada\n2) Kofi\n(3) Nadia\na) Berlin", ["1. Ada", "2) Kofi", "(3) Nadia", "a) Berlin"]),
        ("Name\tCity\nAda\tLondon\nKofi\tAccra", ["Name\tCity", "Ada\tLondon", "Kofi\tAccra"]),  # tables
        ("| Name | City |\n|---|---|\n| Ada | London |", ["| Name | City |", "|---|---|", "| Ada | London |"]),
        ("Title\n=====\nbody", ["Title", "=====", "body"]),
        ("Ada Lovelace\n12 St James's Square\nLondon", ["Ada Lovelace", "12 St James's Square", "London"]),  # addresses
        ("so happy\n@ada is back\n#London", ["so happy", "@ada is back", "#London"]),  # tweets
        ("we saw the bank of\nghana", ["we saw the bank of\nghana"]),  # it goes on with a small letter
        ("", []),
        (" \n\n ", []),
        ("\n\nAda", ["Ada"]),
    ],
)
def test_lines(text, expected):
    assert begin(text, lines=True) == (text.split("\n") if expected is None else expected)


def test_text_that_is_broken_to_a_width_stays_whole():
    assert begin(WRAPPED, lines=True) == [WRAPPED]
    assert begin(WRAPPED.replace("\n", "\r\n"), lines=True) == [WRAPPED.replace("\n", "\r\n")]
    assert len(begin(f"Winter of 2009\n{WRAPPED}\n\n{WRAPPED}", lines=True)) == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He left. She came!", ["He left.", "She came!"]),
        ('"He left." She said so.', ['"He left."', "She said so."]),
        ('He left. "Why?" she asked.', ["He left.", '"Why?"', "she asked."]),
        ("He left (alone.) Then what?!\n\nNothing", ["He left (alone.)", "Then what?!", "Nothing"]),
        ("1. Ada went to London\n2. She stayed. Kofi left", ["1. Ada went to London", "2. She stayed.", "Kofi left"]),
        ("U.S. troops left.\n- one\n- two", ["U.S. troops left.", "- one", "- two"]),
    ],
)
def test_sentences(text, expected):
    assert begin(text) == expected


def test_nothing_is_cut_inside_a_word():
    """A tokenizer may leave line breaks in words."""
    assert line_starts(["Ada\n\nLovelace", "left"], [True, False]) == [0]
