"""A Wikipedia dump as a source of a knowledge base: articles, redirects, links and disambiguation pages, in one pass.

An article is an entity. It is meant by the texts of the links to it (each counts), and, each as one link more, by its
title, also without what is in brackets, by titles that redirect to it, and by the titles of the disambiguation pages
that have it first in an item of a list. Its description is its first sentence; it is a person where its category says
so, which the English Wikipedia's do.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..stores.parallel import Engine
from ..wikipedia.dumps import names_of_title
from ..wikipedia.interwiki import NOT_LANGUAGES
from .pages import PageFacts, pages_of, read_by_tasks, read_page, work_of
from .record import ABOUT_NOTHING, About
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


def stage_dump(
    paths: Sequence[Path],
    staging: Staging,
    *,
    templates: Sequence[str] = (),
    unknown: str = "drop",
    engine: Engine | None = None,
    progress: bool = False,
) -> None:
    """All parts of one dump. unknown: "drop" leaves links to articles that are not there out, and counts them. engine:
    where pages are parsed, see `kb.pages`; None: here, as they come. ValueError where there is no link, and where a
    file is damaged."""
    title = ", ".join(path.name for path in paths)
    source = staging.add_source(title)
    links = staging.add_group(SourceGroup(title, "count", True, unknown))
    others = staging.add_group(SourceGroup(title, "count", False, "drop"))
    wanted = {name.casefold() for name in (*TEMPLATES, *templates)}
    pages: Iterator[PageFacts]
    if engine is None:
        pages = (read_page(page, wanted) for page in pages_of(paths, progress=progress))
    else:
        work = staging.held.enter_context(work_of(staging.output, paths, wanted))
        pages = read_by_tasks(work, paths, wanted, engine, progress=progress)
    found = False
    for number, page in enumerate(pages, 1):
        if page.kind == "redirect":
            staging.count("redirects")
            ((_, target),) = page.links
            staging.add_redirect(page.title, target)
            for name in names_of_title(page.title):
                staging.add_name(name, target, group=others)
        elif page.kind == "disambiguation":
            staging.count("disambiguation pages")
            for name, meaning in page.links:
                staging.add_name(name, meaning, group=others)
        else:
            staging.count("articles")
            found |= _add_article(page, staging, source, number, links, others)
    if not found:
        raise ValueError(f"Expected articles with links in {title}, but there is no link.")


def _language_of(page: PageFacts) -> str:
    """The language in the address of a Wikipedia, "" where it is not known, or another kind of wiki."""
    if page.site is None:
        return page.language or ""
    is_wikipedia = page.site.endswith("wiki") and page.site not in NOT_LANGUAGES
    return page.site.removesuffix("wiki").replace("_", "-") if is_wikipedia else ""


def _add_article(page: PageFacts, staging: Staging, source: int, number: int, links: int, others: int) -> bool:
    about = About(page.title, url=language) if (language := _language_of(page)) else ABOUT_NOTHING
    staging.add_entity(page.title, source=source, line=number, text=page.text, person=page.person, about=about)
    for name in names_of_title(page.title):
        staging.add_name(name, page.title, group=others)
    for text, title in page.links:
        staging.add_name(text, title, group=links)
    staging.count("links", len(page.links))
    return bool(page.links)
