"""Texts without annotation, of whatever file they lie in."""

from collections.abc import Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc

from ..stores.opening import find_files
from ..stores.plain_text import parse_json, single_keys
from .docbin import read_docbins
from .lines import decode_line

_SUFFIXES = (".txt", ".jsonl", ".spacy")


def read_texts(path: Path, nlp: Language) -> Iterator[Doc]:
    """Docs with words and nothing else, but for the sentences of those that have some.

    path: a text a line (.txt), a JSON object a line with a "text" (.jsonl), Docs (.spacy), or a folder of such files,
    read in the order of their names. Raises ValueError for other files, lines that are none, and where there is no
    text.
    """
    files = [path]
    if path.is_dir():
        files = [x for x in find_files(path) if x.suffix in _SUFFIXES]
    found = False
    for file in files:
        if file.suffix not in _SUFFIXES:
            raise ValueError(
                f"Texts are read from files {', '.join(_SUFFIXES)} and folders of them, but this is {file}."
            )
        for doc in _read_docs(file, nlp) if file.suffix == ".spacy" else map(nlp.make_doc, _read_lines(file)):
            found = True
            yield doc
    if not found:
        raise ValueError(f"{path} has no text: expected files {', '.join(_SUFFIXES)} with a text a line, or Docs.")


def _read_lines(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            text = decode_line(path, number, raw).strip()
            if text and path.suffix == ".jsonl":
                text = _text_of(path, number, text)
            if text:
                yield text


def _text_of(path: Path, number: int, line: str) -> str:
    try:
        data = parse_json(line, object_pairs_hook=single_keys)
    except ValueError as error:
        raise ValueError(f"{path}, line {number}: expected a JSON object, but it is none: {error}.") from None
    if not isinstance(data, dict) or not isinstance(data.get("text"), str):
        raise ValueError(f'{path}, line {number}: expected a JSON object with a "text", but it is {line[:80]!r}.')
    return str(data["text"]).strip()


def _read_docs(path: Path, nlp: Language) -> Iterator[Doc]:
    for doc in read_docbins(path, nlp.vocab):
        starts: list[bool | int | None] | None = None
        if doc.has_annotation("SENT_START"):
            starts = [bool(word.is_sent_start) for word in doc]
        spaces = [bool(word.whitespace_) for word in doc]
        if len(doc):
            yield Doc(nlp.vocab, words=[word.text for word in doc], spaces=spaces, sent_starts=starts)
