"""What pages of a Wikipedia dump say of a knowledge base's entities: read as they come, or by tasks of their own.

With an engine the dumps are read once, into files of pages, and each file is parsed by a task, in processes of this
machine or on a Ray cluster. What was done stays in a folder of work beside the knowledge base (`.NAME.pages.work`)
until it is built, so that a build that was killed goes on; memory is that of a file's pages in each process.
"""

import gzip
import json
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..stores.parallel import Engine
from ..stores.work_folder import WorkFolder
from ..text.scripts import ALONE
from ..wikipedia.dumps import Page, read_pages
from ..wikipedia.wikitext import Wiki, read_article

CHARS = 16_000_000  # of pages in a file, about
_TEMPLATE = re.compile(r"\{\{\s*([^{}|\n]+?)\s*(?:\||\}\})")
_ITEM = re.compile(r"^\s*[*#]+(.*\[\[.*)$", re.MULTILINE)
_QUALIFIED = re.compile(r"(.+) \(disambiguation\)")
_PERSON = re.compile(r"\[\[\s*Category\s*:\s*(?:Living people|[^\]|\n]*\b(?:births|deaths)\s*[\]|])", re.IGNORECASE)

_SENTENCE = re.compile(r".*?(?:[^\s.(][^\s.(]{2,}|\d|\))[.!?](?=\s+[^a-z\s]|\s*$)|.*?[。！？]", re.DOTALL)
_EMPTY_BRACKETS = re.compile(r"\(\s*[,;:\s]*\)")
_LED_BRACKETS = re.compile(r"\(\s*[,;:][,;:\s]*")
_ALONE = re.compile(f"[{ALONE}]")
_UP_TO_A_WORD = re.compile(rf".*(?:[{ALONE}]|(?= ))", re.DOTALL)
LONGEST = 400  # characters of a description; the last word is not cut
_LEAST_WORDS, _LEAST_ALONE = 3, 7  # of a line that is no title: words, or characters of scripts without blanks


class PageFacts(NamedTuple):
    """kind: "redirect", "disambiguation" or "article". links: texts and titles; of a redirect where it leads, of a
    disambiguation page the name and its meanings. text: the first sentence of an article; person: whether it is one."""

    kind: str
    title: str
    links: Sequence[tuple[str, str]]
    text: str = ""
    person: bool = False
    language: str | None = None
    site: str | None = None


def read_page(page: Page, templates: Collection[str]) -> PageFacts:
    """templates: names of templates of disambiguation pages, in small letters."""
    if page.redirect is not None:
        return PageFacts("redirect", page.title, [(page.title, page.redirect)])
    if is_disambiguation(page, templates):
        name = match[1] if (match := _QUALIFIED.fullmatch(page.title)) else page.title
        return PageFacts("disambiguation", page.title, [(name, meaning) for meaning in _meanings(page)])
    article = read_article(page.text, page.wiki)
    links = [(link.text, link.title) for link in article.links]
    person = _PERSON.search(page.text) is not None
    text = first_sentence(article.text)
    return PageFacts("article", page.title, links, text, person, page.wiki.language, page.wiki.site)


def is_disambiguation(page: Page, templates: Collection[str]) -> bool:
    """templates: names in lower case; also those that begin with such a name and a blank, and English titles."""
    if _QUALIFIED.fullmatch(page.title):
        return True
    names = (match[1].casefold().replace("_", " ") for match in _TEMPLATE.finditer(page.text))
    return any(name in templates or name.partition(" ")[0] in ("disambiguation", "disambig") for name in names)


def _meanings(page: Page) -> Iterator[str]:
    for match in _ITEM.finditer(page.text):
        first: str | None = next((link.title for link in read_article(match[1], page.wiki).links), None)
        if first is not None:
            yield first


def pages_of(paths: Sequence[Path], *, progress: bool = False) -> Iterator[Page]:
    """Of all parts of one dump, in order. ValueError where they are of different wikis."""
    wikis: dict[str, Path] = {}
    for path in paths:
        for page in read_pages(path, progress=progress, task="reading"):
            _check_wiki(page.wiki, path, wikis)
            yield page


def _check_wiki(wiki: Wiki, path: Path, wikis: dict[str, Path]) -> None:
    """wikis: of the dumps so far, as far as they say it, and the first dump of each."""
    name = wiki.site or wiki.language
    if name is None or name in wikis:
        return
    wikis[name] = path
    if len(wikis) > 1:
        told = " and ".join(f"{path.name} ({name})" for name, path in wikis.items())
        raise ValueError(
            f"Expected the parts of one dump, but {told} are of different wikis, whose titles and names would mix. "
            "Build a knowledge base of each; of Wikidata one may have names in several languages (--language en,de)."
        )


def first_sentence(text: str) -> str:
    """The first sentence of an article's text, without what empty templates left in brackets."""
    paragraph = next(filter(_is_prose, map(str.strip, text.splitlines())), "")
    paragraph = _LED_BRACKETS.sub("(", _EMPTY_BRACKETS.sub("", paragraph))
    paragraph = " ".join(paragraph.split()).replace(" ,", ",").replace(" .", ".")
    match = _SENTENCE.match(paragraph)
    sentence = match[0] if match else paragraph
    if len(sentence) <= LONGEST:
        return sentence
    whole = _UP_TO_A_WORD.match(sentence[:LONGEST])
    return (whole[0] if whole else sentence[:LONGEST]).rstrip()


def _is_prose(line: str) -> bool:
    return len(line.split()) >= _LEAST_WORDS or len(_ALONE.findall(line)) >= _LEAST_ALONE


# ---- by tasks


def work_of(output: Path, paths: Sequence[Path], templates: Collection[str]) -> WorkFolder:
    """The folder of work of a knowledge base that is built of dumps at `paths`."""
    dumps = [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in paths]
    plan = {"format": "pages of dumps", "dumps": dumps, "templates": sorted(templates), "chars": CHARS}
    return WorkFolder(output.with_name(f"{output.name}.pages"), plan)


def read_by_tasks(
    work: WorkFolder, paths: Sequence[Path], templates: Collection[str], engine: Engine, *, progress: bool = False
) -> Iterator[PageFacts]:
    """The pages of all parts of one dump, in order."""
    stage = {"paths": list(map(str, paths)), "progress": progress}
    files = work.run_one(write_pages, stage, name="stage")
    tasks = [{"file": file, "templates": sorted(templates)} for file in files]
    for name in work.run(parse_part, tasks, name="read", engine=engine, progress=progress):
        for row in _read_lines(work.path / name):
            yield PageFacts(*row)


def write_pages(folder: Path, name: str, stage: dict[str, Any]) -> list[str]:
    """The task that reads dumps into files of pages, of which the first line says what the dump says of its wiki."""
    pages = pages_of([Path(path) for path in stage["paths"]], progress=stage["progress"])
    files: list[str] = []
    page = next(pages, None)
    while page is not None:
        wiki, size = page.wiki, 0
        files.append(f"pages-{len(files):05d}.jsonl.gz")
        with gzip.open(folder / files[-1], "wt", compresslevel=1, encoding="utf8") as file:
            _write_line(file, [sorted(wiki.namespaces), wiki.capital, wiki.language, wiki.site])
            while page is not None and size < CHARS and page.wiki == wiki:
                _write_line(file, [page.title, page.redirect, page.text])
                size += len(page.text)
                page = next(pages, None)
    return files


def parse_part(folder: Path, name: str, task: dict[str, Any]) -> str:
    """The task that parses a file of pages; the name of the file with what they say."""
    rows = _read_lines(folder / task["file"])
    namespaces, capital, language, site = next(rows)
    wiki, templates = Wiki(frozenset(namespaces), capital, language, site), frozenset(task["templates"])
    with gzip.open(folder / f"{name}.jsonl.gz", "wt", compresslevel=1, encoding="utf8") as file:
        for title, redirect, text in rows:
            _write_line(file, read_page(Page(title, redirect, text, wiki), templates))
    return f"{name}.jsonl.gz"


def _write_line(file: Any, row: Sequence[Any]) -> None:
    file.write(json.dumps(row) + "\n")


def _read_lines(path: Path) -> Iterator[list[Any]]:
    with gzip.open(path, "rt", encoding="utf8") as file:
        for line in file:
            yield json.loads(line)
