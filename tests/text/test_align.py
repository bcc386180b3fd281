import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.text import tokenizer as tokenizer_module
from spacy_luke.text.align import align_text, align_words, has_blank, is_punctuation
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.text.hard_texts import HARD, texts


@st.composite
def texts_with_words(draw):
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=20)))
    spans = list(zip(cuts, cuts[1:], strict=False))
    keep = [span for span in spans if draw(st.integers(0, 3)) and span[0] < span[1]]
    return text, [start for start, _ in keep], [end for _, end in keep]


def plain_pieces_of(tokenizer, text, start, end):
    """The plain twin of align_text: look at every piece."""
    ids, starts, ends = tokenizer.encode(text)
    spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
    mine = {n for n, (a, b) in enumerate(spans) if a < end and b > start}
    before = min(mine, default=0) - 1
    if before >= 0 and spans[before][1] == start and not text[start].isspace():
        held = text[slice(*spans[before])]
        if held == " " or (held.isspace() and tokenizer.kind == "unigram"):
            mine.add(before)
    return mine


@given(case=texts_with_words())
def test_align_text_equals_a_plain_loop(tokenizer, case):
    text, starts, ends = case
    pieces = align_text(tokenizer, text, starts, ends)
    assert pieces.ids_N.tolist() == tokenizer.encode(text)[0].tolist()
    assert pieces.first_W.dtype == pieces.last_W.dtype == np.int64
    assert (np.diff(pieces.first_W) >= 0).all()
    assert (np.diff(pieces.last_W) >= 0).all()
    assert ((0 <= pieces.first_W) & (pieces.first_W <= pieces.last_W) & (pieces.last_W <= len(pieces.ids_N))).all()
    for w, (start, end) in enumerate(zip(starts, ends, strict=True)):
        assert set(range(pieces.first_W[w], pieces.last_W[w])) == plain_pieces_of(tokenizer, text, start, end)


@pytest.mark.parametrize("text", HARD)
def test_align_hard_texts_by_characters(tokenizer, text):
    """Each character a word: the most that a word boundary can ask for."""
    places = np.arange(len(text))
    pieces = align_text(tokenizer, text, places, places + 1)
    assert (np.diff(pieces.first_W) >= 0).all()
    assert (np.diff(pieces.last_W) >= 0).all()
    held = {p for a, b in zip(pieces.first_W, pieces.last_W, strict=True) for p in range(a, b)}
    assert held == set(range(len(pieces.ids_N)))


def test_words_with_no_pieces_and_shared_pieces(folders):
    tokenizer = PieceTokenizer.from_folder(folders["wordpiece"])
    text = "live \u200b  in\x00g"
    pieces = align_text(tokenizer, text, [0, 5, 7, 8, 9, 10], [4, 6, 8, 9, 10, 12])
    spans = list(zip(pieces.first_W.tolist(), pieces.last_W.tolist(), strict=True))
    assert spans == [(0, 1), (1, 1), (1, 1), (1, 2), (2, 3), (3, 4)]


def test_a_blank_alone_belongs_to_the_word_after_it(folders):
    tokenizer = PieceTokenizer.from_folder(folders["byte_bpe"])
    text = "a \ua66e"
    ids, starts, ends = tokenizer.encode(text)
    assert (starts[1], ends[1]) == (1, 2)
    pieces = align_text(tokenizer, text, [0, 2], [1, 3])
    assert (pieces.first_W.tolist(), pieces.last_W.tolist()) == ([0, 1], [1, len(ids)])


def test_align_empty(tokenizer):
    for pieces in (align_text(tokenizer, "", [], []), align_words(tokenizer, [])):
        assert len(pieces.ids_N) == len(pieces.first_W) == len(pieces.last_W) == 0
    pieces = align_text(tokenizer, " ", [0], [1])
    assert pieces.last_W[0] == len(pieces.ids_N)


@pytest.mark.parametrize(
    ("starts", "ends", "message"),
    [
        ([0, 2], [3, 4], r"word 1 is \[2, 4\) after \[0, 3\)"),
        ([0, 2], [1, 9], r"text of 5 characters, but word 1 is \[2, 9\)"),
        ([3], [2], r"word 0 is \[3, 2\)\."),
        ([-1], [2], "word 0"),
        ([0, 1], [1], "as many word ends as starts"),
    ],
)
def test_wrong_offsets(tokenizer, starts, ends, message):
    with pytest.raises(ValueError, match=message):
        align_text(tokenizer, "hello", starts, ends)


@given(words=st.lists(texts, max_size=8))
def test_align_words_encodes_each_word_alone(tokenizer, words):
    pieces = align_words(tokenizer, words)
    at = 0
    for w, word in enumerate(words):
        text = " " + word if tokenizer.kind == "byte_bpe" and has_blank(word) else word
        expected = tokenizer.encode(text)[0].tolist()
        assert (pieces.first_W[w], pieces.last_W[w]) == (at, at + len(expected))
        assert pieces.ids_N[at : at + len(expected)].tolist() == expected
        at += len(expected)
    assert at == len(pieces.ids_N)


def test_word_cache_is_bounded(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer_module, "CACHED_WORDS", 3)
    words = [f"a{n}" for n in range(10)]
    first = align_words(tokenizer, words)
    assert len(tokenizer.word_pieces) <= 3
    assert align_words(tokenizer, words).ids_N.tolist() == first.ids_N.tolist()


@pytest.mark.parametrize(
    ("word", "blank"),
    [("the", True), ("'s", False), ("'", False), (",", False), ("—", False), ("$", False), ("...", True), ("€", True),
     ("", False), (" ", False), ("\nx", False), ("«", False), ("-LRB-", True)],
)  # fmt: skip
def test_blank_before_a_word(word, blank):
    assert has_blank(word) is blank


def test_is_punctuation():
    assert all(map(is_punctuation, "!$+<=>^`|~,.;—”¿、"))
    assert not any(map(is_punctuation, "aé1€° \n\x00東"))


def test_very_long_words(tokenizer):
    word = "xylophone" * 6000
    pieces = align_words(tokenizer, ["a", word, "b"])
    assert pieces.last_W[2] == len(pieces.ids_N)
    expected = 1 if tokenizer.kind == "wordpiece" else 5000
    assert pieces.last_W[1] - pieces.first_W[1] >= expected
    assert (align_text(tokenizer, word, [0], [len(word)]).last_W == [pieces.last_W[1] - pieces.first_W[1]]).all()
