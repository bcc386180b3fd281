"""Pipelines take turns, and each reads all words anew (spacy_luke/pipelines/comparison.py)."""

import pytest

from spacy_luke.pipelines import comparison
from spacy_luke.pipelines.comparison import TURNS, Speeds, compare_speed
from tests.pipelines import make_pipeline
from tests.tiny import SENTENCES


@pytest.fixture(scope="module")
def pipelines():
    return [make_pipeline("luke_ner") for _ in range(2)]


def recorded(pipelines, monkeypatch):
    """The order of turns, and the Docs that each has."""
    turns = []
    for i, nlp in enumerate(pipelines):

        def pipe(docs, i=i, pipe=nlp.pipe):
            turns.append((i, [doc.text for doc in docs]))
            return pipe(docs)

        monkeypatch.setattr(nlp, "pipe", pipe)
    return turns


def read(nlp):
    return [nlp.make_doc(text) for text in SENTENCES]


def test_turns(pipelines, monkeypatch):
    turns = recorded(pipelines, monkeypatch)
    found = compare_speed(pipelines, read)
    assert [i for i, _ in turns] == [0, 1] * TURNS
    assert all(texts == SENTENCES for _, texts in turns)
    assert len(found.words_per_second) == 2
    assert all(x > 0 for x in found.words_per_second)


def test_nothing_is_held_from_the_turn_before(pipelines):
    cache = pipelines[0].get_pipe("luke_encoder").sharing.cache
    encoded, reused = cache.encoded, cache.reused
    compare_speed(pipelines, read)
    once = (cache.encoded - encoded) / TURNS
    assert once > sum(map(len, read(pipelines[0])))
    assert cache.reused == reused


def test_given_docs_stay_as_they_are(pipelines):
    docs = read(pipelines[0])
    compare_speed(pipelines[:1], lambda nlp: docs)
    assert pipelines[0](docs[0].copy()).has_annotation("ENT_IOB")
    assert not any(doc.has_annotation("ENT_IOB") for doc in docs)


def test_a_part_of_the_docs(pipelines, monkeypatch):
    turns = recorded(pipelines, monkeypatch)
    words = len(read(pipelines[0])[0]) + 1
    compare_speed(pipelines, read, words=words)
    assert all(texts == SENTENCES[:2] for _, texts in turns)


def test_a_slow_machine(pipelines, monkeypatch):
    turns = recorded(pipelines, monkeypatch)
    monkeypatch.setattr(comparison, "SECONDS", 0.0)
    compare_speed(pipelines, read)
    assert [i for i, _ in turns] == [0, 1] * 2  # one that counts


@pytest.mark.parametrize(("core", "busy"), [(0.3, True), (0.97, False), (1.9, False)])
def test_other_programs(core, busy):
    assert Speeds((1.0, 2.0), core).is_busy == busy
