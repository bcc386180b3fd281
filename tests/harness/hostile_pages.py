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
PLACES = ("text", "labels", "links", "types", "relations", "questions", "title", "all")


def page_attacks() -> Iterator[Attack]:
    for place in PLACES:
        for payload in PAYLOADS:
            yield Attack("pages", f"{payload!r} in {place}", _page(payload, place))


class _Parser(HTMLParser):
    """The elements and attributes of a page, but for values that digests and texts may change."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, [f"{name}={value}" for name, value in attrs]))


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
            usual = render_page(read_findings(nlp.make_doc("Ada")), title="A text")
            wanted = _Parser(usual).found
            found = _Parser(render_page(read_findings(doc), title=odd("title", "A text"))).found
            if found != wanted:
                print(f"{HARM}the page has {[x for x in found if x not in wanted][:5]}")

        return render

    return make
