"""A Doc for each sentence in its context: each sentence is learned once, in the window that the whole document gives
it."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

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


def test_wrong_settings():
    with pytest.raises(ValueError, match="max_words must be at least 0"):
        make_one_sentence(-1)
