"""Documents as pipelines annotated them: JSON lines in the form of `pages.schema`, and what `apply` wrote."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from pydantic import ValidationError

from ..pages.schema import FORMAT, AnnotatedText
from ..stores.folder import MANIFEST
from ..stores.opening import open_source
from ..streams.annotated import AnnotatedParts
from ..streams.run_folder import PLAN

_ENDS = (".jsonl", ".jsonl.gz", ".jsonl.bz2", ".json")
_SHOWN = 3  # errors of a line that are told


def read_annotated(inputs: Sequence[Path], *, progress: bool = False) -> Iterator[tuple[str, AnnotatedText]]:
    """Where each document stands, for messages, and the document; its id is that of its text where it has none.

    inputs: files, and folders with parts. ValueError for what is no such line, with its file and number, and for a
    folder of `apply` that is not finished or not whole.
    """
    for path in inputs:
        if path.is_dir():
            yield from _read_folder(path, progress=progress)
        else:
            yield from _read_lines(path, progress=progress)


def count_failed(inputs: Sequence[Path]) -> int:
    """Documents that `apply` could not annotate: they are in no graph."""
    applied = (AnnotatedParts.open(path) for path in inputs if _is_applied(path))
    return sum(part["failed"] for run in applied for part in run.parts)


def _is_applied(path: Path) -> bool:
    return path.is_dir() and ((path / MANIFEST).exists() or (path / PLAN).exists())


def _read_folder(path: Path, *, progress: bool) -> Iterator[tuple[str, AnnotatedText]]:
    if not _is_applied(path):
        parts = sorted(x for x in path.iterdir() if x.name.startswith("part-") and x.name.endswith(_ENDS))
        if not parts:
            raise ValueError(
                f"{path}: expected what `spacy luke apply` writes, files part-000000.jsonl and further ones, but there "
                "are none. Give files by their names otherwise."
            )
    else:
        run = AnnotatedParts.open(path, progress=progress)
        if run.manifest["output"] != "jsonl":
            for number, found in enumerate(run.texts(), 1):
                yield _checked(f"{path}, document {number}", found)
            return
        parts = run.files()
    for part in parts:
        yield from _read_lines(part, progress=progress)


def _read_lines(path: Path, *, progress: bool) -> Iterator[tuple[str, AnnotatedText]]:
    with open_source(path, progress=progress) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                found = AnnotatedText.model_validate_json(line.removeprefix(b"\xef\xbb\xbf"))
            except ValidationError as error:
                raise ValueError(f"{where}: {_told(error)}") from None
            yield _checked(where, found)


def _told(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    what = "; ".join(f"{'.'.join(map(str, x['loc'])) or 'the line'}: {x['msg']}" for x in errors[:_SHOWN])
    return f"expected a document in the form {FORMAT}, but {what}. `spacy luke apply` writes such lines."


def _checked(where: str, found: AnnotatedText) -> tuple[str, AnnotatedText]:
    """With an id. ValueError where an entity is not at its place: all that follows from places would be wrong."""
    for x in found.entities:
        if found.text[x.start : x.end] != x.text:
            raise ValueError(
                f"{where}: entity {x.id} is {x.text!r:.80}, but at its place [{x.start}, {x.end}) stands "
                f"{found.text[x.start : x.end]!r:.80}. Places count code points of Unicode."
            )
    numbers = {x.id for x in found.entities}
    for relation in found.relations:
        for end in (relation.head, relation.tail):
            if end.entity is not None and end.entity not in numbers:
                raise ValueError(f"{where}: a relation {relation.label!r} names entity {end.entity}, which is none.")
    return where, found if found.id is not None else found.model_copy(update={"id": _id_of(found.text)})


def _id_of(text: str) -> str:
    return f"text:{blake2b(text.encode('utf8'), digest_size=16).hexdigest()}"
