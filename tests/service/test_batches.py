"""Documents of all requests in batches: nothing is lost, nothing waits for ever, no document costs another."""

import threading
from concurrent.futures import CancelledError

import pytest

from spacy_luke.pages.schema import AnnotatedText, as_form
from spacy_luke.pipelines.annotation import Annotator
from spacy_luke.service.batches import Batcher
from spacy_luke.service.forms import DocumentIn, FailedDocument, ServiceError
from tests.pipelines import QUERY, QUESTION, make_pipeline
from tests.tiny import SENTENCES


class Counter:
    def __init__(self):
        self.batches, self.failed = [], 0

    def batch(self, documents, words, failed, seconds):
        self.batches.append(documents)
        self.failed += failed


@pytest.fixture(scope="module")
def annotator():
    return Annotator(make_pipeline())


@pytest.fixture
def gate(annotator, monkeypatch):
    """The pipeline begins with a document only when the gate is open; it fails on texts that begin with "Fail"."""
    gate = threading.Event()
    make_doc = annotator.make_doc

    def waits(text, questions=(), queries=()):
        assert gate.wait(30)
        if text.startswith("Fail"):
            raise RuntimeError("This text.")
        return make_doc(text, questions, queries)

    monkeypatch.setattr(annotator, "make_doc", waits)
    yield gate
    gate.set()


@pytest.fixture
def batcher(annotator):
    counter = Counter()
    batcher = Batcher(annotator, counter, waiting=20, documents=4, characters=400)
    batcher.counter = counter
    yield batcher
    batcher.close()


def documents(*texts):
    return [DocumentIn(text=text, id=str(i)) for i, text in enumerate(texts)]


def test_what_is_found_is_what_the_pipeline_finds(annotator, batcher):
    asked = DocumentIn(text=SENTENCES[1], questions=[QUESTION], queries=[QUERY])
    futures = batcher.submit([*documents(*SENTENCES), asked, DocumentIn(text="")])
    found = [AnnotatedText.model_validate_json(x.result(30)) for x in futures]
    for i, text in enumerate(SENTENCES):
        wanted = as_form(annotator.read(annotator.nlp(text)), id=str(i), pipeline=annotator.name)
        assert found[i].model_dump(exclude={"entities", "relations"}) == wanted.model_dump(
            exclude={"entities", "relations"}
        )
        for mine, theirs in zip(found[i].entities, wanted.entities, strict=True):
            assert (mine.start, mine.end, mine.label) == (theirs.start, theirs.end, theirs.label)
            assert mine.score == pytest.approx(theirs.score, abs=1e-5)
        assert len(found[i].relations) == len(wanted.relations)
    assert [x.question for x in found[-2].answers] == [QUESTION, QUERY]
    assert found[-1].words == 0


def test_what_comes_meanwhile_is_one_batch(batcher, gate):
    futures = batcher.submit(documents("One."))
    while len(batcher):
        pass  # the first is being done
    futures += batcher.submit(documents("Two.", "Three."))
    futures += batcher.submit(documents("Four.", "Five.", "x " * 190, "y " * 190))
    assert len(batcher) == 6
    gate.set()
    assert [AnnotatedText.model_validate_json(x.result(30)).text for x in futures][:3] == ["One.", "Two.", "Three."]
    batcher.close()
    assert batcher.counter.batches == [1, 4, 1, 1]  # four at most, and 400 characters


def test_a_document_that_fails_costs_no_other(batcher, gate, caplog):
    futures = batcher.submit(documents("One."))
    futures += batcher.submit([*documents("Two.", "Fail it."), DocumentIn(text="Four.", queries=["none"])])
    futures += batcher.submit(documents("Five."))
    gate.set()
    replies = [x.result(30) for x in futures]
    assert [AnnotatedText.model_validate_json(replies[i]).text for i in (0, 1, 4)] == ["One.", "Two.", "Five."]
    failed = FailedDocument.model_validate_json(replies[2])
    assert (failed.id, failed.error.code) == ("1", "failed")
    assert "RuntimeError" in failed.error.message
    assert "This text" in caplog.text  # what users are not told is in the log
    wrong = FailedDocument.model_validate_json(replies[3])
    assert wrong.error.code == "invalid_request"
    assert "@placeholder exactly once" in wrong.error.message
    batcher.close()
    assert batcher.counter.failed == 2


def test_too_much_is_refused_as_a_whole(batcher, gate):
    batcher.submit(documents("One."))
    while len(batcher):
        pass
    batcher.submit(documents(*["x"] * 19))
    with pytest.raises(ServiceError, match="19 documents are waiting, and 20 may"):
        batcher.submit(documents("y", "z"))
    assert len(batcher) == 19
    batcher.submit(documents("y"))


def test_what_nobody_waits_for_is_not_done(batcher, gate):
    first = batcher.submit(documents("One."))
    while len(batcher):
        pass
    dropped = batcher.submit(documents("Fail it.", "Fail it."))
    kept = batcher.submit(documents("Four."))
    assert all(x.cancel() for x in dropped)
    gate.set()
    assert kept[0].result(30)
    assert first[0].result(30)
    with pytest.raises(CancelledError):
        dropped[0].result(1)
    batcher.close()
    assert (batcher.counter.batches, batcher.counter.failed) == ([1, 1], 0)


def test_the_end_does_what_waits(batcher, gate):
    futures = batcher.submit(documents("One.", "Two.", "Three."))
    ending = threading.Thread(target=batcher.close)
    ending.start()
    while not batcher.closed:
        pass
    with pytest.raises(ServiceError, match="ending"):
        batcher.submit(documents("Four."))
    gate.set()
    ending.join(30)
    assert all(x.done() for x in futures)
