"""What is counted in gold documents."""

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_luke.annotations import register_extensions
from spacy_luke.components.paragraphs import ParagraphSentencizer
from spacy_luke.quickstart.survey import survey_docs
from tests.pipelines import make_gold
from tests.tiny import SENTENCES

register_extensions()
VOCAB = spacy.blank("en").vocab


def survey(docs, **settings):
    return survey_docs(docs, sentencize=ParagraphSentencizer(), **settings)


def test_all_that_there_is():
    nlp = spacy.blank("en")
    found = survey([make_gold(nlp, text) for text in SENTENCES[:2]])
    shape = found.shape
    assert (shape.documents, shape.words, found.sentences, found.longest) == (2, 21, 2, 11)
    assert (shape.mentions, shape.ner_labels, shape.longest_span, shape.nested) == (4, 2, 2, False)
    assert (shape.typed, shape.type_labels) == (4, 3)
    assert (shape.relations, shape.relation_labels, shape.longest_gap) == (2, 1, 2)
    assert (shape.several, shape.crossing, shape.pairs) == (False, False, 0)
    assert (shape.questions, shape.unanswerable, shape.queries, shape.linked) == (4, 2, 2, 0)
    assert found.labels["ner"] == {"PER": 2, "LOC": 2}


def test_ids_of_none_are_no_links():
    doc = Doc(VOCAB, words=["Ada", "saw", "Kofi"])
    doc.set_ents([Span(doc, 0, 1, "PER", kb_id="NIL"), Span(doc, 2, 3, "PER", kb_id="Q1")])
    assert survey([doc]).shape.linked == 1


def test_entities_of_a_group():
    doc = Doc(VOCAB, words=["University", "of", "Lagos"])
    doc.spans["inner"] = [Span(doc, 0, 3, "ORG"), Span(doc, 2, 3, "LOC")]
    doc.spans["luke_types"] = [Span(doc, 0, 3, x) for x in "abc"]
    shape = survey([doc]).shape
    assert (shape.nested, shape.spans_key, shape.mentions, shape.longest_span) == (True, "inner", 2, 3)
    doc.set_ents([Span(doc, 0, 3, "ORG")])
    assert (survey([doc]).shape.nested, survey([doc], spans_key="inner").shape.nested) == (False, True)


def test_relations_across_sentences_and_several_of_a_pair():
    doc = Doc(VOCAB, words=["Ada", "left", ".", "London", "wept", "."])
    doc.set_ents([Span(doc, 0, 1, "PER"), Span(doc, 3, 4, "LOC")])
    doc._.luke_relations = [(doc.ents[0], doc.ents[1], label) for label in ("left", "lived_in")]
    shape = survey([doc]).shape
    assert (shape.crossing, shape.several, shape.longest_gap) == (True, True, 2)


def test_entities_that_cross_a_sentence():
    doc = Doc(VOCAB, words=["Mr", ".", "Smith"], sent_starts=[True, False, True])
    doc.set_ents([Span(doc, 0, 3, "PER")])
    assert survey([doc]).cut == 1


def test_nothing():
    with pytest.raises(ValueError, match="there are none"):
        survey([])
