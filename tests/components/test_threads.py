"""Threads share a pipeline, as web servers do: all components give what one thread gets, and nothing is left behind."""

import time

import numpy as np
import pytest

from spacy_luke.bridge.wrapper import TorchShim
from tests.components.every import MAKERS, asked, facts, make_all, random_texts
from tests.pipelines import make_pipeline
from tests.threads import in_threads
from tests.tiny import SENTENCES

THREADS = 8
LABELLED = ("luke_ner", "luke_typer", "luke_relation")


def equal_in_threads(nlp, make_doc, texts, *, pipe=False):
    """Whether each of 8 threads gets for all texts what one thread gets."""
    expected = [facts(nlp(make_doc(nlp, text))) for text in texts]
    assert len({frozenset(found) for found in expected}) > len(set(texts)) // 2  # there is something to find
    wrong = []

    def work(number):
        order = np.random.default_rng(number).permutation(len(texts)).tolist()
        docs = (make_doc(nlp, texts[i]) for i in order)
        found = nlp.pipe(docs, batch_size=5) if pipe else map(nlp, docs)
        for i, doc in zip(order, found, strict=True):
            got = facts(doc)
            if got != pytest.approx(expected[i], abs=2e-5):
                wrong.append((texts[i], got, expected[i]))

    wrong += in_threads(THREADS, work)
    assert not wrong, (len(wrong), wrong[0])
    assert [facts(nlp(make_doc(nlp, text))) == pytest.approx(x, abs=2e-5) for text, x in zip(texts, expected)]


def check_cache(nlp):
    """What the cache counts is what it has."""
    cache = nlp.get_pipe("luke_encoder").sharing.cache
    batches = list(cache._held.batches)
    assert 0 < cache.held <= cache.capacity
    assert cache.held == sum(len(w.states_ND) for batch in batches for w in batch.windows.values())
    assert set(cache._held.places.values()) <= set(batches)


@pytest.mark.parametrize("name", MAKERS)
def test_threads(name, tmp_path):
    make, make_doc, words = MAKERS[name]
    nlp = make(tmp_path)
    if name == "shared":
        nlp.get_pipe("luke_encoder").cfg["shared_pieces"] = 150  # so that windows are forgotten
    equal_in_threads(nlp, make_doc, random_texts(6, words), pipe=name == "shared")
    if name == "shared":
        check_cache(nlp)


@pytest.mark.parametrize("name", LABELLED)
def test_requests_while_a_label_is_added(name, monkeypatch):
    """Whatever is called in between, a request gets what the pipeline said before, and then what it says afterwards."""
    between = {"between": {"near": [["PER"], ["LOC"]]}} if name == "luke_relation" else {}
    nlp = make_pipeline(*LABELLED, luke_relation=between)
    before, found = facts(nlp(SENTENCES[0])), []

    def watched(method):
        def call(*args, **kwargs):
            found.append(facts(nlp(SENTENCES[0])))
            result = method(*args, **kwargs)
            found.append(facts(nlp(SENTENCES[0])))
            return result

        return call

    for method in ("create", "fill", "take"):
        monkeypatch.setattr(TorchShim, method, watched(getattr(TorchShim, method)))
    nlp.get_pipe(name).add_label("new")
    assert len(found) == 6
    assert found[:5] == [before] * 5
    assert found[5] == facts(nlp(SENTENCES[0]))


@pytest.mark.parametrize("name", LABELLED)
def test_a_label_that_is_added_between_two_batches(name, monkeypatch):
    """Those of one prediction are all scored by the head that the first one was scored by."""
    nlp = make_pipeline(*LABELLED, luke_relation={"between": {"near": [["PER"], ["LOC"]]}})
    component = nlp.get_pipe(name)
    component.batch_size = 8
    before, finish, calls = list(map(facts, nlp.pipe(SENTENCES))), component.begin_scores, []

    def begin_scores(*args):
        if not calls:
            component.add_label("new")
        calls.append(args)
        return finish(*args)

    monkeypatch.setattr(component, "begin_scores", begin_scores)
    assert list(map(facts, nlp.pipe(SENTENCES))) == before
    assert len(calls) > 1
    assert component.head.settings["n_labels"] == len(component.labels) + (name == "luke_ner")


def test_labels_are_added_while_threads_predict():
    nlp = make_pipeline(*LABELLED, luke_typer={"threshold": 0.4})
    before = facts(nlp(SENTENCES[0]))

    def work(number):
        for i in range(8):
            if number:
                found = {key: x for key, x in facts(nlp(SENTENCES[0])).items() if "new" not in key[-1]}
                assert found == pytest.approx(before, abs=1e-3)
            else:
                time.sleep(0.01)
                for name in LABELLED:
                    nlp.get_pipe(name).add_label(f"new {i}")

    assert not in_threads(4, work)
    assert [len(nlp.get_pipe(name).labels) for name in LABELLED] == [10, 11, 9]


@pytest.mark.slow
@pytest.mark.parametrize(("capacity", "n"), [(0, 25), (300, 50), (8192, 25)])
def test_threads_of_many_texts(capacity, n, tmp_path):
    """8 threads, up to 50 texts each, through all components on one encoder."""
    nlp = make_all(tmp_path)
    nlp.get_pipe("luke_encoder").cfg["shared_pieces"] = capacity
    equal_in_threads(nlp, asked, random_texts(n))
    if capacity:
        check_cache(nlp)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["own_full", "ernie"])
def test_threads_of_many_texts_with_other_models(name, tmp_path):
    make, make_doc, words = MAKERS[name]
    equal_in_threads(make(tmp_path), make_doc, random_texts(25, words))
