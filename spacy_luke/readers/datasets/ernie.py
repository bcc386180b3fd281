"""FewRel and TACRED as ERNIE's authors give them (Zhang et al., ACL 2019): text, head and tail, entities of
Wikidata."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..json_files import read_json_list, take
from ..records import ENTITY_LABEL, TEXTS, Mention, Record, check_choice
from .ernie_guesses import read_guesses
from .pairs import pair_record

_NO_RELATION = ("NA", "no_relation")


def read_ernie_fewrel(path: str | Path, *, text: str = "file") -> Iterator[Record]:
    """FewRel: a JSON list of objects with "text", "label" and "ents", [[id, start, end, score], ...] of head and tail.

    Both ids are the gold ones, and become given entities with score 1. text: see `_pair`.
    """
    for where, item, pair in _pairs(path, text):
        knowledge = [(start, end, name, 1.0) for start, end, name, _ in pair]
        mentions = [Mention(start, end, ENTITY_LABEL, kb_id=name) for start, end, name, _ in pair]
        yield _record(where, item, mentions, knowledge)


def read_ernie_tacred(path: str | Path, *, text: str = "file") -> Iterator[Record]:
    """TACRED: as FewRel, but with the guessed entities under "ann", [[id, start, end, score], ...], of which ERNIE
    reads those above .4; it reads no entities of head and tail besides. The labels "NA" and "no_relation" are no
    relation."""
    for where, item, pair in _pairs(path, text):
        mentions = [Mention(start, end, ENTITY_LABEL) for start, end, *_ in pair]
        yield _record(where, item, mentions, read_guesses(where, item, "ann"))


def _record(where: str, item: Any, mentions: list[Mention], knowledge: list[tuple[int, int, str, float]]) -> Record:
    text = take(where, item, "text", str)
    return pair_record(where, take(where, item, "label", str), _NO_RELATION, mentions, text=text, knowledge=knowledge)


def _pairs(path: str | Path, text: str) -> Iterator[tuple[str, Any, list[tuple[int, int, str, float]]]]:
    """Each object with its head and tail.

    In the release some mentions that begin with the text say that they begin at 1. text: "file": those begin at 0 that
    would begin inside a word; "paper": all that say 1, as in the original code, also one after a quotation mark.
    """
    check_choice("text", text, TEXTS)
    for where, item in read_json_list(path):
        sentence = take(where, item, "text", str)
        pair = read_guesses(where, item, "ents")
        if len(pair) != 2:
            raise ValueError(f"{where}: expected two 'ents', the head and the tail, but there are {len(pair)}.")
        inside = len(sentence) > 1 and sentence[0].isalnum() and sentence[1].isalnum()
        mend = text == "paper" or inside
        moved = [(0 if start == 1 and mend else start, end, name, score) for start, end, name, score in pair]
        yield where, item, moved
