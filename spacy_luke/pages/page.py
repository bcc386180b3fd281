"""The page of `spacy luke annotate`: what a pipeline found in a text, for the browser, by displaCy. It needs no
network."""

from collections.abc import Iterator, Sequence
from html import escape

from spacy.displacy.render import EntityRenderer, SpanRenderer
from spacy.tokens import Doc, Span

from ..annotations import Answer
from .drawing import draw_relations
from .findings import Findings, type_list
from .style import COLORS, PAGE, one_line, probability

OTHERS = 3  # answers that are listed beside the best
CONTEXT = 30  # words around an answer where the Doc has no sentences


ENTITY = (
    '<mark class="entity" style="background: {bg}" title="{title}">{text}<span class="label">{label}{kb_link}</span>'
    "{types}</mark>"
)


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


def _relations(found: Findings) -> Iterator[str]:
    if found.relations:
        yield "<h2>Relations</h2>"
        yield from (f"<figure>{drawing}</figure>" for drawing in draw_relations(found.doc, found.relations))


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
