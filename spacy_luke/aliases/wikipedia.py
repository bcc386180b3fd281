"""Names from a Wikipedia dump (MediaWiki XML): links, their titles with redirects followed, and occurrences in the
text.

Two passes over the files: the first counts links, the second how often each linked text occurs, for which it takes the
names found in the first. Memory grows with the number of names, not of pages.
"""

from array import array
from collections.abc import Sequence
from pathlib import Path

from ..text.forms import key_of
from ..wikipedia.dumps import Page, names_of_title, read_pages
from ..wikipedia.wikitext import read_article
from .counts import AliasCounts
from .match import count_names, split_key
from .trie import new_trie


def count_dumps(
    paths: Sequence[str | Path], counts: AliasCounts, *, titles: bool = False, progress: bool = False
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


def _add_title(counts: AliasCounts, page: Page) -> None:
    for name in names_of_title(page.title):
        if (number := counts.add_name(name)) is not None:
            counts.add_link(number, page.title if page.redirect is None else page.redirect)
            counts.add_total(number, total=1, linked=0, occurring=0)


def _count_occurrences(paths: Sequence[str | Path], counts: AliasCounts, *, progress: bool) -> None:
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
