"""Rows of the tables: what is found several times is one, and a relation has the property that it is elsewhere."""

import spacy
from spacy.tokens import Doc, Span

from spacy_luke.annotations import register_extensions, set_relations
from spacy_luke.pages.findings import read_findings
from spacy_luke.pages.rows import shown_relations


def test_relations_have_their_properties():
    register_extensions()
    doc = Doc(spacy.blank("en").vocab, words="Ada lived in Bath , Ada worked in Bath .".split())
    doc.set_ents([Span(doc, 0, 1, "PER"), Span(doc, 3, 4, "LOC"), Span(doc, 5, 6, "PER"), Span(doc, 8, 9, "LOC")])
    ada, bath, again, there = doc.ents
    set_relations(doc, [(ada, bath, "residence"), (again, there, "residence"), (bath, ada, "notable person")])
    rows = shown_relations(read_findings(doc, properties={"residence": "P551"}))
    assert [(x.head, x.label, x.tail, x.id, x.count) for x in rows] == [
        ("Ada", "residence", "Bath", "P551", 2),
        ("Bath", "notable person", "Ada", "", 1),
    ]
    assert {x.id for x in shown_relations(read_findings(doc))} == {""}
