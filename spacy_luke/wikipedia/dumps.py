"""Pages of a Wikipedia dump (MediaWiki XML), plain or packed, one after another: a dump of any size is never held."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, iterparse

from ..stores.opening import open_source
from .wikitext import Wiki

_ARTICLES = "0"  # the namespace
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
    path: str | Path, *, counts: Counter[str] | None = None, progress: bool = False, task: str = "reading"
) -> Iterator[Page]:
    """Articles and redirects in order. Raises ValueError where the file is damaged, truncated or no MediaWiki XML.

    counts: gets how many pages of other namespaces, or without a title, were passed over.
    """
    with open_source(path, progress=progress, task=task) as file:
        wiki, namespaces, capital = Wiki(), [], True
        root: Element | None = None
        site: str | None = None
        for event, element in iterparse(file, ("start", "end")):
            tag = element.tag.rpartition("}")[2]
            if root is None:
                root = element
                if tag != "mediawiki":
                    raise ValueError(f"{path} is XML, but no dump of a wiki: expected <mediawiki>, but got <{tag}>.")
                wiki = Wiki(language=root.get(_LANGUAGE))
            elif event == "end" and tag == "namespace":
                namespaces.append(element.text or "")
                if element.get("key") == _ARTICLES:
                    capital = element.get("case", "first-letter") == "first-letter"
            elif event == "end" and tag == "dbname":
                site = element.text
            elif event == "end" and tag == "siteinfo":
                wiki = Wiki.of(namespaces, capital=capital, language=root.get(_LANGUAGE), site=site)
            elif event == "end" and tag == "page":
                if (page := _read_page(element, wiki)) is not None:
                    yield page
                elif counts is not None:
                    counts["pages of other namespaces"] += 1
                root.clear()


def names_of_title(title: str) -> list[str]:
    """A title, and the title without what is in brackets at its end."""
    match = _QUALIFIER.fullmatch(title)
    return [title, match[1]] if match else [title]


def _read_page(page: Element, wiki: Wiki) -> Page | None:
    """None for what is no article: talk, files, templates."""
    fields: dict[str, Element] = {}
    for element in page.iter():
        fields.setdefault(element.tag.rpartition("}")[2], element)
    title = wiki.title(_text(fields.get("title")))
    prefix, colon, _ = title.partition(":")
    namespace = _text(fields.get("ns")) or (_ARTICLES if not colon or prefix.lower() not in wiki.namespaces else "")
    if not title or namespace != _ARTICLES:
        return None
    text = _text(fields.get("text"))
    redirect = fields["redirect"].get("title") if "redirect" in fields else None
    if redirect is None and (match := _REDIRECT.match(text)):
        redirect = match[1]
    return Page(title, wiki.title(redirect) if redirect is not None else None, text, wiki)


def _text(element: Element | None) -> str:
    return "" if element is None else (element.text or "")
