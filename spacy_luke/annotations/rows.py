"""Rows of numbers and strings that a Doc carries beside spaCy's own annotation, places as characters [start, end) of
its text.

They lie in `Doc.user_data`, so that `Doc.to_bytes`, `Doc.copy`, DocBin and other processes keep them, under the keys
that spaCy gives what belongs to a span: ("._.", "luke_relations.rows", start, end). The span is the text that the rows
were written for, all of the Doc at first, and the value {"text": that text, "rows": rows}, whose places count from its
first character. spaCy moves such keys: `Doc.from_docs` to where the text then stands,
`span.as_doc(copy_user_data=True)` to before and behind the part, which has the rows that lie in it. Both are right
without more; where the text that is there is not that of the rows, they are refused.

A plain key, doc.user_data["luke_relations"] = rows, is read too, as one writes it by hand and as older files have it:
its places count from the Doc's first character, whatever became of the Doc since, and spaCy does not move them.

    luke_relations  [head_start, head_end, tail_start, tail_end, label, score]
    luke_pairs      [head_start, head_end, tail_start, tail_end]: pairs that shall be classified, where they are given
    luke_questions  {"id", "question", "answers": [[start, end], ...]}; answers only of gold, [] where there is none;
                    and "entities": [[start, end, title], ...], characters of the question
    luke_queries    {"id", "query", "candidates": [[start, end], ...], "answers": [[start, end], ...]}
    luke_answers, luke_fillers  for each question or query [[start, end, score], ...], the best first; "no answer": [0,
    0, score] luke_knowledge  [start, end, id, score]: entities of a knowledge graph that are given as input, not gold
    luke_candidates [start, end, [[id, prior], ...]]: entities that a data set proposes for a mention; input, not gold,
                    in an order that says nothing
    luke_linked     [start, end, [[id, prior, score], ...]]: what a linker considered, best first
    luke_second     the character where the second of two texts begins that one Doc holds, as in GLUE's pairs; a number
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import index
from typing import Any

from spacy.tokens import Doc

Part = tuple[int, int]  # characters of the Doc where the text of some rows stands; some may lie outside of it
Parts = dict[Part, list[Any]]


@dataclass(frozen=True)
class Kind:
    """form: of a row, for messages. read(row, size): the row as lists, checked against a text of so many characters;
    raises ValueError or TypeError. move(row, part, size): it in a Doc of that size, where its text stands at part; None
    where the Doc has not all of it."""

    form: str
    read: Callable[[Any, int], Any]
    move: Callable[[Any, Part, int], Any]


def get_rows(doc: Doc, name: str) -> list[Any] | None:
    """All rows of a kind, places in characters of the Doc; None where none were written, [] where there are none."""
    parts = get_parts(doc, name)
    return None if parts is None else [row for rows in parts.values() for row in rows]


def get_parts(doc: Doc, name: str) -> Parts | None:
    """As `get_rows`, but by the texts that they were written for: one, or those of a Doc that was joined, in their
    order.

    Raises ValueError for rows that are not of their form, and for those of another text than that of the Doc.
    """
    kind, size, text = KINDS[name], len(doc.text), doc.text
    if name in doc.user_data:
        return {(0, size): _read(name, doc.user_data[name], size)}
    parts: Parts = {}
    for key in sorted(_keys(doc, name), key=lambda key: key[2:]):
        start, end = key[2:]
        first, last = max(start, 0), min(end, size)
        if first >= last and (start, end) != (0, size):
            continue  # none of its text is here: another part of a Doc that was joined, and then cut
        was, rows = _stored(name, doc.user_data[key])
        if len(was) != end - start or was[first - start : last - start] != text[first:last]:
            raise ValueError(
                f"The {name} of this Doc belong to another text: at its characters [{first}, {last}) it has "
                f"{text[first:last][:40]!r}, but they were written for {was[max(first - start, 0) :][:40]!r}. Was "
                f"user_data "
                "copied from another Doc, or were parts joined that span.as_doc had cut? Call "
                "spacy_luke.annotations.settle(part) on each part before Doc.from_docs, or set them anew."
            )
        rows = _read(name, rows, len(was))
        if (start, end) != (0, size):
            rows = [moved for row in rows if (moved := kind.move(row, (start, end), size)) is not None]
        parts[start, end] = rows
    return parts or None


def find_row(doc: Doc, name: str, start: int, end: int) -> list[Any] | None:
    """The row of a mention, of a kind that has one for each, None where there is none; as `get_rows`, but the others
    are not read, nor, of a Doc that is as they were written for it, the rest of its text."""
    size = doc[-1].idx + len(doc[-1].text_with_ws) if len(doc) else 0
    own = doc.user_data.get(("._.", f"{name}.rows", 0, size))
    if own is None or name in doc.user_data:
        return next((row for row in get_rows(doc, name) or [] if row[:2] == [start, end]), None)
    was, rows = _stored(name, own)
    if was[start:end] != doc.char_span(start, end).text or not isinstance(rows, (list, tuple)):
        get_parts(doc, name)  # raises
    found = [row for row in rows if isinstance(row, (list, tuple)) and tuple(row[:2]) == (start, end)]
    return next(iter(_read(name, found, size)), None)


def set_rows(doc: Doc, name: str, rows: Iterable[Any] | None) -> None:
    """Put rows, places in characters of the Doc, in the place of all that it has of this kind; None takes them away."""
    text = doc.text
    checked = None if rows is None else _read(name, list(rows), len(text))
    doc.user_data.pop(name, None)
    for key in _keys(doc, name):
        del doc.user_data[key]
    if checked is not None:
        doc.user_data["._.", f"{name}.rows", 0, len(text)] = {"text": text, "rows": checked}


def get_second(doc: Doc) -> int | None:
    """Character at which the second text of a pair begins; None of a single text, and of a part that lies in one of the
    two. Raises ValueError for a pair that was joined with other texts."""
    parts, size = get_parts(doc, "luke_second"), len(doc.text)
    for (start, end), rows in (parts or {}).items():
        if start > 0 or end < size:
            raise ValueError(
                f"doc._.luke_second says that a pair of texts stands at the characters [{start}, {end}), but the Doc "
                f"has {size}:"
                " it was joined with others. Set doc._.luke_second anew, None for a single text."
            )
        if (start, end) == (0, size) or (rows and 0 < rows[0] < size):
            return rows[0]
    return None


def names_of(doc: Doc) -> list[Any]:
    """The names of the rows that a Doc carries, and whatever other keys its user_data has."""
    return [
        key[1].removesuffix(".rows") if isinstance(key, tuple) and len(key) == 4 and isinstance(key[1], str) else key
        for key in doc.user_data
    ]


def _keys(doc: Doc, name: str) -> list[tuple[Any, ...]]:
    where = ("._.", f"{name}.rows")
    keys = [key for key in doc.user_data if isinstance(key, tuple) and len(key) == 4 and key[:2] == where]
    return [key for key in keys if isinstance(key[2], int) and isinstance(key[3], int)]


def _stored(name: str, value: Any) -> tuple[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("text"), str) or "rows" not in value:
        raise ValueError(
            f'doc.user_data[("._.", "{name}.rows", ...)] must be {{"text": text, "rows": rows}}, but it is '
            f"{value!r:.80}. "
            f"Write doc._.{name}, or doc.user_data[{name!r}]."
        )
    return value["text"], value["rows"]


def _read(name: str, rows: Any, size: int) -> list[Any]:
    kind, read = KINDS[name], []
    if name == "luke_second" and not isinstance(rows, (list, tuple)):
        rows = [rows]
    if not isinstance(rows, (list, tuple)):
        raise ValueError(f"doc.user_data[{name!r}] must be a list of rows {kind.form}, but it is {rows!r:.80}.")
    for i, row in enumerate(rows):
        try:
            read.append(kind.read(row, size))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"doc.user_data[{name!r}]: row {i} must be {kind.form} with places as characters [start, end) of the "
                f"Doc's "
                f"text, but it is {row!r:.120} ({error}). Was user_data copied from another Doc, or written by hand?"
            ) from None
    return read


# ---- rows of each form


def _place(start: Any, end: Any, size: int, *, empty: bool = False) -> list[int]:
    start, end = index(start), index(end)
    if not 0 <= start < end + empty <= size + empty:
        raise ValueError(f"it has the characters [{start}, {end}), but the Doc's text has {size}")
    return [start, end]


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string, not {value!r:.40}")
    return value


def _moved(start: int, end: int, part: Part, size: int) -> list[int] | None:
    by = part[0]
    return [start + by, end + by] if 0 <= start + by and end + by <= size else None


def _read_relation(row: Any, size: int) -> list[Any]:
    a, b, c, d, label, score = row
    return [*_place(a, b, size), *_place(c, d, size), _name(label, "a label"), float(score)]


def _read_pair(row: Any, size: int) -> list[Any]:
    a, b, c, d = row
    return [*_place(a, b, size), *_place(c, d, size)]


def _move_pair(row: list[Any], part: Part, size: int) -> list[Any] | None:
    head, tail = _moved(*row[:2], part, size), _moved(*row[2:4], part, size)
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


def _move_mention(row: list[Any], part: Part, size: int) -> list[Any] | None:
    place = _moved(*row[:2], part, size)
    return None if place is None else [*place, *row[2:]]


def _read_asked(field: str) -> Callable[[Any, int], dict[str, Any]]:
    """A question or query."""

    def read(row: Any, size: int) -> dict[str, Any]:
        if not isinstance(row, dict) or not _name(row.get(field), repr(field)).strip():
            raise ValueError(f"{field!r} must be text that is not blank")
        read = {key: value for key, value in row.items() if value is not None}
        for name in ("candidates", "answers"):
            if name in read:
                read[name] = [_place(*place, size) for place in read[name]]
        if "entities" in read:
            length = len(row[field])
            read["entities"] = [[index(a), index(b), _name(name, "a title")] for a, b, name in read["entities"]]
            if wrong := [x for x in read["entities"] if not 0 <= x[0] < x[1] <= length]:
                raise ValueError(f"the entity {wrong[0]} does not lie in the {length} characters of the {field}")
        return read

    return read


def _move_asked(row: dict[str, Any], part: Part, size: int) -> dict[str, Any]:
    """Questions stay with every part of a text. Of an answer that does not it is not known what it is there, and of "no
    answer" not what it is where the text became longer."""
    row = dict(row)
    for name in ("candidates", "answers"):
        if name in row:
            kept = [moved for place in row[name] if (moved := _moved(*place, part, size)) is not None]
            if name == "answers" and not kept and (row[name] or part[0] > 0 or part[1] < size):
                del row[name]
            else:
                row[name] = kept
    return row


def _read_found(row: Any, size: int) -> list[list[Any]]:
    return [[*_place(start, end, size, empty=True), float(score)] for start, end, score in row]


def _move_found(row: list[list[Any]], part: Part, size: int) -> list[list[Any]]:
    """What was found and lies in the part; "no answer" stays what was said."""
    moved = [[a, b, score] if a == b else _move_mention([a, b, score], part, size) for a, b, score in row]
    return [one for one in moved if one is not None]


def _read_second(row: Any, size: int) -> int:
    if isinstance(row, bool) or not 0 <= index(row) <= size:
        raise ValueError(f"it must be from 0 to {size}")
    return index(row)


KINDS: dict[str, Kind] = {
    "luke_relations": Kind("[head_start, head_end, tail_start, tail_end, label, score]", _read_relation, _move_pair),
    "luke_pairs": Kind("[head_start, head_end, tail_start, tail_end]", _read_pair, _move_pair),
    "luke_questions": Kind('{"question": text, "answers": [[start, end], ...]}', _read_asked("question"), _move_asked),
    "luke_queries": Kind(
        '{"query": text, "candidates": [[start, end], ...], "answers": [[start, end], ...]}',
        _read_asked("query"),
        _move_asked,
    ),
    "luke_answers": Kind("[[start, end, score], ...]", _read_found, _move_found),
    "luke_fillers": Kind("[[start, end, score], ...]", _read_found, _move_found),
    "luke_knowledge": Kind("[start, end, id, score]", _read_known, _move_mention),
    "luke_candidates": Kind("[start, end, [[id, prior], ...]]", _read_named(1), _move_mention),
    "luke_linked": Kind("[start, end, [[id, prior, score], ...]]", _read_named(2), _move_mention),
    "luke_second": Kind("a number of a character", _read_second, lambda row, part, size: row + part[0]),
}
