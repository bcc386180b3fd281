"""The case of words, and tokenizers whose pieces say it: in texts and in lists of words alike."""

import pickle

import numpy as np
import pytest

from spacy_luke.text.align import align_text, align_words
from spacy_luke.text.cases import CASES, CasedTokenizer, case_of, cases_at
from spacy_luke.text.passages import encode_passage, encode_question
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.tiny import make_wordpiece, tokenizer_json

TEXT = "Ada lovelace of the U.S. met iPhone-makers, McCoy's NATO  and A. 1990 ! London."
WORDS = {
    "lower": ["ada", "3rd", "!", "...", "é", "東京", "b2"],
    "title": ["Ada", "A", "London.", "(Élan", "B2", "Ǆa"],
    "upper": ["NATO", "U.S.", "A.B.", "ÉL"],
    "mixed": ["iPhone", "McCoy", "aB", "NATOs"],
    "digits": ["1990", "3,5", "٣"],
}


@pytest.mark.parametrize("case", CASES)
def test_cases_of_words(case):
    assert {word: CASES[case_of(word)] for word in WORDS[case]} == dict.fromkeys(WORDS[case], case)


def test_every_character_has_its_words_case():
    cases = [CASES[x] for x in cases_at(TEXT, np.arange(len(TEXT)))]
    words = TEXT.replace("-", " ").replace("'", " ").split()
    wanted = [
        "title",
        "lower",
        "lower",
        "lower",
        "upper",
        "lower",
        "mixed",
        "lower",
        "mixed",
        "lower",
        "upper",
        "lower",
    ]
    wanted += ["title", "digits", "lower", "title"]
    place = 0
    for word, case in zip(words, wanted, strict=True):
        place = TEXT.index(word, place)
        assert set(cases[place : place + len(word)]) == {case}, word
        place += len(word)
    assert {case for case, char in zip(cases, TEXT) if char in " -'"} == {"lower"}
    assert not cases_at("", np.zeros(0, np.int64)).size
    assert cases_at("  ", np.array([0, 1])).tolist() == [0, 0]


@pytest.fixture(params=["wordpiece", "byte_bpe"])
def tokenizer(request):
    return make_wordpiece() if request.param == "wordpiece" else PieceTokenizer.from_json(tokenizer_json())


def test_pieces_are_the_same_and_say_the_case(tokenizer):
    cased, size = CasedTokenizer(tokenizer, 1000), 1000
    plain_N, starts_N, ends_N = tokenizer.encode(TEXT)
    ids_N, *offsets = cased.encode(TEXT)
    assert (ids_N % size).tolist() == plain_N.tolist()
    assert all(np.array_equal(a, b) for a, b in zip(offsets, (starts_N, ends_N)))
    assert (ids_N // size).tolist() == [case_at(TEXT, start) for start in starts_N.tolist()]
    assert len(set((ids_N // size).tolist())) == len(CASES)
    assert (encode_passage(cased, TEXT).ids_N // size).any()
    assert (encode_question(cased, TEXT).ids_N // size).any()
    again = pickle.loads(pickle.dumps(cased))
    assert np.array_equal(again.encode(TEXT)[0], ids_N)
    assert np.array_equal(tokenizer.encode(TEXT)[0], plain_N)
    assert cased.to_json() == tokenizer.to_json()


def case_at(text, place):
    """Of the word around a character, by looking to its left and right."""
    edges = set(" -'")
    if text[place] in edges:
        return 0
    start, end = place, place
    while start and text[start - 1] not in edges:
        start -= 1
    while end < len(text) and text[end] not in edges:
        end += 1
    return case_of(text[start:end])


def test_lists_of_words_give_what_texts_give():
    tokenizer = CasedTokenizer(make_wordpiece(), 100)
    words = "Ada met London 's NATO and iPhone .".split()
    text = " ".join(words)
    starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    of_text = align_text(tokenizer, text, starts, starts + [len(word) for word in words])
    for _ in range(2):  # the second time from the cache
        of_words = align_words(tokenizer, words)
        assert of_words.ids_N.tolist() == of_text.ids_N.tolist()
    assert (of_words.ids_N // 100).max() == 3
