"""Queries in ReCoRD's manner that benchmarks/quality_cloze.py makes, and the baseline that learns nothing."""

import importlib

import pytest
import spacy

from spacy_luke.annotations import get_fillers, get_queries
from tests.benchmark_files import by_bare_names


@pytest.fixture(scope="module")
def cloze():
    with by_bare_names():
        yield importlib.import_module("quality_cloze")


def mention(name, sentence, first, end, kind="PER"):
    return {"name": name, "sent_id": sentence, "pos": [first, end], "type": kind}


DOCUMENT = {
    "sents": [
        ["Ada", "Lovelace", "met", "Babbage", "in", "1833", "."],
        ["Babbage", "was", "old", "."],
        ["She", "liked", "Babbage", "."],
    ],
    "vertexSet": [
        [mention("Ada Lovelace", 0, 0, 2)],
        [mention("Babbage", 2, 2, 3), mention("Babbage", 0, 3, 4), mention("Babbage", 1, 0, 1)],
        [mention("1833", 0, 5, 6, "TIME")],
    ],
}


def texts(doc, places):
    return [doc.text[a:b] for a, b in places]


def test_each_asks_for_an_entity_of_the_other_sentences(cloze):
    last, first = cloze.make_docs(spacy.blank("en"), DOCUMENT)
    assert last.text == "Ada Lovelace met Babbage in 1833 . Babbage was old ."
    assert first.text == "Ada Lovelace met Babbage in 1833 . She liked Babbage ."
    for doc, query in ((last, "She liked @placeholder ."), (first, "@placeholder was old .")):
        (asked,) = get_queries(doc)
        assert asked["query"] == query
        assert sorted(texts(doc, asked["candidates"])) == ["Ada Lovelace", "Babbage", "Babbage"]
        assert texts(doc, asked["answers"]) == ["Babbage", "Babbage"]


def test_nothing_is_asked_that_no_other_sentence_names(cloze):
    alone = {**DOCUMENT, "vertexSet": [DOCUMENT["vertexSet"][0], DOCUMENT["vertexSet"][2]]}
    assert list(cloze.make_docs(spacy.blank("en"), alone)) == []


def test_the_most_frequent_name(cloze):
    doc, _ = cloze.make_docs(spacy.blank("en"), DOCUMENT)
    cloze.choose_most_frequent(doc)
    (answer,) = get_fillers(doc)
    assert (answer.text, answer.score) == ("Babbage", 2.0)
    scores, answers = cloze.score(spacy.blank("en"), None, [doc])
    assert (scores["cloze_em"], len(answers)) == (1.0, 1)
    assert answers == [(["17-24 " + cloze.digest("She liked @placeholder .")],) * 2]  # kept without its text
