"""Names in messages: which one may be meant where one was not found, and the first of many."""

import difflib
from collections.abc import Iterable, Sequence


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence on a wrong name: what may be meant, or what there is."""
    known = sorted(set(known))
    near = difflib.get_close_matches(name, known, n=1)
    return f". Is {near[0]} meant?" if near else f"; there are {', '.join(known)}."


def shorten(names: Sequence[str], most: int = 8, *, noun: str = "") -> str:
    """The first names, and how many more there are. noun: what these are called."""
    more = f" and {len(names) - most} more{noun and f' {noun}'}" if len(names) > most else ""
    return ", ".join(names[:most]) + more
