"""Ultra-fine entity typing."""

from collections.abc import Iterator
from pathlib import Path

from ..json_files import read_json_lines, take, take_strings
from ..records import Mention, Record, blanks_between
from .brackets import with_brackets


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
