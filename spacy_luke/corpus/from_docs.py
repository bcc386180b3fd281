"""A linked corpus (see `corpus.linked_corpus`) from Docs with linked entities."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Corpus
from spacy.util import filter_spans

from ..annotations import UNLINKED, get_title
from ..stores.opening import find_files
from ..stores.parallel import Engine
from ..stores.work_folder import WorkFolder
from .linked_corpus import (
    LINKED_CORPUS,
    LinkedCorpus,
    Paragraph,
    counted,
    digest_sources,
    install_corpus,
    write_part,
)

_SUFFIX = ".spacy"
_PART_BYTES = 1 << 22  # of .spacy files in a part, at least


def build_from_docs(
    paths: Sequence[str | Path],
    output: str | Path,
    *,
    language: str = "en",
    spans_key: str | None = None,
    part_bytes: int = _PART_BYTES,
    engine: Engine = Engine(),
    progress: bool = False,
) -> LinkedCorpus:
    """The corpus of Docs in .spacy files, or folders of them, by name: their paragraphs, and the links of mentions that
    have a `kb_id_`. A part holds whole files, so that memory is that of a file, and of small ones that of part_bytes.

    Raises ValueError for a file that cannot be read, and where there is no text. Then, and when it is killed, the
    output is as it was, and the next run with the same files and settings goes on.
    """
    output = Path(output)
    LINKED_CORPUS.check_replaceable(output)
    files = _find_docbins(paths)
    sources = digest_sources(files, progress=progress)
    settings = {"language": language, "spans_key": spans_key, "part_bytes": part_bytes}
    plan = {"format": LINKED_CORPUS.form, "sources": sources, **settings}
    groups: list[list[Path]] = []
    size = part_bytes
    for file in files:
        if size >= part_bytes:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.stat().st_size
    tasks = [{"files": [str(file) for file in group], "language": language, "spans_key": spans_key} for group in groups]
    counts: Counter[str] = Counter()
    with WorkFolder(output, plan) as work:
        for found in work.run(make_doc_part, tasks, name="part", engine=engine, progress=progress):
            counts.update(found)
        parts = work.files("part-*.jsonl.gz")
        return install_corpus(parts, output, language=language, sources=sources, counts=dict(sorted(counts.items())))


def _find_docbins(paths: Sequence[str | Path]) -> list[Path]:
    """The .spacy files, and those in the folders, as spaCy finds them. ValueError where a path has none."""
    files: list[Path] = []
    for path in map(Path, paths):
        found = [x for x in find_files(path, _SUFFIX) if x.name.endswith(_SUFFIX)]
        if not found:
            raise ValueError(f"Expected .spacy files in {path}, but there are none.")
        files += found
    return files


def make_doc_part(folder: Path, name: str, task: dict[str, Any]) -> dict[str, int]:
    """The task that makes a part of the corpus from .spacy files; says what it found and left out."""
    counts: Counter[str] = Counter(pages=0, paragraphs=0, links=0)
    nlp = spacy.blank(task["language"])

    def paragraphs() -> Iterator[Paragraph]:
        for file in map(Path, task["files"]):
            try:
                docs = [example.reference for example in Corpus(file)(nlp)]
            except Exception as error:  # whatever msgpack, zlib and spaCy say of a damaged file
                raise ValueError(f"Expected Docs in {file}, as DocBin.to_disk writes them, but: {error!r}.") from error
            counts["pages"] += len(docs)
            yield from read_doc_paragraphs(docs, counts, spans_key=task["spans_key"], source=file.stem)

    write_part(folder / f"{name}.jsonl.gz", counted(paragraphs(), counts))
    return dict(counts)


def read_doc_paragraphs(
    docs: Iterable[Doc], counts: Counter[str], *, spans_key: str | None = None, source: str = "docs"
) -> Iterator[Paragraph]:
    """The lines of each Doc that are not blank; links are the mentions with a kb_id, which is the entity's title.

    spans_key: mentions are those of doc.spans[KEY], and of ones that overlap the longest is taken; None: of doc.ents.
    The title of a page is doc.user_data["title"], else "SOURCE, document 1" and so on. counts: gets what is left out.
    """
    for number, doc in enumerate(docs, 1):
        title = get_title(doc) or f"{source}, document {number}"
        links = _links(doc, spans_key, counts)
        start = taken = found = 0
        for line in doc.text.split("\n"):
            text = line.strip()
            before = start + len(line) - len(line.lstrip())
            inside = [
                (a - before, b - before, entity) for a, b, entity in links if before <= a and b <= before + len(text)
            ]
            taken += len(inside)
            start += len(line) + 1
            if text:
                found += 1
                yield Paragraph(title, text, inside)
        counts["links across lines, left out"] += len(links) - taken
        counts["documents without text"] += not found


def _links(doc: Doc, spans_key: str | None, counts: Counter[str]) -> list[tuple[int, int, str]]:
    spans: list[Span] = list(doc.ents if spans_key is None else doc.spans.get(spans_key, ()))
    linked = [span for span in spans if span.kb_id_ not in UNLINKED and span.text.strip()]
    counts["mentions without an entity, left out"] += len(spans) - len(linked)
    apart = filter_spans(linked)
    counts["mentions inside or across others, left out"] += len(linked) - len(apart)
    places = []
    for span in apart:
        blanks = len(span.text) - len(span.text.lstrip())
        places.append((span.start_char + blanks, span.start_char + len(span.text.rstrip()), span.kb_id_))
    return places
