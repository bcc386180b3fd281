"""The Penn Treebank's names of brackets, and what the original LUKE code reads instead of them."""

import re
from collections.abc import Sequence

# The Penn Treebank's names of brackets, and what the original LUKE code reads instead (examples/legacy/entity_typing).
_BRACKETS = {"-LRB-": "(", "-LCB-": "(", "-LSB-": "(", "-RRB-": ")", "-RCB-": ")", "-RSB-": ")"}
_ANY_BRACKET = re.compile("|".join(_BRACKETS))


def with_brackets(text: str) -> str:
    for name, bracket in _BRACKETS.items():
        text = text.replace(name, bracket)
    return text


def replace_brackets(sentence: str, edges: Sequence[int]) -> tuple[str, list[int]]:
    """The text with brackets, and where each of its characters, and its end, has gone. What lies across an edge of the
    mention is none."""
    new = ""
    places: list[int] = []
    cuts = [0, *sorted(min(max(edge, 0), len(sentence)) for edge in edges), len(sentence)]
    for begin, end in zip(cuts, cuts[1:]):
        done = begin
        for found in _ANY_BRACKET.finditer(sentence, begin, end):
            places += range(len(new), len(new) + found.start() - done)
            new += sentence[done : found.start()]
            places += [len(new)] * len(found[0])
            new += _BRACKETS[found[0]]
            done = found.end()
        places += range(len(new), len(new) + end - done)
        new += sentence[done:end]
    return new, [*places, len(new)]


def move_place(places: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Characters [start, end) in the new text, the whole bracket for a part of its name. Places outside stay
    outside."""
    new_start = places[start] if 0 <= start < len(places) else start
    if start >= end:
        return new_start, new_start
    return new_start, places[end - 1] + 1 if 0 < end < len(places) else end
