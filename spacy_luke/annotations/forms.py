"""The form of each kind of row: how a row is checked when it is read, and how it moves with its text.

Rows come from files and from users, so that nothing is known of them before it is checked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import index
from typing import Any

from .keys import (
    ANSWERS,
    FILLERS,
    GIVEN_CANDIDATES,
    KNOWLEDGE,
    LINK_EVIDENCE,
    LINKED_CANDIDATES,
    LINKED_ENTITIES,
    PAIRS,
    QUERIES,
    QUESTIONS,
    RELATIONS,
    SCOPE,
    SECOND,
    TAUGHT,
)

TextPart = tuple[int, int]  # characters of the Doc where the text of some rows stands; some may lie outside of it


@dataclass(frozen=True)
class RowKind:
    """form: of a row, for messages. read(row, size): the row as lists, checked against a text of so many characters;
    raises ValueError or TypeError. move(row, part, size): the row in a Doc of that size, where the row's text stands at
    part; None where the Doc has not all of the row."""

    form: str
    read: Callable[[Any, int], Any]
    move: Callable[[Any, TextPart, int], Any]


def _place(start: Any, end: Any, size: int, *, empty: bool = False) -> list[int]:
    start, end = index(start), index(end)
    if not 0 <= start < end + empty <= size + empty:
        raise ValueError(f"it has the characters [{start}, {end}), but the Doc's text has {size}")
    return [start, end]


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {value!r:.40}")
    return value


def _moved(start: int, end: int, part: TextPart, size: int) -> list[int] | None:
    by = part[0]
    return [start + by, end + by] if 0 <= start + by and end + by <= size else None


def _read_relation(row: Any, size: int) -> list[Any]:
    a, b, c, d, label, score = row
    return [*_place(a, b, size), *_place(c, d, size), _name(label, "a label"), float(score)]


def _read_pair(row: Any, size: int) -> list[Any]:
    a, b, c, d = row
    return [*_place(a, b, size), *_place(c, d, size)]


def _move_pair(row: list[Any], part: TextPart, size: int) -> list[Any] | None:
    head, tail = _moved(row[0], row[1], part, size), _moved(row[2], row[3], part, size)
    return None if head is None or tail is None else [*head, *tail, *row[4:]]


def _read_known(row: Any, size: int) -> list[Any]:
    start, end, name, score = row
    return [*_place(start, end, size), _name(name, "an id"), float(score)]


def _read_named(numbers: int) -> Callable[[Any, int], list[Any]]:
    """A mention and its candidates, ids with so many numbers."""

    def read(row: Any, size: int) -> list[Any]:
        start, end, candidates = row
        named = [[_name(name, "an id"), *map(float, rest)] for name, *rest in candidates]
        if wrong := [one for one in named if len(one) != numbers + 1]:
            raise ValueError(f"a candidate is an id and {numbers} number(s), not {wrong[0]}")
        return [*_place(start, end, size), named]

    return read


def _read_evidence(row: Any, size: int) -> list[Any]:
    start, end, candidates = row
    shares = [
        [_name(name, "an id"), {_name(what, "a key"): float(x) for what, x in given.items()}]
        for name, given in candidates
    ]
    return [*_place(start, end, size), shares]


_RECORD = ("id", "title", "wikidata", "url", "description")


def _read_entity(row: Any, size: int) -> list[Any]:
    start, end, record = row
    if not isinstance(record, dict) or set(record) != {*_RECORD, "types"}:
        raise ValueError(f"an entity is a dict with {(*_RECORD, 'types')}, not {record!r:.80}")
    texts = {field: _name(record[field], repr(field)) for field in _RECORD}
    return [*_place(start, end, size), {**texts, "types": [_name(one, "a type") for one in record["types"]]}]


def _move_mention(row: list[Any], part: TextPart, size: int) -> list[Any] | None:
    place = _moved(row[0], row[1], part, size)
    return None if place is None else [*place, *row[2:]]


def _read_asked(field: str) -> Callable[[Any, int], dict[str, Any]]:
    """A question or query."""

    def read(row: Any, size: int) -> dict[str, Any]:
        if not isinstance(row, dict) or not _name(row.get(field), repr(field)).strip():
            raise ValueError(f"{field!r} must be text that is not blank")
        read = {key: value for key, value in row.items() if value is not None}
        for name in ("candidates", "answers"):
            if name in read:
                read[name] = [_place(start, end, size) for start, end in read[name]]
        if "entities" in read:
            length = len(row[field])
            read["entities"] = [[index(a), index(b), _name(name, "a title")] for a, b, name in read["entities"]]
            if wrong := [x for x in read["entities"] if not 0 <= x[0] < x[1] <= length]:
                raise ValueError(f"the entity {wrong[0]} does not lie in the {length} characters of the {field}")
        return read

    return read


def _move_asked(row: dict[str, Any], part: TextPart, size: int) -> dict[str, Any]:
    """Questions stay with every part of a text. Of an answer that does not it is not known what it is there, and of "no
    answer" not what it is where the text became longer."""
    row = dict(row)
    for name in ("candidates", "answers"):
        if name in row:
            kept = [moved for start, end in row[name] if (moved := _moved(start, end, part, size)) is not None]
            if name == "answers" and not kept and (row[name] or part[0] > 0 or part[1] < size):
                del row[name]
            else:
                row[name] = kept
    return row


def _read_found(row: Any, size: int) -> list[list[Any]]:
    return [[*_place(start, end, size, empty=True), float(score)] for start, end, score in row]


def _move_found(row: list[list[Any]], part: TextPart, size: int) -> list[list[Any]]:
    """What was found and lies in the part; "no answer" stays what was said."""
    moved = [[a, b, score] if a == b else _move_mention([a, b, score], part, size) for a, b, score in row]
    return [one for one in moved if one is not None]


def _read_second(row: Any, size: int) -> int:
    if isinstance(row, bool) or not 0 <= index(row) <= size:
        raise ValueError(f"it must be from 0 to {size}")
    return index(row)


def _move_second(row: int, part: TextPart, size: int) -> int:
    return row + part[0]


def _read_scope(row: Any, size: int) -> dict[str, Any]:
    if not isinstance(row, dict) or set(row) != {"task", "annotates", "labels", "nested"}:
        raise ValueError("it is no such dict")
    annotates, labels, nested = row["annotates"], row["labels"], row["nested"]
    if not isinstance(labels, dict) or not isinstance(nested, bool):
        raise TypeError("'labels' must be a dict, and 'nested' true or false")
    return {
        "task": _name(row["task"], "'task'"),
        "annotates": None if annotates is None else [_name(label, "a label") for label in annotates],
        "labels": {
            _name(label, "a label"): None if some is None else [_name(one, "a label") for one in some]
            for label, some in labels.items()
        },
        "nested": nested,
    }


def _move_scope(row: dict[str, Any], part: TextPart, size: int) -> dict[str, Any]:
    return row


def _read_taught(row: Any, size: int) -> dict[str, Any]:
    if not isinstance(row, dict) or set(row) != {"component", "labels", "places", "probabilities"}:
        raise ValueError("it is no such dict")
    labels = [_name(label, "a label") for label in row["labels"]]
    places = [
        [x for start, end in zip(place[::2], place[1::2], strict=True) for x in _place(start, end, size)]
        for place in row["places"]
    ]
    rows = [[float(x) for x in some] for some in row["probabilities"]]
    if len(rows) != len(places) or any(len(some) != len(labels) for some in rows):
        raise ValueError(f"it has {len(places)} places and {len(labels)} labels, but other probabilities")
    return {"component": _name(row["component"], "a name"), "labels": labels, "places": places, "probabilities": rows}


def _move_taught(row: dict[str, Any], part: TextPart, size: int) -> dict[str, Any]:
    """What lies in the part."""
    by = part[0]
    kept = [i for i, place in enumerate(row["places"]) if all(0 <= x + by <= size for x in place)]
    places = [[x + by for x in row["places"][i]] for i in kept]
    return {**row, "places": places, "probabilities": [row["probabilities"][i] for i in kept]}


KINDS = {
    RELATIONS: RowKind("[head_start, head_end, tail_start, tail_end, label, score]", _read_relation, _move_pair),
    PAIRS: RowKind("[head_start, head_end, tail_start, tail_end]", _read_pair, _move_pair),
    QUESTIONS: RowKind('{"question": text, "answers": [[start, end], ...]}', _read_asked("question"), _move_asked),
    QUERIES: RowKind(
        '{"query": text, "candidates": [[start, end], ...], "answers": [[start, end], ...]}',
        _read_asked("query"),
        _move_asked,
    ),
    ANSWERS: RowKind("[[start, end, score], ...]", _read_found, _move_found),
    FILLERS: RowKind("[[start, end, score], ...]", _read_found, _move_found),
    KNOWLEDGE: RowKind("[start, end, id, score]", _read_known, _move_mention),
    GIVEN_CANDIDATES: RowKind("[start, end, [[id, prior], ...]]", _read_named(1), _move_mention),
    LINKED_CANDIDATES: RowKind("[start, end, [[id, prior, score], ...]]", _read_named(2), _move_mention),
    LINKED_ENTITIES: RowKind(
        '[start, end, {"id", "title", "wikidata", "url", "description", "types"}]', _read_entity, _move_mention
    ),
    SCOPE: RowKind(
        '{"task": "entities", "annotates": labels or None, "labels": {label: labels or None}, "nested": true or false}',
        _read_scope,
        _move_scope,
    ),
    TAUGHT: RowKind(
        '{"component", "labels", "places": [[start, end], ...], "probabilities": [[...], ...]}',
        _read_taught,
        _move_taught,
    ),
    LINK_EVIDENCE: RowKind("[start, end, [[id, {what: share}], ...]]", _read_evidence, _move_mention),
    SECOND: RowKind("a number of a character", _read_second, _move_second),
}
