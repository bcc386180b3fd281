"""Data sets with mentions and their types: Open Entity, FIGER and ultra-fine typing."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .json_files import read_json_lines, read_json_list, take, take_strings
from .records import TEXTS, Mention, Record, blanks_between, check_choice

# The Penn Treebank's names of brackets, and what the original LUKE code reads instead (examples/legacy/entity_typing).
BRACKETS = {"-LRB-": "(", "-LCB-": "(", "-LSB-": "(", "-RRB-": ")", "-RCB-": ")", "-RSB-": ")"}


ANY_BRACKET = re.compile("|".join(BRACKETS))


def read_open_entity(path: str | Path, *, text: str = "file") -> Iterator[Record]:
    """Open Entity as ERNIE and LUKE used it (Choi et al., ACL 2018; 9 types), and FIGER in ERNIE's format (Ling & Weld,
    AAAI 2012): a JSON list of objects with "sent", the characters "start" and "end" of the mention, and "labels".

    The guessed entities under "ents", [[id, start, end, score], ...], become given entities with all scores; ERNIE
    reads those above .3. A mention without a character is left out, as ERNIE leaves out the object, and counted.
    text: "file" as it stands; "paper": -LRB- and the like become brackets, as in LUKE's code.
    """
    check_choice("text", text, TEXTS)
    for where, item in read_json_list(path):
        sentence = take(where, item, "sent", str)
        start, end = take(where, item, "start", int), take(where, item, "end", int)
        types = take_strings(where, item, "labels")
        knowledge = read_guesses(where, item, "ents") if "ents" in item else None
        if text == "paper":
            sentence, places = _replace_brackets(sentence, (start, end))
            start, end = _move(places, start, end)
            knowledge = knowledge and [(*_move(places, a, b), name, score) for a, b, name, score in knowledge]
        empty = start == end
        mentions = [] if empty else [Mention(start, end, types=types)]
        yield Record(
            where,
            text=sentence,
            sentence_starts=[0],
            mentions=mentions,
            has_entities=False,
            knowledge=knowledge,
            empty=int(empty),
        )


def read_guesses(where: str, item: Any, name: str) -> list[tuple[int, int, str, float]]:
    """(start, end, id, score) of each [id, start, end, score] in a file of ERNIE's release, characters."""
    guesses = []
    for i, row in enumerate(take(where, item, name, list)):
        kinds = (str, int, int, int | float)
        good = isinstance(row, list) and len(row) == len(kinds)
        if not good or any(isinstance(x, bool) or not isinstance(x, kind) for x, kind in zip(row, kinds, strict=True)):
            raise ValueError(f"{where}: expected {name!r} as [id, start, end, score], but number {i} is {row!r:.80}.")
        guesses.append((row[1], row[2], row[0], float(row[3])))
    return guesses


def read_ufet(path: str | Path, *, text: str = "file") -> Iterator[Record]:
    """Ultra-fine entity typing (Choi et al., ACL 2018; 10,331 types): JSON lines with "left_context_token",
    "mention_span" (words with blanks between them), "right_context_token" and the types "y_str".

    text: "file": words as they stand, blanks between them unknown; "paper": brackets as above, blanks between all
        words.
    """
    for where, item in read_json_lines(path):
        left, right = (take_strings(where, item, f"{side}_context_token") for side in ("left", "right"))
        mention = take(where, item, "mention_span", str).split()
        words = [*left, *mention, *right]
        if text == "paper":
            words = list(map(with_brackets, words))
        place = Mention(len(left), len(left) + len(mention), types=take_strings(where, item, "y_str"))
        spaces = blanks_between(words, text=text)
        yield Record(where, words=words, spaces=spaces, sentence_starts=[0], mentions=[place], has_entities=False)


def with_brackets(text: str) -> str:
    for name, bracket in BRACKETS.items():
        text = text.replace(name, bracket)
    return text


def _replace_brackets(sentence: str, edges: Sequence[int]) -> tuple[str, list[int]]:
    """The text with brackets, and where each of its characters, and its end, has gone. What lies across an edge of the
    mention is none."""
    new = ""
    places: list[int] = []
    cuts = [0, *sorted(min(max(edge, 0), len(sentence)) for edge in edges), len(sentence)]
    for begin, end in zip(cuts, cuts[1:]):
        done = begin
        for found in ANY_BRACKET.finditer(sentence, begin, end):
            places += range(len(new), len(new) + found.start() - done)
            new += sentence[done : found.start()]
            places += [len(new)] * len(found[0])
            new += BRACKETS[found[0]]
            done = found.end()
        places += range(len(new), len(new) + end - done)
        new += sentence[done:end]
    return new, [*places, len(new)]


def _move(places: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Characters [start, end) in the new text, the whole bracket for a part of its name. Places outside stay
    outside."""
    new_start = places[start] if 0 <= start < len(places) else start
    if start >= end:
        return new_start, new_start
    return new_start, places[end - 1] + 1 if 0 < end < len(places) else end
