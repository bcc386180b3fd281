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
    luke_answers, luke_fillers
                    for each question or query [[start, end, score], ...], the best first; "no answer": [0, 0, score]
    luke_knowledge  [start, end, id, score]: entities of a knowledge graph that are given as input, not gold
    luke_candidates [start, end, [[id, prior], ...]]: entities that a data set proposes for a mention; input, not gold,
                    in an order that says nothing
    luke_linked     [start, end, [[id, prior, score], ...]]: what a linker considered, best first
    luke_evidence   [start, end, [[id, {what: share}], ...]]: what the scores of these are made of, the same order
    luke_entities   [start, end, {"id", "title", "wikidata", "url", "description", "types"}]: what is known of
                    the entities that mentions are linked to
    luke_second     the character where the second of two texts begins that one Doc holds, as in GLUE's pairs; a number
    luke_scope      {"task", "annotates", "labels", "nested"}: what gold says and leaves open, of the whole text
    luke_taught     {"component", "labels", "places", "probabilities"}: what a component of another pipeline says
"""

from collections.abc import Iterable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from spacy.tokens import Doc, Span

from .forms import KINDS, TextPart
from .keys import SCORE, SECOND, SPAN_TYPES

SpanKey = tuple[str, str, int, int]  # ("._.", name, first character, last character), as spaCy keys what a span has
Parts = dict[TextPart, list[Any]]


def get_rows(doc: Doc, name: str) -> list[Any] | None:
    """All rows of a kind, places in characters of the Doc; None where none were written, [] where there are none."""
    parts = get_parts(doc, name)
    return None if parts is None else [row for rows in parts.values() for row in rows]


def get_standing_rows(doc: Doc, name: str) -> list[Any]:
    """As `get_rows`, but [] where they were written for another text: what is about to be written anew loses nothing
    with them."""
    try:
        return get_rows(doc, name) or []
    except ValueError:
        return []


def has_rows(doc: Doc, name: str) -> bool:
    """Whether rows of a kind were written, be it none."""
    return get_parts(doc, name) is not None


def get_parts(doc: Doc, name: str) -> Parts | None:
    """As `get_rows`, but by the texts that they were written for: one, or those of a Doc that was joined, in their
    order.

    Raises ValueError for rows that are not of their form, and for those of another text than that of the Doc.
    """
    places = _places(doc, f"{name}.rows")
    if not places and name not in doc.user_data:
        return None  # most often, and without a look at the text, which takes long
    kind, text = KINDS[name], doc.text
    size = len(text)
    if name in doc.user_data:
        return {(0, size): _read(name, doc.user_data[name], size)}
    parts: Parts = {}
    for start, end in sorted(places):
        first, last = max(start, 0), min(end, size)
        if first >= last and (start, end) != (0, size):
            continue  # none of its text is here: another part of a Doc that was joined, and then cut
        was, rows = _stored(name, _data(doc)[_key(name, start, end)])
        if len(was) != end - start or was[first - start : last - start] != text[first:last]:
            raise ValueError(
                f"The {name} of this Doc belong to another text: at its characters [{first}, {last}) it has "
                f"{text[first:last][:40]!r}, but they were written for {was[max(first - start, 0) :][:40]!r}. Was "
                "user_data copied from another Doc, or were parts joined that span.as_doc had cut? Call "
                "spacy_luke.annotations.settle(part) on each part before Doc.from_docs, or set them anew."
            )
        rows = _read(name, rows, len(was))
        if (start, end) != (0, size):
            rows = [moved for row in rows if (moved := kind.move(row, (start, end), size)) is not None]
        parts[start, end] = rows
    return parts or None


def find_row(span: Span, name: str) -> list[Any] | None:
    """The row of a mention, of a kind that has one for each, None where there is none; as `get_rows`, but of a Doc that
    is as the rows were written for it the others are not read, nor the rest of its text. All are looked through once,
    so that reading the rows of all mentions takes time that grows with their number."""
    doc, start, end = span.doc, span.start_char, span.end_char
    size = doc[-1].idx + len(doc[-1].text_with_ws) if len(doc) else 0
    known = _INDEXES.setdefault(doc, {})
    index = known.get(name)
    if index is None or not index.holds(doc, name, size):
        index = known[name] = _make_index(doc, name, size)
    row = index.rows.get((start, end))
    if not index.is_whole:
        return row
    if index.text[start:end] != span.text:
        get_parts(doc, name)  # raises
    return None if row is None else _read(name, [row], size)[0]


class _Index(NamedTuple):
    """The rows of a kind by the characters [start, end) of their mentions, the first of a place.

    is_whole: whether they are those of the whole Doc, as they are stored, for `text`; otherwise they are read. parts:
    the keys of user_data that they come from, and what is stored there. stored: rows of the whole Doc.
    """

    is_whole: bool
    text: str
    rows: dict[TextPart, Any]
    parts: list[tuple[SpanKey, Any]]
    stored: int

    def holds(self, doc: Doc, name: str, size: int) -> bool:
        """Whether the Doc has what it had. Rows under a plain key may change at any time."""
        data = _data(doc)
        if name in data or (_key(name, 0, size) in data) != self.is_whole:
            return False
        same = all(data.get(key) is value for key, value in self.parts)
        return same and (not self.is_whole or len(self.parts[0][1]["rows"]) == self.stored)


_INDEXES: WeakKeyDictionary[Doc, dict[str, _Index]] = WeakKeyDictionary()


def _make_index(doc: Doc, name: str, size: int) -> _Index:
    data, key = _data(doc), _key(name, 0, size)
    if key in data and name not in data:
        text, stored = _stored(name, data[key])
        if isinstance(stored, (list, tuple)):
            by_place = {(row[0], row[1]): row for row in reversed(stored) if _has_place(row)}
            return _Index(True, text, by_place, [(key, data[key])], len(stored))
    rows = {(row[0], row[1]): row for row in reversed(get_rows(doc, name) or [])}
    keys = [_key(name, *place) for place in _places(doc, f"{name}.rows")]
    return _Index(False, "", rows, [(one, data[one]) for one in keys], 0)


def _has_place(row: Any) -> bool:
    return isinstance(row, (list, tuple)) and len(row) > 1 and isinstance(row[0], int) and isinstance(row[1], int)


def set_rows(doc: Doc, name: str, rows: Iterable[Any] | None) -> None:
    """Put rows, places in characters of the Doc, in the place of all that it has of this kind; None takes them away."""
    text = "" if rows is None else doc.text
    checked = None if rows is None else _read(name, list(rows), len(text))
    doc.user_data.pop(name, None)
    _INDEXES.get(doc, {}).pop(name, None)
    for start, end in _places(doc, f"{name}.rows"):
        del _data(doc)[_key(name, start, end)]
    if checked is not None:
        _data(doc)[_key(name, 0, len(text))] = {"text": text, "rows": checked}


def get_second(doc: Doc) -> int | None:
    """Character at which the second text of a pair begins; None of a single text, and of a part that lies in one of the
    two. Raises ValueError for a pair that was joined with other texts."""
    parts = get_parts(doc, SECOND)
    size = len(doc.text) if parts else 0
    for (start, end), rows in (parts or {}).items():
        if start > 0 or end < size:
            raise ValueError(
                f"doc._.luke_second says that a pair of texts stands at the characters [{start}, {end}), but the Doc "
                f"has {size}: it was joined with others. Set doc._.luke_second anew, None for a single text."
            )
        if rows and ((start, end) == (0, size) or 0 < rows[0] < size):
            return int(rows[0])
    return None


def set_second(doc: Doc, start: int | None) -> None:
    """start: the character at which the second text of a pair begins, None of a single text."""
    if start is not None and (not isinstance(start, int) or isinstance(start, bool) or not 0 <= start <= len(doc.text)):
        raise ValueError(
            f"luke_second must be the character at which the second text begins, from 0 to {len(doc.text)}, or None, "
            f"but it is {start!r}."
        )
    set_rows(doc, SECOND, None if start is None else [start])


def get_all_rows(doc: Doc) -> dict[str, list[Any]]:
    """All rows of a Doc by kind: `doc._.luke_rows`, which is JSON."""
    rows = {name: get_rows(doc, name) for name in KINDS if name != SECOND}
    second = get_second(doc)
    rows[SECOND] = None if second is None else [second]
    return {name: some for name, some in rows.items() if some is not None}


def set_all_rows(doc: Doc, rows: dict[str, list[Any]]) -> None:
    """Put rows as `get_all_rows` gives them in the place of all that the Doc has."""
    if not isinstance(rows, dict) or not set(rows) <= set(KINDS):
        raise ValueError(f"luke_rows must be a dict with keys of {list(KINDS)}, but it is {rows!r:.120}.")
    for name in KINDS:
        set_rows(doc, name, rows.get(name))


def settle(doc: Doc) -> Doc:
    """Make all that a Doc has its own: what `span.as_doc(copy_user_data=True)` left over of the rest of the text is
    taken away, so that the part can be joined with others by `Doc.from_docs`. RETURNS: the Doc."""
    set_all_rows(doc, get_all_rows(doc))
    size = len(doc.text)
    for name in (SCORE, SPAN_TYPES):
        for start, end in _places(doc, name):
            if not 0 <= start < end <= size:
                del _data(doc)["._.", name, start, end]
    return doc


def names_of(doc: Doc) -> list[Any]:
    """The names of the rows that a Doc carries, and whatever other keys its user_data has."""
    return [
        key[1].removesuffix(".rows") if isinstance(key, tuple) and len(key) == 4 and isinstance(key[1], str) else key
        for key in _data(doc)
    ]


def _data(doc: Doc) -> dict[Any, Any]:
    """spaCy's stubs say that the keys are strings; spaCy's own are tuples."""
    return doc.user_data


def _key(name: str, start: int, end: int) -> SpanKey:
    return "._.", f"{name}.rows", start, end


def _places(doc: Doc, name: str) -> list[TextPart]:
    """The characters [start, end) that spaCy keeps a value under this name for."""
    keys = [key for key in _data(doc) if isinstance(key, tuple) and len(key) == 4 and key[:2] == ("._.", name)]
    return [key[2:] for key in keys if isinstance(key[2], int) and isinstance(key[3], int)]


def _stored(name: str, value: Any) -> tuple[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("text"), str) or "rows" not in value:
        raise ValueError(
            f'doc.user_data[("._.", "{name}.rows", ...)] must be {{"text": text, "rows": rows}}, but it is '
            f"{value!r:.80}. Write doc._.{name}, or doc.user_data[{name!r}]."
        )
    return value["text"], value["rows"]


def _read(name: str, rows: Any, size: int) -> list[Any]:
    kind, read = KINDS[name], []
    if name == SECOND and not isinstance(rows, (list, tuple)):
        rows = [rows]
    if not isinstance(rows, (list, tuple)):
        raise ValueError(f"doc.user_data[{name!r}] must be a list of rows {kind.form}, but it is {rows!r:.80}.")
    for i, row in enumerate(rows):
        try:
            read.append(kind.read(row, size))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"doc.user_data[{name!r}]: row {i} must be {kind.form} with places as characters [start, end) of the "
                f"Doc's text, but it is {row!r:.120} ({error}). Was user_data copied from another Doc, or written by "
                "hand?"
            ) from None
    return read
