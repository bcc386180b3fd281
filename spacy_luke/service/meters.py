"""What the service counts, in the format of Prometheus."""

from collections.abc import Callable

_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_DOCUMENTS = (1, 2, 4, 8, 16, 32)


class Meters:
    """waiting: gives how many documents wait."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        known = self.registry = CollectorRegistry()
        self._requests = Counter("spacy_luke_requests", "Requests to /annotate", ["status"], registry=known)
        self._seconds = Histogram(
            "spacy_luke_request_seconds", "From a request to its reply", buckets=_BUCKETS, registry=known
        )
        self._documents = Counter("spacy_luke_documents", "Documents", ["outcome"], registry=known)
        self._words = Counter("spacy_luke_words", "Words that were annotated", registry=known)
        self._batches = Histogram(
            "spacy_luke_batch_documents", "Documents of a batch", buckets=_DOCUMENTS, registry=known
        )
        self._busy = Counter("spacy_luke_pipeline_seconds", "Seconds in which the pipeline worked", registry=known)
        self._waiting = Gauge("spacy_luke_waiting_documents", "Documents that wait", registry=known)

    def watch(self, waiting: Callable[[], int]) -> None:
        self._waiting.set_function(waiting)

    def request(self, status: int, seconds: float) -> None:
        self._requests.labels(str(status)).inc()
        self._seconds.observe(seconds)

    def batch(self, documents: int, words: int, failed: int, seconds: float) -> None:
        self._documents.labels("annotated").inc(documents - failed)
        self._documents.labels("failed").inc(failed)
        self._words.inc(words)
        self._batches.observe(documents)
        self._busy.inc(seconds)

    def text(self) -> bytes:
        from prometheus_client import generate_latest

        data: bytes = generate_latest(self.registry)
        return data
