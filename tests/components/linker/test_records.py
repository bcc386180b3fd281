"""Ids that travel: the id that the user chose, the rest in span._.luke_entity, gold by any of an entity's ids."""

import json

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_luke.annotations import LinkCandidate, LinkedMention, get_entity, get_linked, register_extensions, set_linked
from spacy_luke.checkpoint.text_encoder import TextEncoder
from spacy_luke.components.linker.embed_entities import embed_entities
from spacy_luke.components.linker.records import to_kb_ids, write_records
from spacy_luke.kb.build import build_kb
from spacy_luke.scorers.linking import score_links
from tests.tiny import make_checkpoint

ROWS = [
    {
        "id": "e1",
        "names": ["London"],
        "title": "London",
        "wikidata": "Q84",
        "url": "en",
        "description": "a city",
        "types": ["city", "place"],
    },
    {"id": "e2", "names": ["HMS London", "London"], "description": "a ship"},
]
LONDON = ("e1", "London", "Q84", "https://en.wikipedia.org/wiki/London", "a city", ("city", "place"))


@pytest.fixture
def kb(tmp_path):
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return build_kb([tmp_path / "e.jsonl"], tmp_path / "kb").kb


def doc_with(entity, *, vocab=None):
    doc = Doc(vocab or spacy.blank("en").vocab, words="London is large .".split())
    doc.set_ents([Span(doc, 0, 1, "GPE", kb_id=entity, span_id="x")])
    return doc


@pytest.mark.parametrize(
    ("ids", "chosen", "other"),
    [
        ("id", "e1", "e2"),
        ("title", "London", "HMS London"),
        ("wikidata", "Q84", "e2"),
        ("url", "https://en.wikipedia.org/wiki/London", "e2"),
    ],
)
@pytest.mark.parametrize("key", [None, "sc"])
def test_the_chosen_id_and_the_record(kb, ids, chosen, other, key):
    doc = doc_with("e1")
    set_linked(doc, [LinkedMention(0, 6, [LinkCandidate("e1", 0.5, 0.9), LinkCandidate("e2", 0.5, 0.1)])])
    if key:
        doc.spans[key] = list(doc.ents)
        doc.set_ents([])
    write_records(doc, [(0, 1)], kb, ids=ids, key=key)
    (span,) = doc.spans[key] if key else doc.ents
    assert (span.kb_id_, span.label_, span.id_) == (chosen, "GPE", "x")
    assert get_entity(span) == LONDON
    assert [one.id for one in get_linked(doc)[0].candidates] == [chosen, other]


def test_mentions_without_an_entity_have_no_record(kb):
    for entity in ("NIL", "", "Q_date"):
        doc = doc_with(entity)
        write_records(doc, [(0, 1)], kb, ids="wikidata")
        assert doc.ents[0].kb_id_ == entity
        assert get_entity(doc.ents[0]) is None
    doc = doc_with("e1")
    write_records(doc, [], kb, ids="wikidata")  # what others have linked
    assert doc.ents[0].kb_id_ == "e1"
    write_records(doc, [(0, 1)], None, ids="wikidata")
    assert doc.ents[0].kb_id_ == "e1"
    assert get_entity(doc.ents[0]) is None


def test_records_travel_with_the_doc(kb):
    register_extensions()
    doc = doc_with("e1")
    write_records(doc, [(0, 1)], kb, ids="id")
    copy = next(iter(DocBin(docs=[doc], store_user_data=True).get_docs(doc.vocab)))
    assert get_entity(copy.ents[0]) == LONDON
    both = Doc.from_docs([doc_with("NIL", vocab=doc.vocab), doc])
    assert [get_entity(span) for span in both.ents] == [None, LONDON]
    assert get_entity(doc[0:2].as_doc(copy_user_data=True)[0:1]) == LONDON
    assert doc.ents[0]._.luke_entity.title == "London"
    for given, entity in (("Q92561", None), ("London", LONDON), ("", LONDON)):  # by a person, or by from_json
        doc.ents = [Span(doc, 0, 1, "LOC", kb_id=given)]
        assert doc.ents[0]._.luke_entity == entity


@pytest.mark.parametrize(("gold", "right"), [("e1", 1.0), ("London", 1.0), ("Q84", 1.0), ("Q85", 0.0)])
@pytest.mark.parametrize("ids", ["id", "title", "wikidata"])
def test_gold_by_any_of_the_ids_is_right(kb, gold, right, ids):
    doc = doc_with("e1")
    write_records(doc, [(0, 1)], kb, ids=ids)
    scores = score_links([Example(doc, doc_with(gold))])
    assert scores["links_accuracy"] == scores["links_strict_f"] == right


def test_ids_of_a_data_set_become_those_of_the_knowledge_base(kb):
    assert to_kb_ids(kb, ["Q84", "London", "NIL", "Q9", ""]) == ["e1", "e1", "NIL", "Q9", ""]
    assert to_kb_ids(None, ["Q84"]) == ["Q84"]


def test_a_linker_learns_from_wikidata_ids_and_gives_titles(kb):
    checkpoint = make_checkpoint(entity_size=32)
    found, _ = embed_entities(kb, TextEncoder(checkpoint))
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("luke_linker", config={"overlap": 16, "ids": "title", "model": {"nil": False}})
    example = Example(doc_with("", vocab=nlp.vocab), doc_with("Q84", vocab=nlp.vocab))
    linker.initialize(lambda: [example], weights=lambda: checkpoint, kb=lambda: found)
    assert len(list(linker.batches([example]))) == 1  # the gold is one of the candidates
    span = linker(doc_with("", vocab=nlp.vocab)).ents[0]
    assert (span.kb_id_, span._.luke_entity.id) in {("London", "e1"), ("HMS London", "e2")}
    assert set(nlp.get_pipe_meta("luke_linker").assigns) >= {"span._.luke_entity"}
