"""Gold Docs cut into parts, and joined, with all that is annotated on them.

An annotation belongs to the words from its first to its last place: both mentions of a relation, all answers and
candidates of a question. A Doc is cut only where no annotation is cut, and joined only with Docs that are annotated
alike.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span, SpanGroup

from ..annotations import (
    GIVEN_CANDIDATES,
    KNOWLEDGE,
    PAIRS,
    QUERIES,
    QUESTIONS,
    RELATIONS,
    SCOPE,
    get_all_rows,
    get_sentence_starts,
    names_of,
    set_rows,
    set_sentence_starts,
)

_PLACES = {  # columns of rows (see `annotations.rows`) that are places, characters [start, end) of the text
    RELATIONS: ((0, 1), (2, 3)),
    PAIRS: ((0, 1), (2, 3)),
    KNOWLEDGE: ((0, 1),),
    GIVEN_CANDIDATES: ((0, 1),),
}
_WHOLE = (SCOPE,)  # rows that say something of the whole text
_ASKED = (QUESTIONS, QUERIES)  # lists of dicts with lists of places under these names
_ASKED_PLACES = ("answers", "candidates")
_BLANK_LINE = "\n\n"

Place = tuple[int, int]


def is_carried(doc: Doc) -> bool:
    """Whether all that is annotated can be carried into parts and joined Docs: not the categories of a whole text, the
    pairs of GLUE, and what others keep in user_data."""
    return not doc.cats and all(name in _PLACES or name in _ASKED or name in _WHOLE for name in names_of(doc))


def annotation_kind(doc: Doc) -> Hashable:
    """Docs of equal kinds may be joined: what is annotated in one is annotated in the other."""
    annotated = tuple(doc.has_annotation(name) for name in ("ENT_IOB", "SENT_START", "TAG", "DEP"))
    rows = get_all_rows(doc)
    whole = json.dumps({name: rows.get(name) for name in _WHOLE}, sort_keys=True)
    return doc.has_unknown_spaces, annotated, tuple(sorted(doc.spans)), tuple(sorted(rows)), whole


def free_starts(doc: Doc, starts: Sequence[int]) -> list[int]:
    """Those of the words `starts` where the Doc may be cut: 0, and others that no annotation crosses."""
    crossed = np.zeros(len(doc) + 1, dtype=np.int64)  # +1 at the first place that is crossed, -1 behind the last
    for first, last in _word_places(doc):
        crossed[first + 1] += 1
        crossed[last] -= 1
    crossed = np.cumsum(crossed)
    return [i for i in starts if i == 0 or not crossed[i]]


def _word_places(doc: Doc) -> Iterator[Place]:
    """Words [first, last) of each annotation."""
    for span in [*doc.ents, *(span for group in doc.spans.values() for span in group)]:
        yield span.start, span.end
    begins = np.array([word.idx for word in doc])
    for start, end in _hulls(get_all_rows(doc), len(doc.text)):
        first = max(int(np.searchsorted(begins, start, side="right")) - 1, 0)
        yield first, max(int(np.searchsorted(begins, end, side="left")), first + 1)


def _hulls(rows: dict[str, list[Any]], size: int) -> Iterator[Place]:
    """Characters of each row; the whole text for what is asked without a place."""
    for name, pairs in _PLACES.items():
        for row in rows.get(name, []):
            yield min(row[a] for a, _ in pairs), max(row[b] for _, b in pairs)
    for name in _ASKED:
        for item in rows.get(name, []):
            yield _asked_hull(item) or (0, size)


def _asked_hull(item: dict[str, Any]) -> Place | None:
    places = [place for name in _ASKED_PLACES for place in item.get(name) or []]
    return (min(a for a, _ in places), max(b for _, b in places)) if item.get("answers") else None


def cut_doc(doc: Doc, starts: Sequence[int], *, around: int = 0) -> list[Doc]:
    """The parts that begin with the words `starts`, the first of which is 0; the others are among `free_starts`.

    around: so many words before each part, and after it, come along without entities, spans and rows; of doc.ents they
    have no annotation (ent_iob 0).
    """
    if len(starts) < 2:
        return [doc]
    rows = get_all_rows(doc)
    head = doc._get_array_attrs()
    array = doc.to_array(list(head))
    groups = {name: _Spans(group) for name, group in doc.spans.items()}
    parts, size = [], len(doc.text)
    for start, end in zip(starts, [*starts[1:], len(doc)]):
        first, last = max(0, start - around), min(len(doc), end + around)
        own = array.copy() if around else array  # spaCy changes the words of the span in it
        part = doc[first:last].as_doc(array_head=head, array=own)  # type: ignore[call-arg]  # missing in spaCy's stubs
        part.has_unknown_spaces = doc.has_unknown_spaces
        part.set_ents([], missing=[x for x in (part[: start - first], part[end - first :]) if x], default="unmodified")
        for name, spans in groups.items():
            inside = [(x, a - first, b - first) for a, b, x in spans.within(start, end)]
            part.spans[name] = _group(part, name, inside)
        begin, behind = doc[start].idx, doc[end].idx if end < len(doc) else size
        for name, some in _moved(rows, by=-doc[first].idx, within=(begin, behind), size=size).items():
            set_rows(part, name, some)
        parts.append(part)
    return parts


class _Spans:
    """The spans of a group, read once: spaCy makes a Span each time that one is asked for."""

    def __init__(self, group: SpanGroup):
        rows = [(span.start, number, span.end, span) for number, span in enumerate(group)]
        self._rows = sorted(rows, key=itemgetter(0))

    def within(self, start: int, end: int) -> list[tuple[int, int, Span]]:
        """Those within the words [start, end), with their words, in the order of the group."""
        low = bisect_left(self._rows, start, key=itemgetter(0))
        high = bisect_right(self._rows, end, key=itemgetter(0))
        inside = sorted((x for x in self._rows[low:high] if x[2] <= end), key=itemgetter(1))
        return [(first, last, span) for first, _, last, span in inside]


def join_docs(docs: Sequence[Doc]) -> Doc:
    """One Doc of several of the same kind: with a blank line between them, a word of its own, where the text is known,
    and a sentence begins with each."""
    if len(docs) == 1:
        return docs[0]
    unknown = docs[0].has_unknown_spaces
    parts: list[Doc] = []
    for doc in docs:
        if parts and not unknown:
            parts.append(_blank_line(doc))
        parts.append(doc)
    exclude = ["spans", "user_data", "tensor"]
    joined = Doc.from_docs(parts, ensure_whitespace=unknown, exclude=exclude)  # type: ignore[call-arg]  # missing in spaCy's stubs
    joined.has_unknown_spaces = unknown
    groups: dict[str, list[tuple[Span, int, int]]] = {name: [] for name in docs[0].spans}
    rows: dict[str, list[Any]] = {}
    starts: list[int] = []
    first = 0
    for part in parts:
        if not any(part is doc for doc in docs):  # a blank line
            first += len(part)
            continue
        starts.append(first)
        for name, group in part.spans.items():
            groups[name] += [(x, x.start + first, x.end + first) for x in group]
        size = len(part.text)
        for name, some in _moved(get_all_rows(part), by=joined[first].idx, within=(0, size), size=size).items():
            rows[name] = some if name in _WHOLE else [*rows.get(name, []), *some]
        first += len(part)
    if not joined.has_annotation("DEP"):  # a tree has its sentences
        starts_W = get_sentence_starts(joined)
        starts_W[starts] = 1
        set_sentence_starts(joined, starts_W)
    for name, spans in groups.items():
        joined.spans[name] = _group(joined, name, spans)
    for name, some in rows.items():
        set_rows(joined, name, _numbered(some) if name in _ASKED else some)
    return joined


def _blank_line(like: Doc) -> Doc:
    doc = Doc(like.vocab, words=[_BLANK_LINE], spaces=[False])
    if like.has_annotation("ENT_IOB"):
        doc.set_ents([], default="outside")
    if like.has_annotation("SENT_START"):
        doc[0].is_sent_start = False
    return doc


def _group(doc: Doc, name: str, spans: Iterable[tuple[Span, int, int]]) -> SpanGroup:
    new = [Span(doc, a, b, label=x.label, kb_id=x.kb_id, span_id=x.id) for x, a, b in spans]
    return SpanGroup(doc, name=name, spans=new)


def _moved(rows: dict[str, list[Any]], *, by: int, within: Place, size: int) -> dict[str, list[Any]]:
    """The annotations within some characters [start, end), at new places."""

    def inside(hull: Place) -> bool:
        return within[0] <= hull[0] and hull[1] <= within[1]

    moved: dict[str, list[Any]] = {name: rows[name] for name in _WHOLE if name in rows}
    for name, pairs in _PLACES.items():
        if name in rows:
            columns = [column for pair in pairs for column in pair]
            moved[name] = [
                [x + by if i in columns else x for i, x in enumerate(row)]
                for row in rows[name]
                if inside((min(row[a] for a, _ in pairs), max(row[b] for _, b in pairs)))
            ]
    for name in _ASKED:
        if name in rows:
            kept = [item for item in rows[name] if inside(_asked_hull(item) or (0, size))]
            moved[name] = [
                {k: [[a + by, b + by] for a, b in x] if k in _ASKED_PLACES and x else x for k, x in item.items()}
                for item in kept
            ]
    return moved


def _numbered(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With new ids where Docs that were joined have the same."""
    if len({item.get("id") for item in asked}) == len(asked):
        return asked
    return [{**item, "id": str(i)} for i, item in enumerate(asked)]
