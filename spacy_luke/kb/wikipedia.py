"""A Wikipedia dump as a source of a knowledge base: articles, redirects, links and disambiguation pages, in one pass.

An article is an entity. It is meant by the texts of the links to it (each counts), and, each as one link more, by its
title, also without what is in brackets, by titles that redirect to it, and by the titles of the disambiguation pages
that have it first in an item of a list. Its description is its first sentence; it is a person where its category says
so, which the English Wikipedia's do.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..wikipedia.dumps import Page, names_of_title, read_pages
from ..wikipedia.interwiki import NOT_LANGUAGES
from ..wikipedia.wikitext import Wiki, read_article
from .record import NOTHING, About
from .staging import SourceGroup, Staging

# The names of templates of disambiguation pages in large Wikipedias; `templates` adds others.
TEMPLATES = (
    "disambig",
    "disambiguation",
    "dab",
    "hndis",
    "geodis",
    "disamb",
    "begriffsklärung",
    "homonymie",
    "desambiguación",
    "desambiguação",
    "disambigua",
    "dp",
    "ujednoznacznienie",
    "неоднозначность",
    "曖昧さ回避",
    "消歧义",
)
_TEMPLATE = re.compile(r"\{\{\s*([^{}|\n]+?)\s*(?:\||\}\})")
_ITEM = re.compile(r"^\s*[*#]+(.*\[\[.*)$", re.MULTILINE)
_QUALIFIED = re.compile(r"(.+) \(disambiguation\)")
_PERSON = re.compile(r"\[\[\s*Category\s*:\s*(?:Living people|[^\]|\n]*\b(?:births|deaths)\s*[\]|])", re.IGNORECASE)
_SENTENCE = re.compile(r".*?(?:[^\s.(][^\s.(]{2,}|\d|\))[.!?](?=\s+[^a-z\s]|\s*$)|.*?[。！？]", re.DOTALL)
_EMPTY_BRACKETS = re.compile(r"\(\s*[,;:\s]*\)")
_LED_BRACKETS = re.compile(r"\(\s*[,;:][,;:\s]*")
LONGEST = 400  # characters of a description; the last word is not cut


def stage_dump(
    paths: Sequence[Path],
    staging: Staging,
    *,
    templates: Sequence[str] = (),
    unknown: str = "drop",
    progress: bool = False,
) -> None:
    """All parts of one dump. unknown: "drop" leaves links to articles that are not there out, and counts them.
    ValueError where there is no link, and where a file is damaged."""
    title = ", ".join(path.name for path in paths)
    source = staging.add_source(title)
    links = staging.add_group(SourceGroup(title, "count", True, unknown))
    others = staging.add_group(SourceGroup(title, "count", False, "drop", links))
    wanted = {name.casefold() for name in (*TEMPLATES, *templates)}
    found, number = False, 0
    wikis: dict[str, Path] = {}
    for path in paths:
        for page in read_pages(path, progress=progress, task="reading"):
            number += 1
            _check_wiki(page.wiki, path, wikis)
            if page.redirect is not None:
                staging.count("redirects")
                staging.add_redirect(page.title, page.redirect)
                for name in names_of_title(page.title):
                    staging.add_name(name, page.redirect, group=others)
            elif is_disambiguation(page, wanted):
                staging.count("disambiguation pages")
                name = match[1] if (match := _QUALIFIED.fullmatch(page.title)) else page.title
                for meaning in _meanings(page):
                    staging.add_name(name, meaning, group=others)
            else:
                staging.count("articles")
                found |= _add_article(page, staging, source, number, links, others)
    if not found:
        raise ValueError(f"Expected articles with links in {title}, but there is no link.")


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


def _language_of(wiki: Wiki) -> str:
    """The language in the address of a Wikipedia, "" where it is not known, or another kind of wiki."""
    if wiki.site is None:
        return wiki.language or ""
    is_wikipedia = wiki.site.endswith("wiki") and wiki.site not in NOT_LANGUAGES
    return wiki.site.removesuffix("wiki").replace("_", "-") if is_wikipedia else ""


def is_disambiguation(page: Page, templates: set[str]) -> bool:
    """templates: names in lower case; also those that begin with such a name and a blank, and English titles."""
    if _QUALIFIED.fullmatch(page.title):
        return True
    names = (match[1].casefold().replace("_", " ") for match in _TEMPLATE.finditer(page.text))
    return any(name in templates or name.partition(" ")[0] in ("disambiguation", "disambig") for name in names)


def first_sentence(text: str) -> str:
    """The first sentence of an article's text, without what empty templates left in brackets."""
    paragraph = next((line.strip() for line in text.splitlines() if len(line.split()) > 2), "")
    paragraph = _LED_BRACKETS.sub("(", _EMPTY_BRACKETS.sub("", paragraph))
    paragraph = " ".join(paragraph.split()).replace(" ,", ",").replace(" .", ".")
    match = _SENTENCE.match(paragraph)
    sentence = match[0] if match else paragraph
    return sentence if len(sentence) <= LONGEST else sentence[:LONGEST].rpartition(" ")[0]


def _add_article(page: Page, staging: Staging, source: int, number: int, links: int, others: int) -> bool:
    article = read_article(page.text, page.wiki)
    person = _PERSON.search(page.text) is not None
    about = About(page.title, url=language) if (language := _language_of(page.wiki)) else NOTHING
    staging.add_entity(
        page.title, source=source, line=number, text=first_sentence(article.text), person=person, about=about
    )
    for name in names_of_title(page.title):
        staging.add_name(name, page.title, group=others)
    for link in article.links:
        staging.add_name(link.text, link.title, group=links)
    staging.count("links", len(article.links))
    return bool(article.links)


def _meanings(page: Page) -> Iterator[str]:
    for match in _ITEM.finditer(page.text):
        first: str | None = next((link.title for link in read_article(match[1], page.wiki).links), None)
        if first is not None:
            yield first
