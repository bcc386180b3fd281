"""The page of `spacy luke annotate`: what a pipeline found in a text, for the browser, by displaCy. It needs no
network."""

from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import urlsplit

from spacy.displacy.render import EntityRenderer, SpanRenderer
from spacy.tokens import Doc, Span

from ..annotations import Answer
from .answer_key import Judgement
from .drawing import draw_relations
from .findings import Findings, Link, Mention, type_list
from .rows import entity_rows, relation_rows
from .style import COLORS, PAGE, one_line, probability

OTHERS = 3  # answers that are listed beside the best
CONTEXT = 30  # words around an answer where the Doc has no sentences


ENTITY = (
    '<mark class="entity" id="m{number}" style="background: {bg}" title="{title}">{text}<span class="label">{label}'
    "</span>{types}</mark>"
)


def render_page(found: Findings, *, title: str, judged: Judgement | None = None) -> str:
    """A whole HTML page. judged: which findings are right, where a key of the text told."""
    doc = found.doc
    parts = [*_verdict(judged), *_answers(found), *_legend(found), _text(found), *_tables(found, judged)]
    parts += _drawings(found)
    return PAGE.format(
        lang=escape(doc.lang_ or "xx"),
        direction=_direction(doc),
        title=escape(title),
        counts=escape(" · ".join(found.counts())),
        content="\n".join(parts),
    )


def _verdict(judged: Judgement | None) -> Iterator[str]:
    if judged is not None:
        lines = [f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in judged.verdict()]
        yield f'<dl class="verdict">{"".join(lines)}</dl>'


def _color(found: Findings, label: str) -> str:
    return COLORS[found.labels.index(label) % len(COLORS)]


def _legend(found: Findings) -> Iterator[str]:
    """The labels that there are, in their colors, and how often."""
    counts = {label: sum(x.span.label_ == label for x in found.mentions) for label in found.labels}
    marks = [
        f'<li><mark class="entity" style="background: {_color(found, label)}">{escape(label)}</mark> {count:,}</li>'
        for label, count in counts.items()
        if count and label
    ]
    if marks:
        yield f'<ul class="legend">{"".join(marks)}</ul>'


def _direction(doc: Doc) -> str:
    return str(doc.vocab.writing_system.get("direction", "ltr"))


def _text(found: Findings) -> str:
    """The text with its entities marked: displaCy's ent style, or its span style where they may overlap."""
    colors = {label.upper(): _color(found, label) for label in found.labels}
    settings = {"settings": {"lang": found.doc.lang_, "direction": _direction(found.doc)}}
    spans = [mention.span for mention in found.mentions]
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
        {"start": x.span.start_char, "end": x.span.end_char, "label": x.span.label_, "params": _mark(x, number)}
        for number, x in enumerate(found.mentions)
    ]
    renderer = EntityRenderer({"colors": colors, "template": ENTITY})
    return "<h2>Text</h2>\n" + renderer.render([{"text": found.doc.text, "ents": ents, **settings}])


def _label(span: Span) -> str:
    return " ".join(filter(None, [span.label_, ", ".join(span._.luke_types or {})]))


def _mark(mention: Mention, number: int) -> dict[str, str]:
    span, link = mention.span, mention.link
    types = ", ".join(span._.luke_types or {})
    known = "" if link is None else " ".join(filter(None, [link.id, link.title, probability(link.score)]))
    own = f"{span.label_} {probability(mention.score)}".strip()
    return {
        "number": str(number),
        "label": escape(span.label_),
        "title": escape("; ".join(filter(None, [own, type_list(span), known]))),
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


def _tables(found: Findings, judged: Judgement | None) -> Iterator[str]:
    relations = [
        (escape(x.head), escape(x.label), escape(x.tail), _number(x.score), _right(x.right))
        for x in relation_rows(found, judged)
    ]
    if relations:
        yield "<h2>Relations</h2>"
        yield _table(("head", "relation", "tail", "score", "right"), relations)
    entities = [
        (
            f'<a href="#m{x.first}">{escape(x.name)}</a>' if _has_marks(found) else escape(x.name),
            escape(x.label),
            f"{x.count}",
            _number(x.score),
            escape(x.types),
            _link(x.link),
            "" if x.link is None else _number(x.link.score),
            _right(x.right),
        )
        for x in entity_rows(found, judged)
    ]
    if entities:
        yield "<h2>Entities</h2>"
        yield _table(("entity", "label", "times", "score", "types", "link", "link score", "right"), entities)


def _has_marks(found: Findings) -> bool:
    """Whether the text has a place for each mention that a table can lead to."""
    return not any(a.span.end > b.span.start for a, b in zip(found.mentions, found.mentions[1:]))


def _link(link: Link | None) -> str:
    if link is None:
        return ""
    name = escape(link.id)
    if urlsplit(link.url).scheme in ("http", "https"):
        name = f'<a href="{escape(link.url)}">{name}</a>'
    title = escape(link.title) if link.title != link.id else ""
    about = f'<span class="about">{escape(link.description)}</span>' if link.description else ""
    return " ".join(filter(None, [name, title, about]))


def _number(score: float | None) -> str:
    return f'<span class="number">{probability(score)}</span>'


def _right(right: bool | None) -> str:
    return "" if right is None else "yes" if right else '<strong class="wrong">no</strong>'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """rows: of HTML; a column without any is left out."""
    columns = [i for i in range(len(header)) if any(row[i] for row in rows)]
    kinds = ["c-" + header[i].replace(" ", "-") for i in columns]
    head = "".join(f'<th scope="col" class="{kind}">{header[i]}</th>' for i, kind in zip(columns, kinds, strict=True))
    lines = [
        "<tr>" + "".join(f'<td class="{kind}">{row[i]}</td>' for i, kind in zip(columns, kinds, strict=True)) + "</tr>"
        for row in rows
    ]
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n" + "\n".join(lines) + "</tbody></table>"


def _drawings(found: Findings) -> Iterator[str]:
    if found.relations:
        figures = "\n".join(f"<figure>{drawing}</figure>" for drawing in draw_relations(found.doc, found.relations))
        yield f"<details><summary>Relations in their sentences</summary>\n{figures}</details>"
