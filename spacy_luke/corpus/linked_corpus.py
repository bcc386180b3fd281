"""A linked corpus: paragraphs of pages, whose links lead to entities.

manifest.json            {"language", "sources": [[name, bytes, BLAKE2b]], "counts"}, and what all manifests have (see
                         `stores.folder`)
part-00000.jsonl.gz ...  a paragraph a line, {"page": title, "text", "links": [[start, end, title], ...], "lead": bool}:
                         pages in the order of the source, links in order and none across another; text[start:end] is
                         what a link shows; lead: before the first heading of the page
interwiki.tsv            language, title, language, title: pages that are one entity, where the source says so;
                         see `wikipedia.interwiki`
redirects.tsv.gz         title, title: where the redirects of a wiki lead, redirects to redirects followed
"""

import gzip
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..stores.arrays import AGAIN
from ..stores.atomic import link_or_copy, write_atomically, write_folder_atomically
from ..stores.digests import digest_file
from ..stores.folder import StoreFolder, StoreKind
from ..stores.opening import open_source
from ..stores.plain_text import parse_json
from ..stores.progress import ProgressBar

INTERWIKI = "interwiki.tsv"
REDIRECTS = "redirects.tsv.gz"
PART_CHARS = 1 << 23  # characters of a part, about


class Paragraph(NamedTuple):
    """links: (start, end, title) of each, characters of the text; lead: before the first heading of its page."""

    page: str
    text: str
    links: list[tuple[int, int, str]]
    lead: bool = True


def _is_whole(manifest: dict[str, Any]) -> bool:
    language = manifest["language"]
    return isinstance(manifest["counts"], dict) and (language is None or isinstance(language, str))


LINKED_CORPUS = StoreKind(
    what="linked corpus",
    many="a linked corpus",
    form="spacy_luke linked corpus",
    build="Build it with `python -m spacy luke build-corpus`.",
    is_whole=_is_whole,
)


class LinkedCorpus(StoreFolder):
    """A linked corpus in a folder."""

    kind = LINKED_CORPUS

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        super().__init__(path, manifest)
        self.language: str | None = manifest["language"]
        self.parts = [path / name for name in sorted(manifest["files"]) if name.startswith("part-")]
        self.interwiki = path / INTERWIKI if INTERWIKI in manifest["files"] else None

    @property
    def digest(self) -> dict[str, Any]:
        """Sizes and digests of the parts: the same for the same paragraphs."""
        return {path.name: self.manifest["files"][path.name] for path in self.parts}

    def moved(self, titles: Collection[str]) -> dict[str, str]:
        """Those of the titles that are redirects, as far as the source says so, and where each leads."""
        if REDIRECTS not in self.manifest["files"]:
            return {}
        with open_source(self.path / REDIRECTS) as file:
            rows = (line.decode("utf8").rstrip("\n").split("\t") for line in file)
            return {title: target for title, target in rows if title in titles}

    def paragraphs(self, *, progress: bool = False) -> Iterator[Paragraph]:
        """All of them, in order."""
        for part in ProgressBar(self.parts, f"reading {self.path.name}", show=progress):
            yield from read_linked_part(part)


def read_linked_part(path: Path) -> Iterator[Paragraph]:
    """Paragraphs of a part. ValueError names the line that is not as expected."""
    with open_source(path) as file:
        for number, line in enumerate(file, 1):
            try:
                data = parse_json(line)
                text = data["text"]
                links = [(start, end, title) for start, end, title in data["links"]]
                if not all(0 <= start < end <= len(text) and title for start, end, title in links):
                    raise ValueError("a link lies outside of the text, or leads to no title")
                yield Paragraph(data["page"], text, links, data["lead"])
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}, line {number}: expected a paragraph, but {error!r}. {AGAIN}") from error


def group_pages(paragraphs: Iterable[Paragraph]) -> Iterator[tuple[str, list[Paragraph]]]:
    """Titles and paragraphs of pages, one page after the other."""
    title = ""
    page: list[Paragraph] = []
    for paragraph in paragraphs:
        if page and paragraph.page != title:
            yield title, page
            page = []
        title = paragraph.page
        page.append(paragraph)
    if page:
        yield title, page


def write_part(path: Path, paragraphs: Iterable[Paragraph]) -> None:
    """The same paragraphs give the same bytes (on machines with the same zlib)."""
    with write_atomically(path) as temporary, open_gzip(temporary) as file:
        for paragraph in paragraphs:
            file.write(json.dumps(paragraph._asdict(), ensure_ascii=False).encode("utf8") + b"\n")


@contextmanager
def open_gzip(path: Path, *, level: int = 6) -> Iterator[gzip.GzipFile]:
    """For writing, without a name and a time in the file."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", level, raw, mtime=0) as file:
        yield file


def check_links(paragraph: Paragraph) -> None:
    """ValueError for a link that is empty, outside of the text, or not after the one before it."""
    last = 0
    for i, (start, end, title) in enumerate(paragraph.links):
        if not (last <= start < end <= len(paragraph.text) and title):
            raise ValueError(
                f"Expected links in order, in a text of {len(paragraph.text)} characters of {paragraph.page!r}, but "
                f"link {i} is [{start}, {end}) to {title!r} after {last}."
            )
        last = end


def counted(paragraphs: Iterable[Paragraph], counts: Counter[str]) -> Iterator[Paragraph]:
    """Paragraphs as they come, each checked (`check_links`) and counted with its links."""
    for paragraph in paragraphs:
        check_links(paragraph)
        counts.update({"paragraphs": 1, "links": len(paragraph.links)})
        yield paragraph


def finish_corpus(folder: Path, *, language: str | None, sources: list[Any], counts: dict[str, int]) -> None:
    """The manifest. ValueError where there is no paragraph."""
    if not counts.get("paragraphs"):
        names = ", ".join(source[0] for source in sources)
        raise ValueError(f"Expected text in {names or 'the documents'}, but there is none: {counts}.")
    LINKED_CORPUS.write_manifest(folder, {"language": language, "sources": sources, "counts": counts})


def digest_sources(paths: Sequence[Path], *, progress: bool = False) -> list[Any]:
    """Name, size and digest of each file."""
    for path in paths:
        if not Path(path).is_file():
            raise ValueError(f"Expected a file at {path}, but there is none.")
    return [[path.name, path.stat().st_size, digest_file(path, progress=progress)] for path in map(Path, paths)]


def install_corpus(files: Sequence[Path], output: Path, **manifest: Any) -> LinkedCorpus:
    """Files of parts that are finished take the place of the corpus at `output`, whole or not at all."""
    with write_folder_atomically(Path(output)) as folder:
        for path in files:
            link_or_copy(path, folder / path.name)
        finish_corpus(folder, **manifest)
    return LinkedCorpus.open(output)
