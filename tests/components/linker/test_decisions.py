"""Decisions about mentions: those of the plain procedure, in fewer passes, whatever the batches."""

import numpy as np
import pytest

from spacy_luke.annotations import get_rows
from spacy_luke.batch.linking import plan_link_windows
from spacy_luke.bridge.documents import read_document
from spacy_luke.components.linker.decisions import LinkTask, decide
from tests.components.linker.linked import make_doc, make_linker, make_tasks
from tests.tiny import SENTENCES


def decide_plainly(linker, task: LinkTask, vectors):
    """The reference's procedure: a pass over one window for each of its mentions; the most confident one is fixed."""
    from spacy_luke.batch.linking import make_link_batch
    from spacy_luke.components.linker.decisions import candidate_probabilities

    waiting = [e for e in range(len(task.rows)) if len(task.rows[e])]
    chosen = {}
    while waiting:
        batch = make_link_batch([task.item(waiting)], vectors)
        probabilities = candidate_probabilities(linker.model, batch)
        best = max(range(len(waiting)), key=lambda i: (probabilities[i].max(), -i))
        e = waiting.pop(best)
        chosen[e] = int(task.rows[e][probabilities[best].argmax()])
        task.entities_E[e] = chosen[e]
    return chosen


@pytest.mark.product
@pytest.mark.parametrize("split", ["cores", "simple", "per_mention"])
@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_decisions_are_those_of_the_plain_procedure(store, attention, split):
    nlp, linker = make_linker(store, attention=attention, split=split)
    docs = [make_doc(nlp, text) for text in [*SENTENCES, " ".join(SENTENCES * 3), ""]]
    table = linker.table()
    fast, plain = make_tasks(linker, docs, table), make_tasks(linker, docs, table)
    assert len(fast) > len(docs)
    before = [task.entities_E.copy() for task in fast]
    decide(linker.model, fast, table.vectors(), inference="global", size=150, counts=linker.counts)
    passes = 0
    for a, b, masked in zip(fast, plain, before, strict=True):
        chosen = decide_plainly(linker, b, table.vectors())
        passes += len(chosen)
        assert (masked == -1).all()
        for e in np.flatnonzero(a.decided_E):
            if len(a.rows[e]):
                assert a.rows[e][a.probabilities[e].argmax()] == chosen[e]
    assert linker.counts["windows"] < passes
    if attention == "one_way":
        assert linker.counts["word windows"] <= len(fast)


@pytest.mark.product
@pytest.mark.parametrize("others", ["masked", "pseudo", "none"])
@pytest.mark.parametrize("inference", ["local", "global"])
@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_batches_change_nothing(store, attention, inference, others):
    nlp, linker = make_linker(store, attention=attention, inference=inference, others=others, prior=True)
    texts = ["", *SENTENCES, " ".join(SENTENCES * 3)]
    one = [get_rows(linker(make_doc(nlp, text)), "luke_linked") for text in texts]
    linker.cfg["batch_size"] = 80
    for size in (1, 7):
        docs = list(nlp.pipe([make_doc(nlp, text) for text in texts], batch_size=size))
        for doc, expected in zip(docs, one, strict=True):
            for a, b in zip(get_rows(doc, "luke_linked"), expected, strict=True):
                assert a[:2] == b[:2]
                assert [x[0] for x in a[2]] == [x[0] for x in b[2]]
                assert [x[2] for x in a[2]] == pytest.approx([x[2] for x in b[2]], abs=1e-4)


def test_sure_mentions_are_decided_at_once(store):
    nlp, linker = make_linker(store, attention="one_way")
    doc = make_doc(nlp, " ".join(SENTENCES[:3]))
    steps = {}
    for sure in (None, 1.0, 0.0):
        linker.cfg["sure"] = sure
        linker.counts.clear()
        linker(doc.copy())
        steps[sure] = linker.counts["windows"]
    assert steps[0.0] == 2  # windows, each once
    assert steps[None] == steps[1.0] > 2


@pytest.mark.parametrize("split", ["cores", "simple", "per_mention"])
@pytest.mark.parametrize("most", [2, 100])
def test_each_mention_is_decided_once(store, split, most):
    nlp, linker = make_linker(store)
    doc = make_doc(nlp, " ".join(SENTENCES * 3))
    document = read_document(doc, linker.tokenizer)
    first = np.array([document.pieces.first_W[x.start] for x in doc.ents])
    last = np.array([document.pieces.last_W[x.end - 1] for x in doc.ents])
    windows = plan_link_windows(document, first, last, room=40, split=split, overlap=16, most=most)
    decided = [m for w in windows for m in w.mentions_E[w.decided_E].tolist()]
    assert sorted(decided) == list(range(len(first)))
    for w in windows:
        assert w.end - w.start <= 40
        assert len(w.mentions_E) <= most
        assert ((first[w.mentions_E] >= w.start) & (last[w.mentions_E] <= w.end)).all()
