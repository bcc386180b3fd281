"""Names from a Wikipedia dump (MediaWiki XML): links, their titles with redirects followed, and occurrences in the
text.

Two passes over the files: the first counts links, the second how often each linked text occurs, for which it takes the
names found in the first. Pages are read one by one; memory grows with the number of names, not of pages.
"""

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, iterparse

from .counts import MentionCounts
from .match import count_names, split_key
from .names import key_of
from .sources import open_source
from .store import new_trie
from .wikitext import Wiki, read_article

ARTICLES = "0"  # the namespace
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_REDIRECT = re.compile(r"\s*#\w+\s*:?\s*\[\[\s*([^\]|#]+)")  # in any language: #REDIRECT, #WEITERLEITUNG
_QUALIFIER = re.compile(r"(.+?) \([^()]+\)")  # Mercury (planet)


class Page(NamedTuple):
    """An article or a redirect (redirect: the title that it leads to); wiki: the same for all pages of a dump."""

    title: str
    redirect: str | None
    text: str
    wiki: Wiki


def read_pages(
    path: str | Path, *, counts: Counter | None = None, progress: bool = False, task: str = "reading"
) -> Iterator[Page]:
    """Articles and redirects in order. Raises ValueError where the file is damaged, truncated or no MediaWiki XML.

    counts: gets how many pages of other namespaces, or without a title, were passed over.
    """
    with open_source(path, progress=progress, task=task) as file:
        wiki, namespaces, capital = Wiki(), [], True
        root: Element | None = None
        for event, element in iterparse(file, ("start", "end")):
            tag = element.tag.rpartition("}")[2]
            if root is None:
                root = element
                if tag != "mediawiki":
                    raise ValueError(f"{path} is XML, but no dump of a wiki: expected <mediawiki>, but got <{tag}>.")
                wiki = Wiki(language=root.get(_LANGUAGE))
            elif event == "end" and tag == "namespace":
                namespaces.append(element.text or "")
                if element.get("key") == ARTICLES:
                    capital = element.get("case", "first-letter") == "first-letter"
            elif event == "end" and tag == "siteinfo":
                wiki = Wiki.of(namespaces, capital=capital, language=root.get(_LANGUAGE))
            elif event == "end" and tag == "page":
                if (page := _read_page(element, wiki)) is not None:
                    yield page
                elif counts is not None:
                    counts["pages of other namespaces"] += 1
                root.clear()


def count_dumps(
    paths: Sequence[str | Path], counts: MentionCounts, *, titles: bool = False, progress: bool = False
) -> dict[str, int]:
    """Add a dump's names to `counts`, and say how many pages and links it has. paths: all parts of one dump.

    titles: the titles of pages and redirects are names too, each counted as one link in p(entity | name), but not in
    link probabilities, which are those of links alone. Raises ValueError where the dump has no link.
    """
    found = {"pages": 0, "redirects": 0, "links": 0}
    redirects: dict[str, str] = {}
    for path in paths:
        for page in read_pages(path, progress=progress, task="links of"):
            if page.redirect is not None:
                found["redirects"] += 1
                redirects[page.title] = page.redirect
            else:
                found["pages"] += 1
            if titles:
                _add_title(counts, page)
            for link in [] if page.redirect is not None else read_article(page.text, page.wiki).links:
                found["links"] += 1
                if (number := counts.add_name(link.text)) is not None:
                    counts.add_link(number, link.title)
                    counts.add_total(number, total=1, linked=1, occurring=0)
    if not found["links"]:
        raise ValueError(f"Expected articles with links in {', '.join(map(str, paths))}, but there is no link.")
    counts.rename(redirects)
    _count_occurrences(paths, counts, progress=progress)
    return found


def names_of_title(title: str) -> list[str]:
    """A title, and the title without what is in brackets at its end."""
    match = _QUALIFIER.fullmatch(title)
    return [title, match[1]] if match else [title]


def _add_title(counts: MentionCounts, page: Page) -> None:
    for name in names_of_title(page.title):
        if (number := counts.add_name(name)) is not None:
            counts.add_link(number, page.title if page.redirect is None else page.redirect)
            counts.add_total(number, total=1, linked=0, occurring=0)


def _count_occurrences(paths: Sequence[str | Path], counts: MentionCounts, *, progress: bool) -> None:
    trie = new_trie(sorted(counts.names))
    occurring_T = array("Q", bytes(8 * len(trie)))
    longest = max(map(len, counts.names), default=0)
    for path in paths:
        for page in read_pages(path, progress=progress, task="names in"):
            if page.redirect is not None:
                continue
            for paragraph in read_article(page.text, page.wiki).text.splitlines():
                key = key_of(paragraph, case=counts.case)
                count_names(trie, split_key(key), occurring_T, longest=longest)
    for key, number in counts.names.items():
        counts.add_total(number, total=0, linked=0, occurring=occurring_T[trie[key]])


def _read_page(page: Element, wiki: Wiki) -> Page | None:
    """None for what is no article: talk, files, templates."""
    fields: dict[str, Element] = {}
    for element in page.iter():
        fields.setdefault(element.tag.rpartition("}")[2], element)
    title = wiki.title(_text(fields.get("title")))
    prefix, colon, _ = title.partition(":")
    namespace = _text(fields.get("ns")) or (ARTICLES if not colon or prefix.lower() not in wiki.namespaces else "")
    if not title or namespace != ARTICLES:
        return None
    text = _text(fields.get("text"))
    redirect = fields["redirect"].get("title") if "redirect" in fields else None
    if redirect is None and (match := _REDIRECT.match(text)):
        redirect = match[1]
    return Page(title, wiki.title(redirect) if redirect is not None else None, text, wiki)


def _text(element: Element | None) -> str:
    return "" if element is None else (element.text or "")
