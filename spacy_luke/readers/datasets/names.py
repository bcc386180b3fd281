"""What belongs to a name in data sets that mark whole noun phrases: no article before it, no title of a person."""

from collections.abc import Sequence

ARTICLES = frozenset({"the", "a", "an"})
# Titles before persons' names, which are no part of them in CoNLL-2003 and what follows it.
TITLES = frozenset(
    "mr mr. mrs mrs. ms ms. miss dr dr. prof prof. professor president senator sen. rep. gov. governor captain "
    "capt. colonel col. general gen. secretary minister prime justice judge madam mayor chancellor ambassador".split()
)
PARTICLES = frozenset("al bin d' da de del della der di du el ibn la le van von".split())  # that may begin a name


def trim_name(words: Sequence[str], start: int, end: int, *, person: bool) -> tuple[int, int] | None:
    """The words [start, end) without articles and, of persons, titles and small words before them ("poor old Joe"); None
    where nothing is left."""
    while start < end and (words[start].lower() in ARTICLES or (person and _describes(words[start]))):
        start += 1
    return (start, end) if start < end else None


def _describes(word: str) -> bool:
    return word.lower() in TITLES or (word.islower() and word not in PARTICLES)
