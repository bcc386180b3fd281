"""Pieces of passages, questions and marked texts, against plain twins that tokenise word by word."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.text.passages import encode_as_written, encode_passage, encode_query, encode_question, mark_candidates
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.tiny import SENTENCES, make_wordpiece, tokenizer_json

TOKENIZERS = {"byte_bpe": PieceTokenizer.from_json(tokenizer_json()), "wordpiece": make_wordpiece()}
TEXTS = [
    *SENTENCES,
    "",
    " \n\t ",
    "Ada",
    " Ada  Lovelace\n\nlived\tin London . ",
    "(Ghana) \u202fBank\u00a0of 日本 é e\u0301 👩‍🔬!",
]
HIGHLIGHT = "@highlight"
MARKER, STAR, GAP = 7, 8, 9  # any pieces


def ids(tokenizer, text, *, blank=True):
    prefix = " " if blank and tokenizer.kind == "byte_bpe" and text and not text[0].isspace() else ""
    return tokenizer.encode(prefix + text)[0].tolist()


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("text", TEXTS)
def test_passage_is_its_words(kind, text):
    """Each word with a blank before it, whatever whitespace the text has, as the original code reads it."""
    tokenizer = TOKENIZERS[kind]
    passage = encode_passage(tokenizer, text)
    words = [match.span() for match in re.finditer("[^ \t\r\n\u202f]+", text)]
    assert passage.ids_N.tolist() == [x for a, b in words for x in ids(tokenizer, text[a:b])]
    for a, b in words:
        first, last = passage.place(a, b)
        assert passage.ids_N[first:last].tolist() == ids(tokenizer, text[a:b])
    for start, end in zip(passage.starts_N.tolist(), passage.ends_N.tolist()):
        assert any(a <= start <= end <= b for a, b in words)


@given(text=st.text(alphabet="Ada Lond\n\t\u00a0é日'.,(", max_size=40), kind=st.sampled_from(list(TOKENIZERS)))
def test_every_character_has_its_piece(text, kind):
    passage = encode_passage(TOKENIZERS[kind], text)
    starts, ends = passage.starts_N, passage.ends_N
    assert min(np.diff(starts).min(initial=0), np.diff(ends).min(initial=0), (ends - starts).min(initial=0)) >= 0
    held = {i for a, b in zip(starts.tolist(), ends.tolist()) for i in range(a, b)}
    assert {i for i, char in enumerate(text) if not char.isspace()} <= held
    for i in sorted(held):
        first, last = passage.place(i, i + 1)
        assert any(starts[k] <= i < ends[k] for k in range(first, last))


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("text", ["Who lived in London?", " Who?", "Who  came\nhere ?", "x"])
def test_question(kind, text):
    tokenizer = TOKENIZERS[kind]
    question = encode_question(tokenizer, text)
    assert question.ids_N.tolist() == ids(tokenizer, text)
    start = text.index("W") if "W" in text else 0
    assert question.place(start, start + 1)[0] <= 1
    assert question.ends_N[-1] == len(text)


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("text", TEXTS)
def test_as_written(kind, text):
    """All pieces of the text and no others; blanks alone stand where the next word begins."""
    passage = encode_as_written(TOKENIZERS[kind], text)
    assert passage.ids_N.tolist() == ids(TOKENIZERS[kind], text, blank=False)
    held = [text[a:b] for a, b in zip(passage.starts_N.tolist(), passage.ends_N.tolist())]
    assert not any(part.isspace() for part in held)
    for match in re.finditer("[a-zA-Z]{2,}", text):
        first, last = passage.place(*match.span())
        assert "".join(held[first:last]) == match[0]


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize(
    "query", ["@placeholder lived in\nLondon", "In London, @placeholder's house", "Ada saw @placeholder"]
)
def test_query(kind, query):
    tokenizer = TOKENIZERS[kind]
    pieces, place = encode_query(tokenizer, query, placeholder="@placeholder", piece=GAP)
    before, after = query.replace("\n", " ").split("@placeholder")
    expected = [*ids(tokenizer, before.rstrip()), GAP, *ids(tokenizer, after.rstrip(), blank=False)]
    assert (pieces.tolist(), place) == (expected, expected.index(GAP))


def plain_marks(tokenizer, text, candidates):
    """A twin for candidates that do not overlap: stretch after stretch."""
    text, pieces, done, places = text.replace("\n", " "), [], 0, {}

    def add(start, end):
        for i, part in enumerate(text[start:end].split(HIGHLIGHT)):
            pieces.extend([STAR] if i else [])
            pieces.extend(ids(tokenizer, part.rstrip(), blank=not i and (start == 0 or text[start - 1] == " ")))

    for start, end in sorted(set(candidates)):
        add(done, start)
        first = len(pieces)
        pieces.append(MARKER)
        add(start, end)
        pieces.append(MARKER)
        places[start, end], done = (first, len(pieces)), end
    add(done, len(text))
    return pieces, [places[x] for x in candidates]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_marked_candidates(kind):
    tokenizer = TOKENIZERS[kind]
    text = "Ada Lovelace lived in London.\n@highlight\nLovelace's house @highlight"
    candidates = [(22, 28), (0, 12), (41, 49), (22, 28)]
    assert [text[a:b] for a, b in candidates] == ["London", "Ada Lovelace", "Lovelace", "London"]
    marked = mark_candidates(tokenizer, text, candidates, marker=MARKER, highlight=HIGHLIGHT, highlight_piece=STAR)
    expected, places = plain_marks(tokenizer, text, candidates)
    assert marked.ids_N.tolist() == expected
    assert list(zip(marked.first_C.tolist(), marked.last_C.tolist())) == places
    assert marked.ids_N.tolist().count(STAR) == 2
    for first, last in places:
        assert marked.ids_N[first] == marked.ids_N[last - 1] == MARKER


def test_candidates_inside_one_another():
    tokenizer = TOKENIZERS["byte_bpe"]
    text = "Bank of Ghana"
    marked = mark_candidates(
        tokenizer, text, [(8, 13), (0, 13), (0, 4)], marker=MARKER, highlight=HIGHLIGHT, highlight_piece=STAR
    )
    bank, of, ghana = (ids(tokenizer, word) for word in text.split())
    assert marked.ids_N.tolist() == [MARKER, MARKER, *bank, MARKER, *of, MARKER, *ghana, MARKER, MARKER]
    spans = [marked.ids_N[a:b].tolist() for a, b in zip(marked.first_C, marked.last_C)]
    assert spans == [[MARKER, *ghana, MARKER], marked.ids_N.tolist(), [MARKER, *bank, MARKER]]
