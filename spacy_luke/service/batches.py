"""Batches of what waits: documents of all requests go through `nlp.pipe` together, those that came meanwhile."""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from time import perf_counter
from typing import Protocol

from spacy.tokens import Doc

from ..pages.schema import AnnotatedText, as_form
from ..pipelines.annotation import Annotator, annotate_each
from .forms import DocumentIn, FailedDocument, Failure, ServiceError

_LOG = logging.getLogger(__name__)


class Meter(Protocol):
    """Is told of every batch."""

    def batch(self, documents: int, words: int, failed: int, seconds: float) -> None: ...


class _Waiting:
    """A document that waits. The future gets what is sent back for it, as JSON."""

    def __init__(self, document: DocumentIn) -> None:
        self.document = document
        self.future: Future[str] = Future()


class Batcher:
    """One thread with the pipeline, which alone works on it.

    A document that comes while nothing is done is done at once; what comes meanwhile is the next batch, at most
    `documents` of them and `characters` together, but one always. waiting: documents that may wait.
    """

    def __init__(
        self, annotator: Annotator, meter: Meter, *, waiting: int, documents: int = 32, characters: int = 50_000
    ) -> None:
        self._annotator, self._meter = annotator, meter
        self._most_waiting, self._documents, self._characters = waiting, documents, characters
        self._queue: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="spacy_luke pipeline", daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        return self._closed

    def __len__(self) -> int:
        """Documents that wait."""
        return len(self._queue)

    def submit(self, documents: Sequence[DocumentIn]) -> list[Future[str]]:
        """All of a request's documents, or none: raises ServiceError where too many wait, or it ends."""
        items = [_Waiting(document) for document in documents]
        with self._changed:
            if self._closed:
                raise ServiceError("busy", "The service is ending.")
            if self._queue and len(self._queue) + len(items) > self._most_waiting:
                told = f"{len(self._queue)} documents are waiting, and {self._most_waiting} may."
                raise ServiceError("busy", told)
            self._queue.extend(items)
            self._changed.notify()
        return [item.future for item in items]

    def close(self) -> None:
        """Do what waits, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while batch := self._next():
            started = perf_counter()
            replies = self._annotate(batch)
            done = [x for x in replies if isinstance(x, AnnotatedText)]
            words, failed = sum(x.words for x in done), len(replies) - len(done)
            self._meter.batch(len(batch), words, failed, perf_counter() - started)
            for item, reply in zip(batch, replies, strict=True):
                item.future.set_result(reply.model_dump_json())

    def _next(self) -> list[_Waiting]:
        """Waits for documents; [] when there are none and none will come. Those that nobody waits for are left out."""
        with self._changed:
            while True:
                batch: list[_Waiting] = []
                room = self._characters
                while self._queue and len(batch) < self._documents:
                    size = len(self._queue[0].document.text)
                    if batch and size > room:
                        break
                    item = self._queue.popleft()
                    if item.future.set_running_or_notify_cancel():
                        batch.append(item)
                        room -= size
                if batch or self._closed:
                    return batch
                self._changed.wait()

    def _annotate(self, batch: Sequence[_Waiting]) -> list[AnnotatedText | FailedDocument]:
        """What is sent back for each: no document costs another."""
        replies: list[AnnotatedText | FailedDocument] = []
        with self._annotator.nlp.memory_zone():  # or the vocabulary would grow with every text
            results = annotate_each(self._annotator, batch, self._make_doc, self._as_form)
            for item, found in zip(batch, results, strict=True):
                replies.append(_failed(item.document, found) if isinstance(found, Exception) else found)
        return replies

    def _make_doc(self, item: _Waiting) -> Doc:
        given = item.document
        return self._annotator.make_doc(given.text, given.questions, given.queries)

    def _as_form(self, item: _Waiting, doc: Doc) -> AnnotatedText:
        return as_form(self._annotator.read(doc), id=item.document.id, pipeline=self._annotator.name)


def _failed(document: DocumentIn, error: Exception) -> FailedDocument:
    """What is sent back for a document that failed alone; ValueErrors of ours say what was wrong with it."""
    if isinstance(error, ValueError):
        return FailedDocument(id=document.id, error=Failure(code="invalid_request", message=str(error), where=None))
    _LOG.exception("The pipeline failed on a text of %d characters", len(document.text), exc_info=error)
    told = f"The pipeline failed with {type(error).__name__}."
    return FailedDocument(id=document.id, error=Failure(code="failed", message=told, where=None))
