"""Threads share a pipeline, as web servers do: all components give what one thread gets, and nothing is left behind."""

import numpy as np
import pytest

from tests.components.every import MAKERS, asked, facts, make_all, random_texts
from tests.threads import in_threads

THREADS = 8


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
