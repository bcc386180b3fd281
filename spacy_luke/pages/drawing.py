"""Drawings of relations, a sentence each, in displaCy's dep style."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from spacy.displacy.render import DependencyRenderer
from spacy.tokens import Doc, Span

from ..annotations import Relation
from .style import one_line

SLOT = 16  # pixels; the words of a drawing take an odd number of slots each, and stand in the middle one
CHARACTER = 7.3  # pixels of one in a drawing
NEAR = 3  # words around a mention that a drawing of a long sentence keeps


class _Arcs(DependencyRenderer):
    """displaCy's dep style, with room for a label under each arc however narrow the words are."""

    def get_levels(self, arcs: list[dict[str, Any]]) -> dict[tuple[int, int, str], int]:
        return {key: 5 * level for key, level in super().get_levels(arcs).items()}


def draw_relations(doc: Doc, relations: Sequence[Relation]) -> Iterator[str]:
    """An <svg> for each stretch of sentences that has relations."""
    groups: dict[tuple[int, int], list[Relation]] = {}
    for relation in relations:
        groups.setdefault(_stretch(relation), []).append(relation)
    renderer = _Arcs(
        {
            "distance": SLOT,
            "word_spacing": 34,
            "arrow_spacing": 8,
            "arrow_width": 6,
            "arrow_stroke": 1.5,
            "offset_x": 60,
        }
    )
    renderer.lang = doc.lang_
    for i, (stretch, inside) in enumerate(sorted(groups.items())):
        words, arcs = draw(doc, stretch, inside)
        yield _scalable(renderer.render_svg(f"relations-{i}", words, arcs))


def _scalable(svg: str) -> str:
    """With a view box, so that a drawing that is too wide for a page is made smaller."""
    return re.sub(r'width="(\d+)" height="([\d.]+)"', r'viewBox="0 0 \1 \2" width="\1" height="\2"', svg, count=1)


def _stretch(relation: Relation) -> tuple[int, int]:
    """Words [start, end) of the sentences that head and tail are in."""
    head, tail = relation.head, relation.tail
    start, end = min(head.start, tail.start), max(head.end, tail.end)
    doc = head.doc
    if not doc.has_annotation("SENT_START"):
        return 0, len(doc)
    return doc[start].sent.start, doc[end - 1].sent.end


def draw(
    doc: Doc, stretch: tuple[int, int], relations: Sequence[Relation]
) -> tuple[list[dict[str, str]], list[dict[str, object]]]:
    """Words and arcs as displaCy's dep style takes them. A mention is one word, its tag the entity's label; of two that
    overlap the outer one stands for both. Words far from any mention are left out."""
    places = _outer({(x.start, x.end): x for relation in relations for x in (relation.head, relation.tail)})
    tokens: list[tuple[str, str, tuple[int, int] | None]] = []
    at, skipped = stretch[0], False
    begins = {start: (start, end) for start, end in places}
    while at < stretch[1]:
        if at in begins:
            place = begins[at]
            tokens.append((one_line(doc[at : place[1]].text), places[place], place))
            at, skipped = place[1], False
            continue
        near = any(start - NEAR <= at < end + NEAR for start, end in places)
        if near and doc[at].text.strip():
            tokens.append((doc[at].text, "", None))
            skipped = False
        elif not near and not skipped:
            tokens.append(("…", "", None))
            skipped = True
        at += 1
    words: list[dict[str, str]] = []
    slot_of: dict[tuple[int, int], int] = {}
    for text, tag, known in tokens:
        half = _slots(text) // 2
        words += [{"text": "", "tag": ""}] * half
        if known is not None:
            slot_of[known] = len(words)
        words += [{"text": text, "tag": escape(tag)}, *[{"text": "", "tag": ""}] * half]
    return words, list(_arcs(relations, slot_of))


def _outer(mentions: dict[tuple[int, int], Span]) -> dict[tuple[int, int], str]:
    """Places that lie in no other one, with the mention's label."""
    kept: dict[tuple[int, int], str] = {}
    for start, end in sorted(mentions, key=lambda place: (place[0] - place[1], place)):
        if not any(a < end and start < b for a, b in kept):
            kept[start, end] = mentions[start, end].label_
    return dict(sorted(kept.items()))


def _slots(text: str) -> int:
    width = sum(2 if unicodedata.east_asian_width(x) in "WF" else 1 for x in text) * CHARACTER + 6
    return -int(-width // SLOT) | 1


def _arcs(relations: Sequence[Relation], slot_of: dict[tuple[int, int], int]) -> Iterator[dict[str, object]]:
    for relation in relations:
        ends = [
            next(slot for (a, b), slot in slot_of.items() if a < x.end and x.start < b)
            for x in (relation.head, relation.tail)
        ]
        if ends[0] != ends[1]:
            direction = "right" if ends[0] < ends[1] else "left"
            label = escape(f"{relation.label} {relation.score:.2f}")
            yield {"start": min(ends), "end": max(ends), "label": label, "dir": direction}
