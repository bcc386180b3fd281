"""Places in files: lists of two numbers, [start, end)."""

import unicodedata
from typing import Any

from ..records import Place


def read_place(where: str, place: Any) -> Place:
    if not isinstance(place, list) or len(place) != 2 or not all(type(edge) is int for edge in place):
        raise ValueError(f"{where}: expected characters [start, end), but got {place!r:.80}.")
    return place[0], place[1]


def same_words(said: str, stands: str) -> bool:
    """Whether texts are equal but for blanks and their Unicode form: "ö" may be one character or two."""
    return said.split() == stands.split() or _composed(said) == _composed(stands)


def _composed(text: str) -> list[str]:
    return unicodedata.normalize("NFC", text).split()


def other_words(where: str, place: str, said: str, stands: str) -> ValueError:
    """said: a mention's own text; stands: what is at its place instead. RETURNS: the error to raise."""
    return ValueError(f"{where}: the mention at {place} should be {said!r:.60}, but there stands {stands!r:.60}.")


def unique(places: list[list[int]]) -> list[list[int]]:
    """Each place once, in their order."""
    return [list(place) for place in dict.fromkeys(map(tuple, places))]
