"""Data sets with mentions and their types: Open Entity and ultra-fine typing."""

from pathlib import Path
from typing import Iterator, Union

from .json_files import read_json_lines, read_json_list, take, take_strings
from .records import TEXTS, Mention, Record, blanks_between, check_choice

# The Penn Treebank's names of brackets, and what the original LUKE code reads instead (examples/legacy/entity_typing).
BRACKETS = {"-LRB-": "(", "-LCB-": "(", "-LSB-": "(", "-RRB-": ")", "-RCB-": ")", "-RSB-": ")"}


def read_open_entity(path: Union[str, Path], *, text: str = "file") -> Iterator[Record]:
    """Open Entity as ERNIE and LUKE used it (Choi et al., ACL 2018; 9 types): a JSON list of objects with "sent", the
    characters "start" and "end" of the mention, and "labels". The guessed entities under "ents" are not read.

    text: "file" as it stands; "paper": -LRB- and the like become brackets, as in LUKE's code.
    """
    check_choice("text", text, TEXTS)
    for where, item in read_json_list(path):
        sentence = take(where, item, "sent", str)
        start, end = take(where, item, "start", int), take(where, item, "end", int)
        mention = Mention(start, end, types=take_strings(where, item, "labels"))
        if text == "paper":
            before, inside, after = map(with_brackets, (sentence[:start], sentence[start:end], sentence[end:]))
            sentence = before + inside + after
            mention = Mention(len(before), len(before) + len(inside), types=mention.types)
        yield Record(where, text=sentence, sentence_starts=[0], mentions=[mention], has_entities=False)


def read_ufet(path: Union[str, Path], *, text: str = "file") -> Iterator[Record]:
    """Ultra-fine entity typing (Choi et al., ACL 2018; 10,331 types): JSON lines with "left_context_token",
    "mention_span" (words with blanks between them), "right_context_token" and the types "y_str".

    text: "file": words as they stand, blanks between them unknown; "paper": brackets as above, blanks between all words.
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
