"""Documents as pipelines annotated them: JSON lines in the form of `pages.schema`, and what `apply` wrote."""

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from pydantic import ValidationError

from ..pages.schema import FORMAT, AnnotatedText, EndForm, EntityForm
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
            number = 0  # of the last that was read
            try:
                for number, found in enumerate(run.texts(), 1):
                    yield _checked(f"{path}, document {number}", found)
            except ValidationError as error:
                raise ValueError(f"{path}, document {number + 1}: {_told(error)}") from None
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
    """With an id. ValueError where an entity, an end of a relation or a sentence is not at its place, and where ids of
    entities do not say which is meant: all that follows would be wrong."""
    entities = {x.id: x for x in found.entities}
    if len(entities) < len(found.entities):
        (id, _), *_ = Counter(x.id for x in found.entities).most_common(1)
        raise ValueError(
            f"{where}: expected each id of an entity once, but {id} is there twice. Relations name entities by them."
        )
    for x in found.entities:
        _check_place(f"{where}: entity {x.id}", x, found.text)
    for relation in found.relations:
        for side, end in (("head", relation.head), ("tail", relation.tail)):
            what = f"{where}: the {side} of a relation {relation.label!r}"
            _check_place(what, end, found.text)
            if end.entity is None:
                continue
            if (named := entities.get(end.entity)) is None:
                raise ValueError(f"{what} names entity {end.entity}, which is none.")
            if (named.start, named.end) != (end.start, end.end):
                raise ValueError(f"{what} is {_shown(end)}, but it names entity {end.entity}, {_shown(named)}.")
    edges = [edge for place in found.sentences or () for edge in place]
    if edges != sorted(edges) or any(not 0 <= x <= len(found.text) for x in edges):
        raise ValueError(
            f"{where}: expected sentences one behind the other, from 0 to {len(found.text)}, but got "
            f"{found.sentences!r:.200}."
        )
    return where, found if found.id is not None else found.model_copy(update={"id": _id_of(found.text)})


def _check_place(what: str, x: EntityForm | EndForm, text: str) -> None:
    if not 0 <= x.start < x.end <= len(text):
        raise ValueError(
            f"{what} has the place [{x.start}, {x.end}), but expected 0 <= start < end <= {len(text)}, the number of "
            "characters of the text."
        )
    if text[x.start : x.end] != x.text:
        raise ValueError(
            f"{what} is {x.text!r:.80}, but at its place [{x.start}, {x.end}) stands {text[x.start : x.end]!r:.80}. "
            "Places count code points of Unicode."
        )


def _shown(x: EntityForm | EndForm) -> str:
    return f"{x.text!r:.80} at [{x.start}, {x.end})"


def _id_of(text: str) -> str:
    return f"text:{blake2b(text.encode('utf8'), digest_size=16).hexdigest()}"
