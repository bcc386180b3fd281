"""The page of `spacy luke annotate`: what a pipeline found in a text, for the browser, by displaCy. It needs no
network.

Reading `Findings` off a Doc is here too, since the tables in the terminal show the same.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from spacy.displacy.render import DependencyRenderer, EntityRenderer, SpanRenderer
from spacy.tokens import Doc, Span

from ..annotations import Answer, Relation, get_answers, get_fillers, get_relations

COLORS = ["#8fd3e8", "#f8c66d", "#b8a9f5", "#a9dcb0", "#f2a38c", "#e7d96b", "#a3c4f3", "#e3a5d1", "#c3d68a", "#d4bfa6"]
SLOT = 16  # pixels; the words of a drawing take an odd number of slots each, and stand in the middle one
CHARACTER = 7.3  # pixels of one in a drawing
NEAR = 3  # words around a mention that a drawing of a long sentence keeps
OTHERS = 3  # answers that are listed beside the best
CONTEXT = 30  # words around an answer where the Doc has no sentences

ENTITY = (
    '<mark class="entity" style="background: {bg}" title="{title}">{text}<span class="label">{label}{kb_link}</span>'
    "{types}</mark>"
)
PAGE = """<!DOCTYPE html>
<html lang="{lang}" dir="{direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 -apple-system, "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif; color: #1c2430;
  background: #fff; max-width: 62rem; margin: 2.5rem auto; padding: 0 1.5rem; }}
h1 {{ font-size: 1.5rem; margin: 0; }}
h2 {{ font-size: 1.15rem; margin: 2.6rem 0 .8rem; border-bottom: 1px solid #d9dee6; padding-bottom: .3rem; }}
.counts, .others, .types, .score {{ color: #5a6675; }}
.counts {{ margin: .2rem 0 0; }}
.entities {{ line-height: 2.35 !important; }}
mark {{ color: inherit; border-radius: .3em; }}
mark.entity {{ padding: .22em .4em; margin: 0 .12em; -webkit-box-decoration-break: clone;
                 box-decoration-break: clone; }}
.label {{ font-size: .68em; font-weight: 700; margin-inline-start: .5em; letter-spacing: .03em; }}
.types {{ font-size: .72em; margin-inline-start: .45em; color: #33404f; }}
.answer {{ margin: 0 0 1.3rem; }}
.answer p {{ margin: .15rem 0; }}
.question {{ font-weight: 600; }}
.answer mark {{ background: #ffe27a; padding: .12em .25em; }}
.others, .score {{ font-size: .85em; }}
figure {{ margin: 0 0 1.2rem; padding: .9rem .6rem 0; border: 1px solid #e4e8ee;
          border-radius: .5rem; overflow-x: auto; }}
figure svg {{ display: block; margin-bottom: -1.9rem; }}
.displacy-word {{ font-size: 14px; }}
.displacy-tag {{ font-size: 11px; font-weight: 700; fill: #5a6675; }}
.displacy-arrow {{ color: #2d6cb5; }}
.displacy-label {{ font-weight: 600; }}
table {{ border-collapse: collapse; font-size: .92em; }}
th, td {{ text-align: start; padding: .25rem 1.4rem .25rem 0; border-bottom: 1px solid #eceff3; vertical-align: top; }}
th {{ font-weight: 600; }}
td.number {{ text-align: end; font-variant-numeric: tabular-nums; }}
details {{ margin-top: 1rem; }}
summary {{ cursor: pointer; color: #2d6cb5; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="counts">{counts}</p>
{content}
</body>
</html>
"""


@dataclass(frozen=True)
class Findings:
    """What a pipeline found in a Doc. mentions: entities and typed mentions, with the probability of their label or
    None;
    spans_key: the group where the entities are, None: doc.ents; labels: of entities, in the order of their colors."""

    doc: Doc
    mentions: Sequence[tuple[Span, float | None]]
    relations: Sequence[Relation]
    answers: Sequence[Answer]
    spans_key: str | None
    labels: Sequence[str]

    def counts(self) -> list[str]:
        typed = sum(bool(span._.luke_types) for span, _ in self.mentions)
        numbers = {
            "word": len(self.doc),
            "entity": len(self.mentions),
            "entity with types": typed,
            "relation": len(self.relations),
            "question": len(self.answers),
        }
        plural = {"entity": "entities", "entity with types": "with types"}
        always = ("word", "entity")
        return [
            f"{n:,} {name if n == 1 and name != 'entity with types' else plural.get(name, name + 's')}"
            for name, n in numbers.items()
            if n or name in always
        ]


def read_findings(
    doc: Doc, *, spans_key: str | None = None, typed: Iterable[Span] = (), labels: Sequence[str] = ()
) -> Findings:
    """spans_key: of the entities; typed: other mentions that have types; labels: that the entities may have, in
    order."""
    if spans_key is None:
        found = [(span, span._.luke_score) for span in doc.ents]
    else:
        group = doc.spans[spans_key]
        found = list(zip(group, group.attrs.get("scores", [None] * len(group)), strict=True))
    places = {(span.start, span.end) for span, _ in found}
    found += [(span, None) for span in typed if (span.start, span.end) not in places and span._.luke_types]
    found.sort(key=lambda x: (x[0].start, -x[0].end))
    names = list(dict.fromkeys([*labels, *(span.label_ for span, _ in found)]))
    return Findings(doc, found, get_relations(doc), [*get_answers(doc), *get_fillers(doc)], spans_key, names)


def probability(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"


def one_line(text: str) -> str:
    return " ".join(text.split())


def type_list(span: Span) -> str:
    """Types of a mention with their probabilities, in one line."""
    return ", ".join(f"{label} {score:.2f}" for label, score in (span._.luke_types or {}).items())


def render_page(found: Findings, *, title: str) -> str:
    """A whole HTML page."""
    doc = found.doc
    parts = [*_answers(found), _text(found), *_relations(found), *_tables(found)]
    return PAGE.format(
        lang=escape(doc.lang_ or "xx"),
        direction=_direction(doc),
        title=escape(title),
        counts=escape(" · ".join(found.counts())),
        content="\n".join(parts),
    )


def _direction(doc: Doc) -> str:
    return str(doc.vocab.writing_system.get("direction", "ltr"))


def _text(found: Findings) -> str:
    """The text with its entities marked: displaCy's ent style, or its span style where they may overlap."""
    colors = {label.upper(): COLORS[i % len(COLORS)] for i, label in enumerate(found.labels)}
    settings = {"settings": {"lang": found.doc.lang_, "direction": _direction(found.doc)}}
    spans = [span for span, _ in found.mentions]
    if any(a.end > b.start for a, b in zip(spans, spans[1:])):
        data = {
            "text": found.doc.text,
            "tokens": [word.text for word in found.doc],
            "spans": [
                {"start_token": span.start, "end_token": span.end, "label": escape(_label(span))} for span in spans
            ],
            **settings,
        }
        names = {escape(_label(span)): colors[span.label_.upper()] for span in spans}
        return "<h2>Text</h2>\n" + SpanRenderer({"colors": names}).render([data])
    ents = [
        {"start": span.start_char, "end": span.end_char, "label": span.label_, "params": _mark(span, score)}
        for span, score in found.mentions
    ]
    renderer = EntityRenderer({"colors": colors, "template": ENTITY})
    return "<h2>Text</h2>\n" + renderer.render([{"text": found.doc.text, "ents": ents, **settings}])


def _label(span: Span) -> str:
    return " ".join(filter(None, [span.label_, ", ".join(span._.luke_types or {})]))


def _mark(span: Span, score: float | None) -> dict[str, str]:
    types = ", ".join(span._.luke_types or {})
    title = "; ".join(filter(None, [f"{span.label_} {probability(score)}".strip(), type_list(span)]))
    return {
        "label": escape(span.label_),
        "title": escape(title),
        "types": f'<span class="types">{escape(types)}</span>' if types else "",
    }


class _Arcs(DependencyRenderer):
    """displaCy's dep style, with room for a label under each arc however narrow the words are."""

    def get_levels(self, arcs: list[dict[str, Any]]) -> dict[tuple[int, int, str], int]:
        return {key: 5 * level for key, level in super().get_levels(arcs).items()}


# ---- answers


def _answers(found: Findings) -> Iterator[str]:
    if found.answers:
        yield "<h2>Answers</h2>"
    for answer in found.answers:
        others = [f"{one_line(x.text) or 'no answer'} ({x.score:.2f})" for x in answer.spans[1 : 1 + OTHERS]]
        yield (
            f'<div class="answer"><p class="question">{escape(answer.question)}</p>'
            f"<p>{_answer_in_text(answer)} <span class='score'>{probability(answer.score)}</span></p>"
            + (f'<p class="others">or: {escape("; ".join(others))}</p>' if others else "")
            + "</div>"
        )


def _answer_in_text(answer: Answer) -> str:
    span = answer.span
    if span is None:
        return "<em>The text does not say.</em>" if answer.spans else "<em>There is nothing to choose from.</em>"
    doc = span.doc
    if doc.has_annotation("SENT_START"):
        start, end = span.sent.start, max(span.sent.end, span.end)
    else:
        start, end = max(span.start - CONTEXT, 0), min(span.end + CONTEXT, len(doc))
    before, after = doc[start : span.start].text_with_ws, doc[span.end : end].text
    inside = span.text_with_ws
    return (
        escape(before.lstrip())
        + f"<mark>{escape(span.text)}</mark>{escape(inside[len(span.text) :])}{escape(after.rstrip())}"
    )


# ---- relations


def _relations(found: Findings) -> Iterator[str]:
    """A drawing for each sentence that has relations, displaCy's dep style."""
    if not found.relations:
        return
    yield "<h2>Relations</h2>"
    groups: dict[tuple[int, int], list[Relation]] = {}
    for relation in found.relations:
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
    renderer.lang = found.doc.lang_
    for i, (stretch, relations) in enumerate(sorted(groups.items())):
        words, arcs = draw(found.doc, stretch, relations)
        yield f"<figure>{renderer.render_svg(f'relations-{i}', words, arcs)}</figure>"


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


# ---- tables


def _tables(found: Findings) -> Iterator[str]:
    if found.relations:
        rows = [(one_line(r.head.text), r.label, one_line(r.tail.text), probability(r.score)) for r in found.relations]
        yield _table(f"All {len(rows):,} relations", ("head", "relation", "tail", "probability"), rows)
    if found.mentions:
        mentions = [(one_line(x.text), x.label_, probability(score), type_list(x)) for x, score in found.mentions]
        width = 4 if any(types for *_, types in mentions) else 3
        header = ("entity", "label", "probability", "types")[:width]
        yield _table(f"All {len(mentions):,} entities", header, [row[:width] for row in mentions])


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    numbers = header.index("probability")
    lines = []
    for row in rows:
        cells = [f'<td class="number">{x}</td>' if i == numbers else f"<td>{escape(x)}</td>" for i, x in enumerate(row)]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in header)
    return f"<details><summary>{title}</summary><table><tr>{head}</tr>\n" + "\n".join(lines) + "</table></details>"
