"""What belongs to a name in data sets that mark whole noun phrases: no article before it, no title of a person."""

from collections.abc import Sequence

_ARTICLES = frozenset({"the", "a", "an"})
# Titles before persons' names, which are no part of them in CoNLL-2003 and what follows it.
_TITLES = frozenset(
    "mr mr. mrs mrs. ms ms. miss dr dr. prof prof. professor president senator sen. rep. gov. governor captain "
    "capt. colonel col. general gen. secretary minister prime justice judge madam mayor chancellor ambassador".split()
)
_PARTICLES = frozenset("al bin d' da de del della der di du el ibn la le van von".split())  # that may begin a name


def trim_name(words: Sequence[str], start: int, end: int, *, person: bool) -> tuple[int, int] | None:
    """The words [start, end) without articles before them, and of persons without what stands before and in their
    titles ("US President", "poor old"); None where nothing is left."""
    if person:
        start = max((i + 1 for i in range(start, end) if words[i].lower() in _TITLES), default=start)
    while start < end and (words[start].lower() in _ARTICLES or (person and _is_small(words[start]))):
        start += 1
    return (start, end) if start < end else None


def _is_small(word: str) -> bool:
    return word.islower() and word not in _PARTICLES
