"""Payloads in everything that a page of `spacy luke annotate` shows: parsed, it has no element or attribute of
theirs."""

import random
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Span

from .hostile import HARM, Attack, Make

PAYLOADS = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><svg onload=alert(1)>', "'onmouseover='alert(1)",
    "javascript:alert(1)", "</style><script>x</script>", "</title><script>x</script>", "<!--", "-->", "]]>", "&lt;script&gt;",  # noqa: E501
    "<iframe src=//x>", "<a href=javascript:x>y</a>", "{{x}}", "${x}", "<base href=//x>", '" style="x', "\u202e<b>", "<\x00script>",  # noqa: E501
    "<math><mi//xlink:href=x>", "{0}{content}{title}", "%s%n", "<meta http-equiv=refresh content=0;url=//x>",
]  # fmt: skip
ALLOWED = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "h1",
    "h2",
    "p",
    "div",
    "mark",
    "span",
    "figure",
    "svg",
    "text",
    "tspan",
}
ALLOWED |= {"main", "ul", "li", "a", "thead", "tbody"}  # links lead to places of the page, see _Parser
ALLOWED |= {"g", "path", "textpath", "table", "tr", "th", "td", "details", "summary", "br", "strong", "b"}
PLACES = ("text", "labels", "links", "types", "relations", "questions", "title", "all")


def page_attacks() -> Iterator[Attack]:
    for place in PLACES:
        for payload in PAYLOADS:
            yield Attack("pages", f"{payload!r} in {place}", _page(payload, place))


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ALLOWED:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            outside = name in ("href", "src", "xlink:href", "action") and not str(value).startswith("#")
            if name.startswith("on") or outside or (name == "http-equiv" and value == "refresh"):
                self.wrong.append(f"{name}={value}")


def _page(payload: str, place: str) -> Make:
    def make(folder: Path, rng: random.Random) -> Any:
        def render(inputs: Path) -> None:
            from spacy_luke.annotations import register_extensions, set_questions
            from spacy_luke.pages.findings import read_findings
            from spacy_luke.pages.page import render_page

            register_extensions()

            def odd(where: str, usual: str) -> str:
                return payload if place in (where, "all") else usual

            nlp = spacy.blank("en")
            doc = nlp.make_doc(f"Ada {odd('text', 'met')} Bob in London .")
            for word in doc:
                word.is_sent_start = word.i == 0
            last = len(doc) - 2
            doc.set_ents(
                [
                    Span(doc, 0, 1, odd("labels", "PER"), kb_id=odd("links", "Q1")),
                    Span(doc, last, last + 1, odd("labels", "LOC")),
                ]
            )
            for entity in doc.ents:
                entity._.luke_types = {odd("types", "person"): 0.5}
                entity._.luke_score = 0.9
            doc._.luke_relations = [(doc.ents[0], doc.ents[1], odd("relations", "near"), 0.5)]
            if odd("questions", "Who?").strip():
                set_questions(doc, [odd("questions", "Who?")])
            page = render_page(read_findings(doc), title=odd("title", "A text"))
            parser = _Parser()
            parser.feed(page)
            if parser.wrong:
                print(f"{HARM}the page has {parser.wrong[:5]}")

        return render

    return make
