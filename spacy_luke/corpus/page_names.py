"""Names of entities by page: what the links of a page show, and where they lead (LUKE, appendix C)."""

from collections.abc import Collection

from ..aliases.store import AliasStore
from .linked_corpus import LinkedCorpus, group_pages


def page_names(
    corpus: LinkedCorpus, aliases: AliasStore, *, titles: Collection[str], min_link_probability: float = 0.01
) -> dict[str, dict[str, str]]:
    """{page: {name: entity}} of the pages `titles`, of which redirects lead to where they lead. Names that `aliases`
    says to be links more rarely are left out, and those that two links of the page lead elsewhere, upper or lower
    case."""
    moved = corpus.moved(titles)
    wanted: dict[str, list[str]] = {}
    for asked in titles:
        wanted.setdefault(moved.get(asked, asked), []).append(asked)
    pages = {}
    for title, paragraphs in group_pages(corpus.paragraphs(progress=True)):
        if title not in wanted:
            continue
        links = [(p.text[start:end], entity) for p in paragraphs for start, end, entity in p.links]
        led: dict[str, set[str]] = {}
        kept = [(name, x) for name, x in links if aliases.link_probability(name) >= min_link_probability]
        for name, entity in kept:
            led.setdefault(name.lower(), set()).add(entity)
        found = {name: entity for name, entity in kept if len(led[name.lower()]) == 1}
        pages.update(dict.fromkeys(wanted[title], found))
    return pages
