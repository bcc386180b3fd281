"""Punctuation that is attached to words, as in texts whose words are what blanks divide: "(AP)", "Boise.", "Ada's".

Encoders read "Boise." in the same pieces as "Boise" and ".", so that no training can tell whether a name ends before
the full stop or behind it. Where mentions are read without what is attached to their words, they have the pieces that
they have in other texts.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from .forms import LETTERS


def _signs(*categories: str) -> dict[str, str]:
    """The characters of each of these categories of Unicode."""
    found = dict.fromkeys(categories, "")
    for sign in map(chr, range(0x10000)):
        if (category := unicodedata.category(sign)) in found:
            found[category] += sign
    return found


_OF = _signs("Ps", "Pi", "Pe", "Pf", "Cf")
# Brackets and quotes that open and close, by Unicode's categories, and those of ASCII.
_OPENING = _OF["Ps"] + _OF["Pi"] + "<\"'`¿¡"
_CLOSING = _OF["Pe"] + _OF["Pf"] + ">\"'`“‘"
# Of sentences and lists, also in Greek, Armenian, Arabic, Hindi, Ethiopic, Burmese, Khmer, Chinese and Japanese.
_STOPS = (
    r".,;:!?…\u037e\u0387\u0589\u055c\u055e\u060c\u061b\u061f\u06d4\u0964\u0965\u1362-\u1368\u104a\u104b\u17d4-\u17d6"
    "、。！，．：；？｡､"
)
# That are not seen: soft hyphens, blanks without width, marks of direction and of the byte order; joiners are letters.
_UNSEEN = re.sub("[\u200c\u200d]", "", _OF["Cf"])
_HEAD = re.compile(f"[{re.escape(_OPENING + _UNSEEN)}]+(?=[{LETTERS}])")
_TAIL = re.compile(f"(?<=[{LETTERS}])(?:['’][sSſ]\\b)?[{_STOPS}{re.escape(_CLOSING + _UNSEEN)}]*$")
_PAIRS = {")": "(", "]": "[", "}": "{", ">": "<"}


@lru_cache(maxsize=200_000)
def attached(word: str, kept: frozenset[str]) -> tuple[int, int]:
    """How many characters before and behind the word are attached to it: brackets, quotes, full stops and the like,
    what is not seen, and 's. A word that is nothing but punctuation has none; brackets stay that are closed inside it.

    kept: words that are whole with their punctuation, such as "Inc." and "D.C.".
    """
    if word in kept:
        return 0, 0
    head = found.end() if (found := _HEAD.match(word)) else 0
    tail = found.start() if (found := _TAIL.search(word, head)) else len(word)
    core = word[head:tail]
    while tail < len(word) and _belongs(core, word[tail], kept):
        tail += 1
        core = word[head:tail]
    return head, len(word) - tail


def _belongs(core: str, mark: str, kept: frozenset[str]) -> bool:
    """Whether a mark behind a word is a part of it: of an abbreviation, or closing what is opened in it."""
    if mark == ".":
        return core + mark in kept or "." in core or len(core) == 1
    return core.count(_PAIRS.get(mark, "")) > core.count(mark) if mark in _PAIRS else False


def cores_of(words: Iterable[tuple[int, str]], kept: frozenset[str]) -> dict[int, tuple[int, int]]:
    """Characters [start, end) of what words are without what is attached to them, by the words' numbers; of words to
    which nothing is attached none.

    words: those that may have (`may_have`), with their numbers. kept: as of `attached`.
    """
    found = ((i, word, attached(word, kept)) for i, word in words)
    return {i: (head, len(word) - tail) for i, word, (head, tail) in found if head or tail}


def may_have(lengths_W: np.ndarray, is_alpha_W: np.ndarray, is_punct_W: np.ndarray) -> np.ndarray:
    """Numbers of the words to which something may be attached. lengths_W: their characters."""
    found: np.ndarray = np.flatnonzero((lengths_W > 1) & (is_alpha_W == 0) & (is_punct_W == 0))
    return found
