"""Findings as JSON: the form that the page, the service and files share."""

import json

import pytest
import spacy
from pydantic import ValidationError
from spacy.tokens import Doc, Span

from spacy_luke.annotations import EntityRecord, register_extensions, set_entities
from spacy_luke.pages.findings import read_findings
from spacy_luke.pages.schema import AnnotatedText, as_form, json_schema
from tests import schema_tables
from tests.pages.shown import ATTACK, TEXT, hostile_findings


@pytest.fixture(scope="module")
def form():
    return as_form(hostile_findings(), id="a/1", pipeline="en_mine 0.1")


def test_places_are_of_the_text(form):
    assert form.text == TEXT
    assert [form.text[x.start : x.end] for x in form.entities] == [x.text for x in form.entities]
    for relation in form.relations:
        for end in (relation.head, relation.tail):
            assert form.text[end.start : end.end] == end.text
    assert [form.text[a:b] for a, b in form.sentences][-1].endswith("to London.")
    assert form.entities[0].start == 2  # behind an emoji, which is one character


def test_all_that_was_found(form):
    assert (form.id, form.pipeline, form.language) == ("a/1", "en_mine 0.1", "en")
    assert [x.id for x in form.entities] == list(range(11))
    assert [x.score for x in form.entities][:4] == [0.9, 0.8, 0.7, 0.95]
    assert [(x.label, x.score) for x in form.entities[2].types] == [("person", 0.9), ("<b>", 0.6)]
    link = form.entities[3].link
    assert (link.id, link.wikidata, link.title, link.score) == ("Q<84>", "Q84", "London & all", 0.875)
    assert (link.types, link.url) == (["city"], "https://a.org/Q84?x=1&y")
    assert [(x.id, x.score) for x in link.candidates] == [("NIL", 0.125)]
    assert form.entities[0].link is None
    ends = [(x.head.entity, x.label, x.tail.entity) for x in form.relations]
    assert ends[:4] == [(0, "located_in", 1), (2, "lives in <b>", 3), (3, "has", 2), (None, ATTACK, 3)]
    assert [x.property for x in form.relations] == ["P131", "", ATTACK, "", ""]
    places = [[(x.text, x.score) for x in answer.places] for answer in form.answers]
    assert places == [[("London", 0.9), ("Accra", 0.1)], [("", 1.0)], []]
    assert [(x.id, x.kind) for x in form.answers] == [("0", "question"), ("why", "question"), ("0", "query")]
    assert form.answers[1].places[0].start is None  # the text does not say


def test_it_is_read_as_it_was_written(form):
    assert AnnotatedText.model_validate_json(form.model_dump_json()) == form
    assert form.model_dump() == json.loads(json.dumps(form.model_dump()), object_hook=_pairs)
    with pytest.raises(ValidationError, match="format"):
        AnnotatedText.model_validate({**form.model_dump(), "format": "spacy-luke-annotations/2"})


def _pairs(data):
    if data.get("sentences"):
        data["sentences"] = [tuple(x) for x in data["sentences"]]
    return data


def test_an_empty_text():
    register_extensions()
    form = as_form(read_findings(spacy.blank("xx")("")))
    assert (form.text, form.words, form.entities, form.relations, form.answers) == ("", 0, [], [], [])
    assert form.sentences is None


def test_scores_that_nobody_told_are_null():
    register_extensions()
    doc = Doc(spacy.blank("en").vocab, words=["Ada", "slept"], ents=["B-PER", "O"])
    (entity,) = as_form(read_findings(doc)).entities
    assert entity.score is None
    assert (entity.text, entity.label) == ("Ada", "PER")


def test_the_schema_is_in_the_reference():
    drawn = {
        schema_tables.FILE: schema_tables.draw_file,
        schema_tables.PAGE: schema_tables.draw_page,
        schema_tables.GRAPH_PAGE: schema_tables.draw_graph_page,
    }
    for path, draw in drawn.items():
        assert path.read_text(encoding="utf8") == draw(), f"{path.name} is old: run make tables"


def test_every_field_says_what_it_is():
    schema = json_schema()
    parts = {"AnnotatedText": schema, **schema["$defs"]}
    assert len(parts) == 9
    assert [name for name, part in parts.items() if not part.get("description")] == []
    fields = [(name, key, x) for name, part in parts.items() for key, x in part["properties"].items()]
    assert [(name, key) for name, key, x in fields if not x.get("description")] == []


def test_what_a_doc_says_of_its_links():
    """Without the pipeline's knowledge base, which may be gone: title, description and address are the Doc's."""
    doc = spacy.blank("en")("Ada lived in London")
    doc.set_ents([Span(doc, 3, 4, "LOC", kb_id="Q84")])
    set_entities(doc, {(13, 19): EntityRecord("e1", "London", "Q84", "https://a.org", "a city", ("city",))})
    link = as_form(read_findings(doc)).entities[0].link
    assert (link.id, link.title, link.description, link.url) == ("Q84", "London", "a city", "https://a.org")
    doc.set_ents([Span(doc, 3, 4, "LOC", kb_id="Q1")])  # another one since
    assert as_form(read_findings(doc)).entities[0].link.title == ""
