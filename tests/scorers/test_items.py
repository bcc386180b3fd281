"""Items, counted, are what the scorers say, whatever is wrong in what was found."""

import random

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.annotations import (
    TASKS,
    EntityRecord,
    register_extensions,
    set_entities,
    set_pairs,
    set_relations,
    set_rows,
)
from spacy_luke.scorers.entity_types import score_types
from spacy_luke.scorers.items import entity_items, link_items, relation_items, type_items
from spacy_luke.scorers.linking import score_links
from spacy_luke.scorers.ner import score_ner
from spacy_luke.scorers.relations import score_relations

VOCAB = spacy.blank("en").vocab
WORDS = [f"w{i}" for i in range(12)]


def make(draw, *, pairs=False, share=0.6):
    """Annotation by chance: entities of one or two words with labels, types, ids, and relations between them."""
    register_extensions()
    doc = Doc(VOCAB, words=WORDS)
    places = [(i, i + draw.choice((1, 2))) for i in range(0, 12, 2) if draw.random() < share]
    spans = [Span(doc, a, b, draw.choice("ABC"), kb_id=draw.choice(("Q1", "Q2", "NIL"))) for a, b in places]
    doc.set_ents(spans)
    doc.spans["sc"] = [Span(doc, a, b, draw.choice("AB")) for a, b in {(draw.randrange(9), 10) for _ in range(4)}]
    for span in doc.ents:
        span._.luke_types = {x: 0.5 for x in "xyz" if draw.random() < 0.5}
    doc.spans["luke_types"] = [Span(doc, a, b, x) for a, b in places for x in "xyz" if draw.random() < 0.5]
    chosen = [(a, b) for a in doc.ents for b in doc.ents if a != b and draw.random() < 0.4]
    set_relations(doc, [(a, b, draw.choice(("r", "s")), draw.random()) for a, b in chosen])
    if pairs:
        set_pairs(doc, [(a, b) for a in doc.ents for b in doc.ents if a != b and draw.random() < 0.5])
    return doc


def examples(seed, **settings):
    draw = random.Random(seed)
    return [Example(make(draw), make(draw, **settings)) for _ in range(10)]


def f_score(items):
    right = sum(x.gold and x.found for x in items)
    return 2 * right / (sum(x.gold for x in items) + sum(x.found for x in items))


def nothing_twice(items):
    keys = [(x.doc, x.places, x.label) for x in items]
    return len(set(keys)) == len(keys) > 20


@pytest.mark.parametrize("seed", range(5))
def test_entities(seed):
    some = examples(seed)
    for key, name in ((None, "ents_f"), ("sc", "spans_sc_f")):
        items = entity_items(some, spans_key=key)
        assert nothing_twice(items)
        assert f_score(items) == pytest.approx(score_ner(some, spans_key=key)[name])


@pytest.mark.parametrize("seed", range(5))
def test_types(seed):
    some = examples(seed)
    items = type_items(some)
    assert f_score(items) == pytest.approx(score_types(some)["types_micro_f"])
    assert all((x.score == 0.5) == x.found for x in items)


@pytest.mark.parametrize("none", [None, "s"])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_relations(seed, pairs, none):
    some = examples(seed, pairs=pairs)
    items = relation_items(some, none=none)
    scores = score_relations(some, none=none)
    assert f_score(items) == pytest.approx(scores["relations_f"])
    assert {x.label for x in items} == set(scores["relations_per_type"]) == {"r", "s"} - {none}
    assert all((x.score is not None) == x.found for x in items)


def words_of_relations(doc):
    return [(x.head.start, x.head.end, x.tail.start, x.tail.end, x.label) for x in doc._.luke_relations]


def with_labels(doc, meant):
    """A copy of the gold under other labels."""
    new = doc.copy()
    new.set_ents([Span(new, x.start, x.end, meant(x.label_)) for x in doc.ents], default="outside")
    for key in ("sc", "luke_types"):
        new.spans[key] = [Span(new, x.start, x.end, meant(x.label_)) for x in doc.spans[key]]
    set_relations(new, [(new[a:b], new[c:d], meant(label)) for a, b, c, d, label in words_of_relations(doc)])
    return new


MEANT = [
    {"A": "B", "B": "A", "x": "y", "y": "x", "r": "s", "s": "r"},  # swapped
    {"A": "B", "x": "y", "r": "s"},  # one that stands for another, too
    {"A": "NEW", "x": "new", "r": "n"},  # of the gold alone
]


@pytest.mark.parametrize("meant", MEANT)
@pytest.mark.parametrize("seed", range(2))
def test_labels_that_mean_others_count_as_if_the_gold_had_those(seed, meant):
    plain = examples(seed)
    renamed = [Example(x.predicted, with_labels(x.reference, lambda label: meant.get(label, label))) for x in plain]
    scoped = [Example(x.predicted, with_labels(x.reference, str)) for x in plain]
    for example in scoped:
        example.reference._.luke_scope = {task: {"labels": meant} for task in TASKS}
    assert score_ner(scoped) == score_ner(renamed) != score_ner(plain)
    assert score_ner(scoped, spans_key="sc") == score_ner(renamed, spans_key="sc") != score_ner(plain, spans_key="sc")
    assert score_types(scoped) == score_types(renamed) != score_types(plain)
    assert score_relations(scoped) == score_relations(renamed) != score_relations(plain)
    for items in (entity_items, type_items, relation_items):
        assert items(scoped) == items(renamed) != items(plain)


@pytest.mark.parametrize("seed", range(5))
def test_links(seed):
    some = examples(seed)
    assert f_score(link_items(some)) == pytest.approx(score_links(some)["links_strict_f"])


def test_another_id_of_the_entity_that_is_gold():
    """As the scorer counts it, and the score of what was found."""
    gold, found = (Doc(VOCAB, words=WORDS[:2]) for _ in range(2))
    gold.set_ents([Span(gold, 0, 1, "E", kb_id="Q90")])
    found.set_ents([Span(found, 0, 1, "E", kb_id="Paris")])
    set_entities(found, {(0, 2): EntityRecord("Paris", "Paris", "Q90", "", "", ())})
    set_rows(found, "luke_linked", [[0, 2, [["Paris", 0.5, 0.75]]]])
    some = [Example(found, gold)]
    assert score_links(some)["links_strict_f"] == 1.0
    assert [tuple(x) for x in link_items(some)] == [(0, ((0, 2),), "Q90", True, True, 0.75)]


def test_what_is_not_annotated_is_left_out():
    gold, found = (Doc(VOCAB, words=WORDS[:4]) for _ in range(2))
    found.set_ents([Span(found, 0, 1, "A"), Span(found, 2, 3, "A")])
    assert entity_items([Example(found, gold)]) == []
    gold.set_ents([Span(gold, 0, 1, "A")], missing=[gold[1:4]], default="outside")
    (item,) = entity_items([Example(found, gold)])
    assert (item.places, item.gold, item.found) == (((0, 2),), True, True)
