"""The forms of parts: what writes documents into a file, one after another."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import srsly
from spacy.tokens import Doc, DocBin, SpanGroup

from ..annotations import set_document_fields, set_document_id
from ..pages.schema import AnnotatedText
from .parquet import ParquetWriter


class PartWriter(Protocol):
    """A file that is open: a context, whose end makes the file whole."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def check(self, doc: Doc, form: AnnotatedText) -> None:
        """ValueError for a document that cannot be written as it is."""

    def write(self, doc: Doc, form: AnnotatedText) -> None: ...


class LinesWriter:
    """JSON lines, an `AnnotatedText` a line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        self._file = self._path.open("wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def check(self, doc: Doc, form: AnnotatedText) -> None:
        pass

    def write(self, doc: Doc, form: AnnotatedText) -> None:
        self._file.write(form.model_dump_json().encode() + b"\n")


class DocsWriter:
    """A DocBin of spaCy with all that the Docs carry, their ids in `doc.user_data["id"]` and fields of their
    records in `doc.user_data["luke_fields"]`. It is in memory until its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._docs = DocBin(store_user_data=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._path.write_bytes(self._docs.to_bytes())

    def check(self, doc: Doc, form: AnnotatedText) -> None:
        for key, group in doc.spans.items():
            if _is_stale(group):
                raise ValueError(
                    f"doc.spans[{key!r}] names other words than it did: spaCy's retokenizer, as of merge_entities, "
                    "leaves span groups as they were. Load luke_ner with spans_key = null, or delete the group before."
                )
        for name, value in form.fields.items():
            _check_packs(f"field {name!r}", value, "leave it out by --fields")
        for key, value in doc.user_data.items():
            _check_packs(f"doc.user_data[{key!r}]", value, "let the pipeline take it away")

    def write(self, doc: Doc, form: AnnotatedText) -> None:
        set_document_id(doc, form.id)
        set_document_fields(doc, form.fields)
        self._docs.add(doc)


WRITERS: dict[str, Callable[[Path], PartWriter]] = {
    "jsonl": LinesWriter,
    "parquet": ParquetWriter,
    "spacy": DocsWriter,
}


def _check_packs(name: str, value: Any, else_do: str) -> None:
    """ValueError for what a DocBin cannot hold, which would else end the run at its writing."""
    try:
        srsly.msgpack_dumps(value)
    except Exception as error:  # of integers, of types, of values in themselves: whatever it is, it is of this value
        raise ValueError(
            f"The {name} cannot be written as spaCy's Docs, whose integers have 64 bits at most: it is {value!r:.80} "
            f"({type(error).__name__}: {error}). Choose --format jsonl, or {else_do}."
        ) from error


def _is_stale(group: SpanGroup) -> bool:
    """Whether words of the Doc were merged or divided since: spans know the characters where they began."""
    try:
        return any(span.start_char != group.doc[span.start].idx for span in group)
    except IndexError:  # a span ends after the last word
        return True
