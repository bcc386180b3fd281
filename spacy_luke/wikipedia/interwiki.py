"""Which pages of several languages are one entity.

Sources: `.tsv`, plain, .gz or .bz2: language, title, language, title a line, as `interwiki.tsv` of a corpus, which
holds the links to other languages that articles had until 2013; Wikidata's dump of items (`.json`), whose sitelinks
say it since; or a wiki's SQL dump of both, LANGwiki-DATE-langlinks.sql with LANGwiki-DATE-page.sql beside it.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..stores.opening import open_source
from .sql_dumps import read_rows
from .wikidata import read_items

Name = tuple[str, str]  # language, title
_LANGLINKS = re.compile(r"([a-z_]+)wiki-(\w+)-langlinks\.sql(\.gz|\.bz2)?")
NOT_LANGUAGES = ("commonswiki", "specieswiki", "metawiki", "wikidatawiki", "mediawikiwiki", "sourceswiki")


def read_interwiki(path: Path, *, progress: bool = False) -> Iterator[list[Name]]:
    """Pages that are one entity, two or more. ValueError names the line that is not as expected."""
    if path.name.removesuffix(".gz").removesuffix(".bz2").endswith(".json"):
        for number, item in read_items(path, progress):
            if len(names := _sitelinks(path, number, item)) > 1:
                yield names
    elif _LANGLINKS.fullmatch(path.name):
        yield from _langlinks(path, progress)
    else:
        yield from _pairs(path, progress)


def _langlinks(path: Path, progress: bool) -> Iterator[list[Name]]:
    """Of articles: the titles of those that have links are held in memory, some 100 bytes each."""
    name = _LANGLINKS.fullmatch(path.name)
    assert name is not None
    language, date, ending = name.groups()
    pages = path.with_name(f"{language}wiki-{date}-page.sql{ending or ''}")
    if not pages.is_file():
        raise ValueError(
            f"{path} tells pages by their numbers: expected {pages.name} beside it, which says their titles."
        )
    titles = {
        number: title.replace("_", " ")
        for number, space, title, *_ in read_rows(pages, "page", progress=progress)
        if space == "0"
    }
    found: list[Name] = []
    last = ""
    for number, other, title in read_rows(path, "langlinks", progress=progress):
        if number != last:  # a page's links stand together
            if len(found) > 1:
                yield found
            found = [(language.replace("_", "-"), titles[number])] if number in titles else []
            last = number
        if found and title:
            found.append((other, title.replace("_", " ")))
    if len(found) > 1:
        yield found


def _pairs(path: Path, progress: bool) -> Iterator[list[Name]]:
    with (
        open_source(path, progress=progress, task="interwiki links of") as file,
        io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n") as lines,
    ):
        for number, line in enumerate(lines, 1):
            fields = line.strip("\r\n").split("\t")
            if len(fields) != 4 or not all(fields):
                raise ValueError(
                    f"{path}, line {number}: expected language, title, language, title with tabs, but got "
                    f"{line[:80]!r}."
                )
            yield [(fields[0], fields[1]), (fields[2], fields[3])]


def _sitelinks(path: Path, number: int, item: dict[str, Any]) -> list[Name]:
    """Pages of an item, by their wikis: "enwiki" is that of "en"."""
    try:
        links = item.get("sitelinks") or {}
        wikis = [wiki for wiki in sorted(links) if wiki.endswith("wiki") and wiki not in NOT_LANGUAGES]
        return [(wiki.removesuffix("wiki").replace("_", "-"), links[wiki]["title"]) for wiki in wikis]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}, line {number}: expected an item of Wikidata, but {error!r}.") from error
