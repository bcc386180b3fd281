"""How often what is shown is right, by its score; counted by hand."""

import pytest
import spacy
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from spacy_luke.annotations import LinkCandidate, LinkedMention, register_extensions, set_linked
from spacy_luke.scorers.items import entity_items, link_items, relation_items, type_items
from spacy_luke.scorers.reliability import judged, measure_reliability

NLP = spacy.blank("en")
WORDS = ["Ada", "Byron", "of", "London", "met", "Bo"]


@pytest.fixture
def pair():
    register_extensions()
    return Doc(NLP.vocab, words=WORDS), Doc(NLP.vocab, words=WORDS)


def scored(doc, start, end, label, score):
    span = Span(doc, start, end, label)
    span._.luke_score = score
    return span


def test_error_by_hand():
    rows = [(0.95, True), (0.91, False), (0.55, True), (0.6, True), (0.05, False)]
    found = measure_reliability(rows)
    assert [(x.low, x.high, x.n) for x in found.bins] == [(0.0, 0.1, 1), (0.5, 0.6, 2), (0.9, 1.0, 2)]
    assert [x.right for x in found.bins] == [0.0, 1.0, 0.5]
    assert found.ece == pytest.approx((0.05 + 2 * (1 - 0.575) + 2 * (0.93 - 0.5)) / 5)
    assert measure_reliability([]) == (0, None, [])
    edges = measure_reliability([(0.0, False), (1.0, True), (1.0 + 1e-9, True)])
    assert [x.n for x in edges.bins] == [1, 2]
    assert edges.ece == pytest.approx(0, abs=1e-6)
    assert found.to_dict()["bins"][0] == {"low": 0.0, "high": 0.1, "n": 1, "score": 0.05, "right": 0.0}


def test_entities(pair):
    doc, gold = pair
    other = Span(doc, 2, 3, "X")  # of another component, without a score
    doc.set_ents([scored(doc, 0, 2, "PER", 0.9), other, scored(doc, 3, 4, "ORG", 0.4), scored(doc, 5, 6, "PER", 0.7)])
    assert judged(entity_items([Example(doc, gold)])) == []  # nothing is known
    gold.set_ents([Span(gold, 0, 2, "PER"), Span(gold, 3, 4, "LOC")], missing=[gold[5:6]])
    assert judged(entity_items([Example(doc, gold)])) == [(0.9, True), (0.4, False)]
    gold._.luke_scope = {"entities": {"annotates": ["PER"]}}
    assert judged(entity_items([Example(doc, gold)])) == [(0.9, True)]


def test_entities_of_a_group(pair):
    doc, gold = pair
    spans = [Span(doc, 0, 2, "PER"), Span(doc, 0, 1, "PER")]
    doc.spans["sc"] = SpanGroup(doc, name="sc", spans=spans, attrs={"scores": [0.75, 0.5]})
    assert judged(entity_items([Example(doc, gold)], spans_key="sc")) == []
    gold.spans["sc"] = [Span(gold, 0, 2, "PER")]
    assert judged(entity_items([Example(doc, gold)], spans_key="sc")) == [(0.5, False), (0.75, True)]
    doc.set_ents([scored(doc, 0, 2, "PER", 0.9), scored(doc, 3, 4, "LOC", 0.4)])
    assert judged(entity_items([Example(doc, gold)], spans_key="sc", ents=True)) == [(0.9, True), (0.4, False)]


def test_types(pair):
    doc, gold = pair
    doc[0:2]._.luke_types = {"person": 0.9, "king": 0.3}
    doc[3:4]._.luke_types = {"place": 0.8}
    gold.spans["luke_types"] = [Span(gold, 0, 2, "person"), Span(gold, 5, 6, "")]
    assert judged(type_items([Example(doc, gold)])) == [(0.3, False), (0.9, True)]
    gold._.luke_scope = {"types": {"annotates": ["person"]}}
    assert judged(type_items([Example(doc, gold)])) == [(0.9, True)]


def test_relations(pair):
    doc, gold = pair
    doc._.luke_relations = [(doc[0:2], doc[3:4], "in", 0.8), (doc[0:2], doc[5:6], "met", 0.6)]
    assert judged(relation_items([Example(doc, gold)])) == []
    gold._.luke_relations = [(gold[0:2], gold[3:4], "in")]
    assert judged(relation_items([Example(doc, gold)])) == [(0.8, True), (0.6, False)]
    gold._.luke_scope = {"relations": {"annotates": ["in"]}}
    assert judged(relation_items([Example(doc, gold)])) == [(0.8, True)]
    gold._.luke_scope = None
    gold._.luke_pairs = [(gold[0:2], gold[3:4])]
    assert judged(relation_items([Example(doc, gold)])) == [(0.8, True)]


def test_links(pair):
    doc, gold = pair
    places = [(0, 2, "Q1"), (2, 3, "Q9"), (3, 4, "Q2"), (4, 5, "NIL"), (5, 6, "Q3")]
    doc.set_ents([Span(doc, a, b, "X", kb_id=kb_id) for a, b, kb_id in places])
    linked = [(0, 9, [("Q1", 0.5, 0.9), ("Q2", 0.5, 0.1)]), (10, 12, [("Q9", 1.0, 0.45)]), (13, 19, [("Q2", 1.0, 0.6)])]
    linked += [(20, 23, [("Q5", 1.0, 0.2)]), (24, 26, [("Q3", 1.0, 0.7)])]
    set_linked(doc, [LinkedMention(a, b, [LinkCandidate(*x) for x in found]) for a, b, found in linked])
    gold.set_ents([Span(gold, 3, 4, "X")])
    assert judged(link_items([Example(doc, gold)])) == []  # no ids
    gold.set_ents([Span(gold, 0, 2, "X", kb_id="Q1"), Span(gold, 3, 4, "X", kb_id="Q7"), Span(gold, 5, 6, "X")])
    assert judged(link_items([Example(doc, gold)])) == [(0.9, True), (0.45, False), (0.6, False)]
