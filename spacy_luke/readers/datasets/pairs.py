"""Data sets that give one pair of mentions and ask for its relation."""

from collections.abc import Collection
from typing import Any

from ..records import Mention, Record


def pair_record(where: str, label: str, none: Collection[str], mentions: list[Mention], **fields: Any) -> Record:
    """A sentence whose first mention is the head and whose second one is the tail. none: labels of no relation;
    fields: others of the `Record`. ValueError for a label that is blank."""
    if not label.strip():
        raise ValueError(f"{where}: expected a relation, but its label is blank.")
    relations = [] if label in none else [(0, 1, label)]
    return Record(where, sentence_starts=[0], mentions=mentions, relations=relations, pairs=[(0, 1)], **fields)
