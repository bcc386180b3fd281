"""Titles of Wikipedia and the names that texts link to them by: pages of a dump."""

from collections import Counter, defaultdict
from pathlib import Path

from ...wikipedia.dumps import names_of_title, read_pages
from ...wikipedia.wikitext import read_article
from ..pages import first_sentence
from .catalogue import Catalogue, Known

_LEAST = 2  # links to a page that no other source knows
_SKIPPED = ("List of", "Lists of", "Category:", "File:", "Image:", "Wikipedia:", "Portal:", "Template:", ":")
_PAGE = 8.0  # the prominence of a page to which one link leads

Links = dict[str, Counter[str]]  # title: names and how often they link to it


def read_dump_links(path: Path) -> tuple[Links, dict[str, str]]:
    """Links of the pages of a dump, and the first sentences of its articles."""
    links: defaultdict[str, Counter[str]] = defaultdict(Counter)
    sentences, redirects = {}, {}
    for page in read_pages(path):
        if page.redirect is not None:
            redirects[page.title] = page.redirect
            links[page.redirect][page.title] += 1
            continue
        article = read_article(page.text, page.wiki)
        sentences[page.title] = first_sentence(article.text)
        links[page.title][page.title] += 1
        for link in article.links:
            links[link.title][link.text] += 1
    for title, target in redirects.items():
        if title in links:
            links[target].update(links.pop(title))
    return links, sentences


def add_pages(links: Links, sentences: dict[str, str], catalogue: Catalogue, *, what: str) -> None:
    """Pages that are entities: most of their links begin with a capital. A page without brackets in its title is the
    best known entity of this name, as Wikipedia's main meanings are."""
    for title in sorted(links, key=lambda one: (-links[one].total(), one)):
        names, total = links[title], links[title].total()
        capitals = Counter({name: n for name, n in names.items() if name[:1].isupper()})
        known = _find(title, catalogue, links)
        if 2 * capitals.total() <= total or title.startswith(_SKIPPED) or (known is None and total < _LEAST):
            catalogue.left_out[f"titles of {what} that are no names, or linked once"] += 1
            continue
        if known is None:
            entity = title if catalogue.get(title) is None else f"{title} (Wikipedia)"
            known = catalogue.add(Known(entity, title, page=True, url="en", prominence=_PAGE * total**0.5))
            for name in names_of_title(title):
                known.add_name(name)
        elif not known.page:
            known.page, known.url, known.title = True, "en", title
        known.links.update(capitals)
        known.description = sentences.get(title) or known.description
        catalogue.read[f"titles of {what}"] += 1


def _find(title: str, catalogue: Catalogue, links: Links) -> Known | None:
    """Its own entity; or the best known of this name that has no page yet: by a further title only where no page has
    the title of that one."""
    own = catalogue.get(title)
    if own is not None:
        return own
    found = [one for one in catalogue.named(title) if not one.page or one.title == title]
    same = [one for one in found if one.title.casefold() == title.casefold()]
    return next(iter(same), next((one for one in found if one.title not in links), None))
