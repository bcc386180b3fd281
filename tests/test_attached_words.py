"""benchmarks/ready.py --attached: the same sentences with words as blanks divide them."""

import importlib

import pytest

from tests.benchmark_files import by_bare_names


@pytest.fixture(scope="module")
def ready():
    with by_bare_names():
        yield importlib.import_module("ready")


def attached(ready, words, mentions, ignored=()):
    sentence = ready.attach(ready.TestSentence(words.split(), list(mentions), list(ignored)))
    return sentence.words, sentence.mentions, sentence.ignored


def test_words_and_mentions_move(ready):
    words = "Ann , of Acme Inc . ( Ulm ) , left Bonn ."
    mentions = [(0, 1, "PER"), (3, 6, "ORG"), (7, 8, "LOC"), (11, 12, "LOC")]
    assert attached(ready, words, mentions, [(2, 6)]) == (
        "Ann, of Acme Inc. (Ulm), left Bonn.".split(),
        [(0, 1, "PER"), (2, 4, "ORG"), (4, 5, "LOC"), (6, 7, "LOC")],
        [(1, 4)],
    )


def test_a_name_of_punctuation_stays(ready):
    assert attached(ready, "We saw ! in Ulm", [(2, 3, "MISC")]) == ("We saw ! in Ulm".split(), [(2, 3, "MISC")], [])


def test_nothing_to_attach(ready):
    assert attached(ready, ". Ulm", [(1, 2, "LOC")]) == ([".", "Ulm"], [(1, 2, "LOC")], [])
