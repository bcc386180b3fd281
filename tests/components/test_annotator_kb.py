"""`entity_annotator` finds the names of a knowledge base: one build for finding and for linking."""

import pytest
import spacy

from spacy_luke.kb.change import add_to_kb, compact_kb
from tests.kb.kbs import small_kb, write_entities


def annotator(kb, **settings):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_annotator", config=settings)
    nlp.config["initialize"]["components"]["entity_annotator"] = {"store": str(kb.path)}
    nlp.initialize()
    return nlp


def test_names_of_a_knowledge_base_are_found(tmp_path):
    nlp = annotator(small_kb(tmp_path), annotate_ents=True)
    doc = nlp("Bill Clinton flew from Nippon to Clinton, Iowa.")
    found = [(ent.text, ent.kb_id_) for ent in doc.ents]
    assert found == [("Bill Clinton", "Bill Clinton"), ("Nippon", "Japan"), ("Clinton, Iowa", "Clinton, Iowa")]
    nlp.to_disk(tmp_path / "nlp")
    again = spacy.load(tmp_path / "nlp")("Nippon")
    assert [ent.kb_id_ for ent in again.ents] == ["Japan"]


def test_all_meanings_of_a_name(tmp_path):
    doc = annotator(small_kb(tmp_path), max_candidates=None)("Clinton")
    spans = doc.spans["luke_links"]
    assert [span.kb_id_ for span in spans] == ["Clinton, Iowa", "Hillary Clinton", "Bill Clinton"]
    assert spans.attrs["priors"] == pytest.approx([0.5, 0.3, 0.2])


def test_additions_are_joined_first(tmp_path):
    more = write_entities(tmp_path / "more.jsonl", [{"id": "X", "names": ["Ex"]}])
    kb = add_to_kb(small_kb(tmp_path), [more]).kb
    with pytest.raises(ValueError, match=r"has 2 parts, as entities were added to it.*compact-kb"):
        annotator(kb)
    assert [ent.kb_id_ for ent in annotator(compact_kb(kb).kb, annotate_ents=True)("Ex").ents] == ["X"]


def test_another_folder_is_refused(tmp_path):
    (tmp_path / "other").mkdir()
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_annotator")
    nlp.config["initialize"]["components"]["entity_annotator"] = {"store": str(tmp_path / "other")}
    with pytest.raises(ValueError, match="other is no knowledge base"):
        nlp.initialize()
