"""The forms of parts: what writes documents into a file, one after another."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from spacy.tokens import Doc

from ..pages.schema import AnnotatedText


class PartWriter(Protocol):
    """A file that is open: a context, whose end makes the file whole."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

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

    def write(self, doc: Doc, form: AnnotatedText) -> None:
        self._file.write(form.model_dump_json().encode() + b"\n")


WRITERS: dict[str, Callable[[Path], PartWriter]] = {"jsonl": LinesWriter}
