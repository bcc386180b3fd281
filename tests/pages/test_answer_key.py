"""A key beside a text: what of the findings is right, and keys that do not fit."""

import json
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Span

from spacy_luke.annotations import Relation, register_extensions
from spacy_luke.pages.answer_key import read_answer_key
from spacy_luke.pages.findings import Link, read_findings
from spacy_luke.pages.rows import shown_entities, shown_relations

ROOT = Path(__file__).parents[2]
ARTICLE, KEY = ROOT / "assets/article.txt", ROOT / "assets/article.key.json"
TEXT = "Ada Lovelace lived in London. Ada wrote to Babbage from London."
GOOD = {
    "entities": [
        {"name": "Ada Lovelace", "label": "PER", "ids": ["Q7259", "Ada Lovelace"], "mentions": [[0, 12], [30, 33]]},
        {"name": "London", "label": "LOC", "ids": ["Q84"], "mentions": [[22, 28], [56, 62]]},
        {"name": "Babbage", "label": "PER", "mentions": [[43, 50]]},
    ],
    "relations": [["Ada Lovelace", "P551", "London"]],
    "properties": {"P551": "residence"},
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "key.json"
    path.write_text(json.dumps(GOOD), encoding="utf8")
    return path


@pytest.fixture
def doc():
    register_extensions()
    doc = spacy.blank("en")(TEXT)
    places = [(0, 2, "PER", "Q7259"), (4, 5, "LOC", "Q84"), (6, 7, "PER", "Q1"), (9, 10, "LOC", "")]
    places.append((11, 12, "LOC", "NIL"))
    doc.set_ents([Span(doc, start, end, label, kb_id=entity) for start, end, label, entity in places])
    return doc


def test_judgement(doc, path):
    ada, london, again, babbage, _ = doc.ents
    doc._.luke_relations = [
        Relation(ada, london, "P551", 0.5),
        Relation(again, doc.ents[4], "residence", 0.75),  # by its other name, and between other mentions
        Relation(london, ada, "P551", 0.25),
        Relation(doc[7:9], london, "P551", 0.25),  # not an entity at all
        Relation(doc[0:1], london, "P551", 0.125),  # a part of one
    ]
    found = read_findings(doc)
    judged = read_answer_key(path, TEXT).judge(found)
    assert judged.mentions == [True, True, True, False, True]
    assert judged.links == [True, True, False, None, None]  # NIL is no link
    assert judged.types == [[]] * 5
    assert judged.relations == [True, True, False, False, True]
    assert judged.missed == ["Babbage"]
    assert judged.verdict() == [
        ("entities", "4 of 5 that are shown are right (80%); 4 of the 5 in the text were found"),
        ("links", "2 of 3 that are shown are right (67%)"),
        ("relations", "3 of 5 that are shown are right (60%)"),
    ]
    rows = shown_entities(found, judged)
    assert [(x.name, x.count, x.right) for x in rows] == [
        ("Ada Lovelace", 1, True),
        ("London", 2, True),  # that without a link, too
        ("Ada", 1, False),
        ("Babbage", 1, False),
    ]
    assert rows[1].link == Link("Q84")
    assert [(x.score, x.right) for x in shown_relations(found, judged)] == [
        (0.75, True),
        (0.5, True),
        (0.25, False),
        (0.25, False),
        (0.125, True),
    ]


def test_places_that_are_left_open(doc, path):
    path.write_text(json.dumps(GOOD | {"open": [[42, 51]]}), encoding="utf8")
    found = read_findings(doc)
    judged = read_answer_key(path, TEXT).judge(found)
    assert judged.mentions == [True, True, True, None, True]
    assert judged.verdict()[0][1].startswith("4 of 4 that are shown")
    assert [x.right for x in shown_entities(found, judged)] == [True, True, False, None]


def test_types(doc, path):
    entities = [{**GOOD["entities"][0], "types": ["writer", "scholar"]}, {**GOOD["entities"][1], "types": []}]
    path.write_text(json.dumps(GOOD | {"entities": [*entities, GOOD["entities"][2]], "open": [[13, 18]]}))
    doc.set_ents([*doc.ents[:4], Span(doc, 7, 8, "MISC"), doc.ents[4]])
    ada, london, _, wrong, babbage, _ = doc.ents
    ada._.luke_types = {"writer": 0.9, "actor": 0.5}
    london._.luke_types = {"city": 0.9}  # the key says that it has none
    wrong._.luke_types = {"city": 0.9}  # no entity of the key
    babbage._.luke_types = {"scholar": 0.9}  # of whose types the key says nothing
    judged = read_answer_key(path, TEXT).judge(read_findings(doc))
    assert judged.types == [[True, False], [False], [], [False], [], []]
    assert [judged.is_right(i) for i in range(6)] == [False, False, False, False, False, True]
    assert ("types", "1 of 4 that are shown are right (25%)") in judged.verdict()


def test_nothing_found(path):
    register_extensions()
    found = read_findings(spacy.blank("en")(TEXT))
    judged = read_answer_key(path, TEXT).judge(found)
    assert judged.verdict() == [("entities", "0 of 0 that are shown are right; 0 of the 5 in the text were found")]
    assert judged.missed == ["Ada Lovelace", "Ada", "London", "London", "Babbage"]


def test_rows_of_one_name_with_two_links(doc, path):
    doc.set_ents([*doc.ents[:4], Span(doc, 11, 12, "LOC", kb_id="Q92561")])
    rows = shown_entities(read_findings(doc, describe=lambda name: Link(name, title=f"title of {name}")))
    assert [(x.name, x.link and x.link.title) for x in rows if x.name == "London"] == [
        ("London", "title of Q84"),
        ("London", "title of Q92561"),
    ]
    assert all(x.right is None for x in rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relations": [["Ada", "P551", "London"]]}, "names 'Ada', which is no entity"),
        ({"relations": [["Ada Lovelace", "London"]]}, "expected 'entities'"),
        ({"entities": [{"name": "Ada"}]}, "expected 'entities'"),
        ({"entities": [{"name": "Ada", "label": "PER", "mentions": []}], "relations": []}, "no mention of 'Ada'"),
        ({"entities": [{"name": "Ada", "label": "PER", "mentions": [[1, 4]]}], "relations": []}, "key of another text"),
        ({"properties": None}, "expected 'entities'"),
    ],
)
def test_keys_that_do_not_fit(path, change, message):
    path.write_text(json.dumps(GOOD | change), encoding="utf8")
    with pytest.raises(ValueError, match=message):
        read_answer_key(path, TEXT)


def test_a_key_that_says_something_twice(path):
    path.write_text(json.dumps(GOOD)[:-1] + ', "relations": []}', encoding="utf8")
    with pytest.raises(ValueError, match="each key once, but 'relations' is there twice"):
        read_answer_key(path, TEXT)


def test_the_key_of_the_article():
    """Every mention is of words of the text, none overlap, and nothing is said twice."""
    text = ARTICLE.read_text(encoding="utf8")
    key = read_answer_key(KEY, text)
    data = json.loads(KEY.read_text(encoding="utf8"))
    places = sorted(place for entity in key.entities for place in entity.mentions)
    assert all(a[1] <= b[0] for a, b in zip(places, places[1:]))
    assert len({x.name for x in key.entities}) == len(key.entities)
    ids = [one for x in key.entities for one in x.ids]
    assert len(set(ids)) == len(ids)
    for entity in key.entities:
        assert all(text[start:end] in entity.name for start, end in entity.mentions)
    assert len({tuple(x) for x in data["relations"]}) == len(data["relations"])
    assert {label for _, label, _ in data["relations"]} == set(data["properties"])
    assert not any(a < end and start < b for a, b in places for start, end in key.open_places)
    assert 300 <= len(text.split()) <= 450
