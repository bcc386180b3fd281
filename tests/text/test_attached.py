"""Punctuation that is attached to words, and the pieces of words without it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.text.align import align_words
from spacy_luke.text.attached import attached, cores_of, may_have
from tests.text.hard_texts import texts

KEPT = frozenset(["Inc.", "Mich.", "'s"])
CORES = {
    "Boise.": "Boise", "(AP)": "AP", "Ulm),": "Ulm", "Ada's": "Ada", "ADA'S,": "ADA", "“Ada’s”": "Ada",
    "Giants'": "Giants",
    "Inc.": "Inc.", "Inc.,": "Inc.", "(Mich.)": "Mich.", "D.C.": "D.C.", "D.C.)": "D.C.", "J.": "J.", "J.,": "J.",
    "f(x)": "f(x)", "(f(x))": "f(x)", "O'Neil": "O'Neil", "AT&T": "AT&T", "C++": "C++", "3.5": "3.5", "1,000.": "1,000",
    "#AP": "#AP", "'s": "'s", "...": "...", "'": "'", "¿Qué?": "Qué", "Ü.": "Ü.", "x": "x",
    "Bogota\u0301.": "Bogota\u0301", "Paris\u200b.": "Paris", "Ulm\u00ad": "Ulm", "\u200fחיפה.": "חיפה",
    "a\u200db": "a\u200db", "दिल्ली,": "दिल्ली", "दिल्ली।": "दिल्ली", "القاهرة،": "القاهرة", "Երևան։": "Երևան",
    "東京、": "東京", "「東京」": "東京", "காபி.": "காபி",
    "„Ulm“": "Ulm", "《红楼梦》": "红楼梦", "צה״ל": "צה״ל",
}  # fmt: skip


@pytest.mark.parametrize(("word", "core"), CORES.items())
def test_core(word, core):
    head, tail = attached(word, KEPT)
    assert word[head : len(word) - tail] == core


@given(word=texts)
def test_core_is_never_empty(word):
    head, tail = attached(word, KEPT)
    assert head >= 0 <= tail
    assert head + tail < len(word) or head == tail == 0


def test_cores_of_words():
    assert cores_of([(2, "Boise."), (4, "Inc."), (7, "(AP)")], KEPT) == {2: (0, 5), 7: (1, 3)}


@given(words=st.lists(texts, max_size=8))
def test_words_that_are_not_looked_at_have_none(words):
    """spaCy's flags: is_alpha as of str, is_punct where all is punctuation."""
    alpha = [word.isalpha() for word in words]
    looked_at = may_have(np.array([len(word) for word in words]), np.array(alpha, bool), np.zeros(len(words), bool))
    for i in set(range(len(words))) - set(looked_at.tolist()):
        assert attached(words[i], KEPT) == (0, 0)


def test_pieces_of_words_are_those_of_their_cores(tokenizer):
    """Of every tokenizer here: words keep their pieces, and their mentions have those of the words alone."""
    words = ["(AP)", "lives", "Boise.", "Ada's", "x"]
    pieces = align_words(tokenizer, words, {0: (1, 3), 2: (0, 5), 3: (0, 3)})
    whole = align_words(tokenizer, words)
    assert pieces.ids_N.tolist() == whole.ids_N.tolist()
    assert pieces.first_W.tolist() == whole.first_W.tolist()
    assert pieces.last_W.tolist() == whole.last_W.tolist()
    first_W, last_W = pieces.of_mentions(np.arange(5), np.arange(1, 6))
    for i, core in ((1, "lives"), (2, "Boise"), (3, "Ada"), (4, "x")):
        assert pieces.ids_N[first_W[i] : last_W[i]].tolist() == align_words(tokenizer, [core]).ids_N.tolist()
    assert whole.first_W[0] < first_W[0] < last_W[0] < whole.last_W[0]


def test_a_core_without_pieces_is_the_whole_word(tokenizer):
    assert (
        align_words(tokenizer, ["Boise."], {0: (0, 0)}).core_last_W.tolist()
        == align_words(tokenizer, ["Boise."]).last_W.tolist()
    )
