"""A Doc for each sentence in its context: each sentence is learned once, in the window that the whole document gives
it."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.annotations import get_all_rows, set_questions
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.gold_corpus import make_gold_corpus
from spacy_luke.readers.lengths import make_one_sentence
from tests.components.recognised import make_ner
from tests.tiny import SENTENCES

NLP = spacy.blank("en")


def document(vocab=NLP.vocab, repeat=2):
    words = [text.split() for text in SENTENCES * repeat]
    starts = [i == 0 for some in words for i in range(len(some))]
    doc = Doc(vocab, words=[x for some in words for x in some], sent_starts=starts)
    names = {"Ada": "PER", "London": "LOC", "Nadia": "PER", "Accra": "LOC", "Kofi": "PER", "Berlin": "LOC"}
    doc.set_ents([Span(doc, x.i, x.i + 1, names[x.text]) for x in doc if x.text in names])
    return doc


@pytest.mark.parametrize("most", [0, 3, 510])
def test_each_sentence_is_annotated_once(most):
    doc = document()
    parts = list(make_one_sentence(most)([doc]))
    assert len(parts) == 8
    found = [(x.text, x.label_) for part in parts for x in part.ents]
    assert found == [(x.text, x.label_) for x in doc.ents]
    for part, sentence in zip(parts, doc.sents, strict=True):
        known = [word.text for word in part if word.ent_iob_]
        assert known == [word.text for word in sentence]
        assert len(part) == min(len(doc), sentence.end + most) - max(0, sentence.start - most)
        assert [x.text for x in part.sents if x[0].ent_iob_] == [sentence.text]
    assert len(document().ents) == len(doc.ents)


def test_it_learns_the_same_windows_as_the_whole_document(tmp_path):
    """All of its sentences together are the document's, span by span and window by window."""
    nlp, ner = make_ner(attention="full", context="document", model={"spans_per_word": None})
    write_docbin([document(nlp.vocab)], tmp_path / "gold.spacy")

    def items(**settings):
        examples = list(make_gold_corpus(tmp_path / "gold.spacy", **settings)(nlp))
        return [item for batch in ner.batches(examples) for item in batch.items]

    whole, parts = items(), items(lengths=make_one_sentence())
    assert len(whole) == len(parts) == 8
    for a, b in zip(*(sorted(x, key=lambda item: item.pieces.tolist()) for x in (whole, parts)), strict=True):
        assert a.pieces.tolist() == b.pieces.tolist()
        assert a.gold_E.tolist() == b.gold_E.tolist()
    assert {int(x) for item in parts for x in item.gold_E} == {0, 1, 3}


def test_words_without_annotation_are_not_encoded():
    nlp, ner = make_ner(attention="full", context="document")
    gold = next(iter(make_one_sentence()([document(nlp.vocab)])))
    example = Example(Doc(nlp.vocab, words=[x.text for x in gold], sent_starts=[x.is_sent_start for x in gold]), gold)
    (item,) = (item for batch in ner.batches([example]) for item in batch.items)
    assert item.spans.end_E[item.first : item.last].max() == len(SENTENCES[0].split())
    assert np.all(item.gold_E >= 0)


def two_sentences(**settings):
    return Doc(NLP.vocab, words="Ann met Bob . He left Rome .".split(), sent_starts=[1, 0, 0, 0] * 2, **settings)


@pytest.mark.parametrize("most", [0, 2, 510])
def test_unknown_words_stay_unknown(most):
    """Of a sentence's own words nothing is said that the document does not say."""
    doc = two_sentences(ents=["B-PER", "O", "", "O", "", "O", "B-LOC", "O"])
    first, second = ([word.ent_iob_ for word in part] for part in make_one_sentence(most)([doc]))
    context = [""] * min(most, 4)
    assert first == ["B", "O", "", "O", *context]
    assert second == [*context, "", "O", "B", "O"]
    bare = list(make_one_sentence(most)([two_sentences()]))
    assert not any(part.has_annotation("ENT_IOB") for part in bare)


@pytest.mark.parametrize("most", [0, 2, 510])
def test_all_that_is_annotated_comes_once(most):
    doc = two_sentences(ents=["B-PER", "O", "B-PER", "O", "O", "O", "B-LOC", "O"])
    doc.spans["luke_types"] = [Span(doc, i, i + 1, label) for i, label in ((0, "woman"), (2, "man"), (6, "city"))]
    doc._.luke_relations = [(doc[0:1], doc[2:3], "met"), (doc[4:5], doc[6:7], "left")]
    doc._.luke_knowledge = [(0, 3, "Q1"), (doc[6].idx, doc[6].idx + 4, "Q2")]
    doc._.luke_scope = {"entities": {"annotates": ["PER", "LOC"]}}
    set_questions(doc, [{"question": "Where?", "answers": [(doc[6].idx, doc[6].idx + 4)]}])
    first, second = make_one_sentence(most)([doc])
    assert [[x.text for x in part.spans["luke_types"]] for part in (first, second)] == [["Ann", "Bob"], ["Rome"]]
    found = [[(x.head.text, x.tail.text, x.label) for x in part._.luke_relations] for part in (first, second)]
    assert found == [[("Ann", "Bob", "met")], [("He", "Rome", "left")]]
    known = [[(part.text[a:b], name) for a, b, name, _ in part._.luke_knowledge] for part in (first, second)]
    assert known == [[("Ann", "Q1")], [("Rome", "Q2")]]
    assert [len(part._.luke_questions) for part in (first, second)] == [0, 1]
    (answer,) = get_all_rows(second)["luke_questions"][0]["answers"]
    assert second.text[slice(*answer)] == "Rome"
    assert first._.luke_scope == second._.luke_scope == doc._.luke_scope


def test_sentences_that_an_annotation_joins_stay_together():
    doc = two_sentences()
    doc._.luke_relations = [(doc[0:1], doc[6:7], "visited")]
    (part,) = make_one_sentence()([doc])
    assert len(part._.luke_relations) == 1
    parts = list(make_one_sentence(without=["luke_relations"])([doc]))
    assert len(parts) == 2
    assert not any(part._.luke_relations for part in parts)
    assert len(doc._.luke_relations) == 1


def test_entities_of_a_group():
    """A group cannot say that it leaves words out, and would teach that nothing around a sentence is an entity."""
    doc = two_sentences()
    doc.spans["sc"] = [Span(doc, 0, 1, "PER"), Span(doc, 6, 7, "LOC")]
    with pytest.raises(ValueError, match=r"spans of \['sc'\].*max_words = 0"):
        list(make_one_sentence()([doc]))
    parts = list(make_one_sentence(0)([doc]))
    assert [[x.text for x in part.spans["sc"]] for part in parts] == [["Ann"], ["Rome"]]
    assert not any(part.has_annotation("ENT_IOB") for part in parts)


def test_wrong_settings():
    with pytest.raises(ValueError, match="max_words must be at least 0"):
        make_one_sentence(-1)
    with pytest.raises(ValueError, match="without must be a list of some of"):
        make_one_sentence(without="luke_relations")
