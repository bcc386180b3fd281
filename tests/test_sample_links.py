"""scripts/sample_links.py: the sample corpus with entities, and with pairs that have a relation or none."""

import runpy
import sys
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_luke.annotations import (
    Relation,
    get_candidates_given,
    get_pairs,
    get_relations,
    register_extensions,
    set_relations,
)
from spacy_luke.readers.docbin import write_docbin

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "scripts/sample_links.py"), run_name="loaded")
NAMES = {"Ann": "Q1", "Bob": "Q2", "Oslo": "Q3", "Eve": "Q4", "Rome": "Q5", "Bern": "Q6"}


@pytest.fixture
def linked(tmp_path, monkeypatch):
    """Two documents, one with two relations of one pair, as the script writes them."""
    register_extensions()
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "NAME", "pattern": x} for x in (*NAMES, "Cy")])
    doc = nlp("Ann lives in Oslo with Bob and Cy. Eve is in Rome. Bern is far.")
    ann, oslo, *_ = doc.ents
    set_relations(doc, [Relation(ann, oslo, "lives_in"), Relation(ann, oslo, "born_in")])
    write_docbin([doc, nlp("Eve left.")], tmp_path / "corpus" / "train.spacy")
    (tmp_path / "names.tsv").write_text("name\tentity\n" + "".join(f"{a}\t{b}\n" for a, b in NAMES.items()))
    monkeypatch.setattr(sys, "argv", ["", *(str(tmp_path / x) for x in ("names.tsv", "corpus", "linked"))])
    SCRIPT["main"]()
    return list(DocBin().from_disk(tmp_path / "linked" / "train.spacy").get_docs(spacy.blank("en").vocab))


def test_mentions_have_the_entities_of_their_names(linked):
    assert [(x.text, x.kb_id_) for x in linked[0].ents] == [(x, NAMES.get(x, "")) for x in map(str, linked[0].ents)]
    given = get_candidates_given(linked[0])
    assert len(given) == 6
    assert all(NAMES[linked[0].text[start:end]] in dict(some) and len(some) == 5 for start, end, some in given)


def test_pairs_are_those_with_a_relation_and_as_many_of_one_sentence_without(linked):
    doc, other = linked
    assert [x.label for x in get_relations(doc)] == ["lives_in", "born_in"]
    (head, tail), (first, second) = get_pairs(doc)
    assert (head.text, tail.text) == ("Ann", "Oslo")
    assert (first, second) != (head, tail)
    assert first != second
    assert first.sent == second.sent
    assert get_pairs(other) == []
