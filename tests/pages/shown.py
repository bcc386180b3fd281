"""Docs with all that a page shows, and with what HTML, scripts and spreadsheets must not take for theirs."""

import spacy
from spacy.tokens import Doc, Span

from spacy_luke.annotations import (
    EntityRecord,
    LinkCandidate,
    LinkedMention,
    Relation,
    register_extensions,
    set_entities,
    set_found,
    set_linked,
)
from spacy_luke.annotations.keys import QUERIES, QUESTIONS
from spacy_luke.pages.findings import Findings, Link, read_findings

ATTACK = '</script><img src=x onerror="window.hacked=1">'
URL = "https://a.org/Q84?x=1&y"
TEXT = (
    f"😀 Ada & <Co> of Accra met Nadia Haddad, who had left a very small town by the sea, in London. {ATTACK} It "
    "rained. =HYPERLINK(1) was sold to Ada & <Co> in 1 999.\u2028 "
    "Nadia Haddad of the University of Accra wrote {x} to London."
)


def words_of(doc: Doc, text: str, number: int = 0) -> tuple[int, int]:
    """Characters [start, end) of words that a text has several times, counted from 0."""
    start = -1
    for _ in range(number + 1):
        start = doc.text.index(text, start + 1)
    return start, start + len(text)


def span_of(doc: Doc, text: str, label: str = "", number: int = 0, entity: str = "") -> Span:
    span = doc.char_span(*words_of(doc, text, number), label=label, kb_id=entity, alignment_mode="expand")
    assert span is not None
    return span


def hostile_doc() -> Doc:
    """Nested and crossing entities in doc.spans["sc"], types, links, relations, answers."""
    register_extensions()
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    doc = nlp(TEXT)
    spans = [
        span_of(doc, "Ada & <Co>", "O<R>G"),
        span_of(doc, "Accra", "LOC"),
        span_of(doc, "Nadia Haddad", "PER"),
        span_of(doc, "London", "LOC", entity="Q<84>"),
        span_of(doc, "=HYPERLINK(1)", ATTACK),
        span_of(doc, "Ada & <Co>", "O<R>G", 1),
        span_of(doc, "Nadia Haddad", "PER", 1),
        span_of(doc, "University of Accra", "O<R>G", entity="javascript:alert(1)"),
        span_of(doc, "Accra", "LOC", 1),
        span_of(doc, "Accra wrote", "PER"),
        span_of(doc, "London", "LOC", 1, "Q<84>"),
    ]
    doc.spans["sc"] = spans
    doc.spans["sc"].attrs["scores"] = [0.9, 0.8, 0.7, 0.95, 0.3, 0.6, 0.5, 0.4, 0.99, 0.2, 0.85]
    places = {(x.start_char, x.end_char): x for x in spans}
    linked = [place for place, x in places.items() if x.kb_id_]
    known = {
        "Q<84>": EntityRecord("Q<84>", "London & all", "Q84", URL, f"capital {ATTACK}", ("city",)),
        "javascript:alert(1)": EntityRecord("javascript:alert(1)", "", "", "javascript:window.hacked=1", "", ()),
    }
    set_entities(doc, {place: known[places[place].kb_id_] for place in linked})
    set_linked(
        doc,
        [
            LinkedMention(*place, [LinkCandidate(places[place].kb_id_, 0.5, 0.875), LinkCandidate("NIL", 0.0, 0.125)])
            for place in linked
        ],
    )
    spans[2]._.luke_types = {"person": 0.9, "<b>": 0.6}
    doc._.luke_relations = [
        Relation(spans[0], spans[1], "located_in", 0.8),
        Relation(spans[2], spans[3], "lives in <b>", 0.7),
        Relation(spans[3], spans[2], "has", 0.6),
        Relation(span_of(doc, "town"), spans[3], ATTACK, 0.5),  # its head is no entity
        Relation(spans[6], spans[10], "lives in <b>", 0.4),
    ]
    doc._.luke_questions = ["Where <b>?", {"id": "why", "question": "Why?"}]
    doc._.luke_queries = ["@placeholder rained."]
    set_found(doc, QUESTIONS, [[[*words_of(doc, "London"), 0.9], [*words_of(doc, "Accra"), 0.1]], [[0, 0, 1.0]]])
    set_found(doc, QUERIES, [[]])
    return doc


def hostile_findings() -> Findings:
    doc = hostile_doc()
    known = {"Q<84>": Link("Q<84>", None, "London & all", f"capital {ATTACK}", URL)}
    unsafe = Link("javascript:alert(1)", None, "", "", "javascript:window.hacked=1")
    properties = {"located_in": "P131", "has": ATTACK}
    return read_findings(
        doc, spans_key="sc", labels=["LOC", "PER"], describe=lambda name: known.get(name, unsafe), properties=properties
    )


def long_findings(words: int) -> Findings:
    """A long text: in each sentence of ten words there are two entities, with a relation."""
    register_extensions()
    doc = Doc(
        spacy.blank("en").vocab,
        words=["On", "Monday", "Ada", "Smith", "went", "home", "to", "Accra", "again", "."] * (words // 10),
        sent_starts=([True] + [False] * 9) * (words // 10),
    )
    starts = range(0, len(doc), 10)
    ents = [x for i in starts for x in (Span(doc, i + 2, i + 4, "PER"), Span(doc, i + 7, i + 8, "LOC"))]
    doc.set_ents(ents)
    doc._.luke_relations = [Relation(a, b, "lives_in", 0.75) for a, b in zip(ents[::2], ents[1::2])]
    return read_findings(doc)
