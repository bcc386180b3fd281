"""A linked corpus from Wikipedia dumps.

First the dumps are read once, into files of pages and a table of redirects; then the parts of the corpus are made from
the files of pages, each by a task of its own, on whichever engine. All of it lies in a folder of work beside the
output, so that a build that was killed goes on with what is missing; memory is that of one part in each process.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from gzip import GzipFile
from pathlib import Path
from typing import Any

from ..stores.atomic import write_atomically
from ..stores.opening import open_source
from ..stores.parallel import Engine
from ..stores.progress import ProgressBar
from ..stores.work_folder import WorkFolder
from ..wikipedia.dumps import Page, read_pages
from ..wikipedia.wikitext import Article, Wiki, read_article, read_language_links
from .linked_corpus import (
    INTERWIKI,
    LINKED_CORPUS,
    PART_CHARS,
    REDIRECTS,
    LinkedCorpus,
    Paragraph,
    digest_sources,
    install_corpus,
    open_gzip,
    write_part,
)

_DATABASE = "redirects.sqlite"  # title, target
_COMMIT = 100_000  # redirects


def build_from_dumps(
    paths: Sequence[str | Path],
    output: str | Path,
    *,
    language: str | None = None,
    part_chars: int = PART_CHARS,
    engine: Engine = Engine(),
    progress: bool = False,
) -> LinkedCorpus:
    """The corpus of a wiki. paths: all parts of its dump, plain, .bz2 (multistream too) or .gz, in their order.

    language: its code, None: as the dump says. part_chars: characters of wikitext in a part, about. Links lead where
    redirects of any number lead; the text of a link stays where it leads nowhere, in a circle, or to what is no
    article, and so do the texts of links to other wikis. A link of a page to itself stays a link. The manifest counts
    all of it.

    Raises ValueError for a file that is damaged, truncated or no dump, and where there is no text. Then, and when it is
    killed, the output is as it was, and the next run with the same files and settings goes on.
    """
    files, output = [Path(path) for path in paths], Path(output)
    LINKED_CORPUS.check_replaceable(output)
    sources = digest_sources(files, progress=progress)
    plan = {"format": LINKED_CORPUS.form, "sources": sources, "language": language, "part_chars": part_chars}
    with WorkFolder(output, plan) as work:
        stage = {"paths": [str(path) for path in files], "part_chars": part_chars, "progress": progress}
        staged = work.run_one(stage_pages, stage, name="stage")
        counts: Counter[str] = Counter(staged["counts"])
        language = language or staged["wikis"][0]["language"]
        tasks = [
            {**staged["wikis"][chunk["wiki"]], "file": chunk["file"], "own": language} for chunk in staged["chunks"]
        ]
        for found in work.run(make_part, tasks, name="part", engine=engine, progress=progress):
            counts.update(found)
        parts = work.files("part-*.jsonl.gz")
        if counts["links to other languages"]:
            with write_atomically(work.path / INTERWIKI) as temporary, temporary.open("wb") as file:
                for path in work.files("part-*.tsv"):
                    file.write(path.read_bytes())
            parts.append(work.path / INTERWIKI)
        if counts["redirects"]:
            parts.append(_write_redirects(work.path, _wiki_of(staged["wikis"][0]), progress=progress))
        return install_corpus(parts, output, language=language, sources=sources, counts=dict(sorted(counts.items())))


def stage_pages(folder: Path, name: str, stage: dict[str, Any]) -> dict[str, Any]:
    """The task that reads dumps: files of pages, the table of redirects, and what the dumps say of their wikis."""
    counts: Counter[str] = Counter(pages=0, redirects=0)
    chunks: list[dict[str, Any]] = []
    wikis: list[dict[str, Any]] = []
    (folder / _DATABASE).unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / _DATABASE)) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("CREATE TABLE redirects (title TEXT PRIMARY KEY, target TEXT NOT NULL) WITHOUT ROWID")
        for path in stage["paths"]:
            pages = _keep_redirects(read_pages(path, counts=counts, progress=stage["progress"]), database, counts)
            wiki: Wiki | None = None
            for file, page_wiki in _write_chunks(pages, folder, len(chunks), stage["part_chars"]):
                if wiki is None:
                    wiki = page_wiki
                    wikis.append(_wiki_to_json(wiki))
                chunks.append({"file": file, "wiki": len(wikis) - 1})
        database.commit()
    if not chunks:
        raise ValueError(f"Expected articles in {', '.join(stage['paths'])}, but found {dict(counts)}.")
    return {"chunks": chunks, "wikis": wikis, "counts": dict(counts)}


def _keep_redirects(pages: Iterator[Page], database: sqlite3.Connection, counts: Counter[str]) -> Iterator[Page]:
    """The articles; redirects go to the table."""
    for page in pages:
        if page.redirect is None:
            counts["pages"] += 1
            yield page
        else:
            counts["redirects"] += 1
            database.execute("INSERT OR REPLACE INTO redirects VALUES (?, ?)", (page.title, page.redirect))
            if counts["redirects"] % _COMMIT == 0:
                database.commit()


def _write_chunks(pages: Iterator[Page], folder: Path, first: int, chars: int) -> Iterator[tuple[str, Wiki]]:
    """Files of [title, wikitext], a line each, of about `chars` characters."""
    number = first
    page = next(pages, None)
    while page is not None:
        file, wiki, size = f"pages-{number:05d}.jsonl.gz", page.wiki, 0
        with open_gzip(folder / file, level=1) as chunk:
            while page is not None and size < chars:
                _write_page(chunk, page)
                size += len(page.text)
                page = next(pages, None)
        yield file, wiki
        number += 1


def _write_page(chunk: GzipFile, page: Page) -> None:
    chunk.write(json.dumps([page.title, page.text], ensure_ascii=False).encode("utf8") + b"\n")


def make_part(folder: Path, name: str, task: dict[str, Any]) -> dict[str, int]:
    """The task that makes a part of the corpus from a file of pages; says what it found and left out."""
    counts: Counter[str] = Counter(dict.fromkeys(("paragraphs", "links"), 0))
    wiki = _wiki_of(task)
    others: list[str] = []
    with closing(_open_redirects(folder)) as database:
        follow = follow_redirects(database, wiki)

        def paragraphs() -> Iterator[Paragraph]:
            with open_source(folder / task["file"]) as file:
                for line in file:
                    title, text = json.loads(line)
                    for language, other in read_language_links(text, wiki) if task["own"] else ():
                        others.append(f"{task['own']}\t{title}\t{language}\t{other}\n")
                    found = list(read_paragraphs(title, read_article(text, wiki), follow=follow, counts=counts))
                    counts["pages without text"] += not found
                    yield from found

        write_part(folder / f"{name}.jsonl.gz", paragraphs())
    (folder / f"{name}.tsv").write_bytes("".join(others).encode("utf8"))
    counts["links to other languages"] += len(others)
    return dict(counts)


def read_paragraphs(
    title: str, article: Article, *, follow: Callable[[str, Counter[str]], str | None], counts: Counter[str]
) -> Iterator[Paragraph]:
    """Lines of an article that are not blank. follow(title, counts): where a link leads; None: it is left out."""
    start = number = 0
    for line in article.text.split("\n"):
        text = line.strip()
        before = start + len(line) - len(line.lstrip())
        links = []
        while number < len(article.links) and article.links[number].start <= start + len(line):
            link = article.links[number]
            number += 1
            if link.start == link.end:
                counts["links without text"] += 1
            elif (target := follow(link.title, counts)) is not None:
                counts["links to the page itself"] += target == title
                links.append((link.start - before, link.end - before, target))
        if text:
            counts["paragraphs"] += 1
            counts["links"] += len(links)
            yield Paragraph(title, text, links, start < article.lead)
        start += len(line) + 1


def _write_redirects(folder: Path, wiki: Wiki, *, progress: bool) -> Path:
    """Those that lead to a page, or to none that is known, by title."""
    path = folder / REDIRECTS
    with closing(_open_redirects(folder)) as database, write_atomically(path) as temporary:
        with open_gzip(temporary) as table:
            rows = database.execute("SELECT title FROM redirects ORDER BY title")
            for (title,) in ProgressBar(rows, "redirects", show=progress):
                if (target := _resolve(title, database, wiki)[0]) is not None:
                    table.write(f"{title}\t{target}\n".encode())
    return path


def _open_redirects(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{(folder / _DATABASE).as_uri()}?mode=ro&immutable=1", uri=True)


def follow_redirects(database: sqlite3.Connection, wiki: Wiki) -> Callable[[str, Counter[str]], str | None]:
    """A function that says where a title leads, and counts what is left out."""
    known: dict[str, tuple[str | None, str | None]] = {}

    def follow(title: str, counts: Counter[str]) -> str | None:
        found = known.get(title)
        if found is None:
            found = known[title] = _resolve(title, database, wiki)
        target, what = found
        if what is not None:
            counts[what] += 1
        return target

    return follow


def _resolve(title: str, database: sqlite3.Connection, wiki: Wiki) -> tuple[str | None, str | None]:
    """Where a title leads, None for nowhere, and what is to be counted."""
    seen = [title]
    while row := database.execute("SELECT target FROM redirects WHERE title = ?", (seen[-1],)).fetchone():
        if row[0] in seen:
            return None, "links into redirect loops, left out"
        seen.append(row[0])
    if len(seen) == 1:
        return title, None
    prefix, colon, _ = seen[-1].partition(":")
    if not seen[-1] or (colon and prefix.lower() in wiki.namespaces):
        return None, "links over redirects to no article, left out"
    return seen[-1], "links over redirects" if len(seen) == 2 else "links over redirects to redirects"


def _wiki_of(told: dict[str, Any]) -> Wiki:
    return Wiki(frozenset(told["namespaces"]), told["capital"], told["language"])


def _wiki_to_json(wiki: Wiki) -> dict[str, Any]:
    return {"namespaces": sorted(wiki.namespaces), "capital": wiki.capital, "language": wiki.language}
