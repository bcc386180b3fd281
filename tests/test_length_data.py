"""The texts of benchmarks/lengths.py: however their sentences are joined, what is found is told by text."""

import importlib

import pytest

from tests.benchmark_files import by_bare_names


@pytest.fixture(scope="module")
def length_data():
    with by_bare_names():
        yield importlib.import_module("length_data")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_mentions_are_told_by_text_whatever_docs_their_sentences_are_in(length_data, size):
    make = length_data.make_sentence
    texts = [
        [make(["Ann", "met", "Bob", "."], [(0, 1, "PER"), (2, 3, "PER")]), make(["So", "?"], [])],
        [make(["Paris", "."], [(0, 1, "LOC")])],
        [make(["Oh", "."], []), make(["New", "York", "."], [(0, 2, "LOC")])],
    ]
    docs = [(len(words), own) for words, _, own in length_data.join([x for text in texts for x in text], size)]
    found = length_data.divide(texts, docs)
    assert found == [[(0, 1, "PER"), (2, 3, "PER")], [(0, 1, "LOC")], [(2, 4, "LOC")]]


def test_texts_are_taken_at_equal_distances_up_to_a_number_of_sentences(length_data):
    texts = [[length_data.make_sentence([f"{t}", "."], [])] * 3 for t in range(10)]
    taken = length_data.take_texts(texts, 7, most=2)
    assert [(text[0].words[0], len(text)) for text in taken] == [("0", 2), ("2", 2), ("4", 2), ("6", 1)]
