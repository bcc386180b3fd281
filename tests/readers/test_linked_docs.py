"""Docs with linked entities as paragraphs of a linked corpus."""

from collections import Counter

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_luke.corpus.linked import write_corpus
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.linked_corpus import read_doc_paragraphs, read_linked_docs
from spacy_luke.readers.sentences import RuleSentences

NLP = spacy.blank("en")


def make_doc(text, *links, key=None, title=None):
    doc = NLP(text)
    spans = [doc.char_span(start, end, label="X", kb_id=entity) for start, end, entity in links]
    if key is None:
        doc.set_ents(spans)
    else:
        doc.spans[key] = spans
    if title:
        doc.user_data["title"] = title
    return doc


@pytest.fixture
def docs():
    return [
        make_doc("Ada met Bob.\n\n  Bob left London.  ", (0, 3, "Ada Lovelace"), (8, 11, "NIL"), (25, 31, "London"), title="Ada"),
        make_doc("Nothing.\nTwo\nlines", (9, 18, "Across")),
        make_doc(" \n"),
    ]  # fmt: skip


def test_paragraphs(docs):
    counts = Counter()
    found = list(read_doc_paragraphs(docs, counts))
    assert [(x.page, x.text, [(x.text[a:b], title) for a, b, title in x.links]) for x in found] == [
        ("Ada", "Ada met Bob.", [("Ada", "Ada Lovelace")]),
        ("Ada", "Bob left London.", [("London", "London")]),
        ("document 2", "Nothing.", []),
        ("document 2", "Two", []),
        ("document 2", "lines", []),
    ]
    assert +counts == Counter(
        {"mentions without an entity, left out": 1, "links across lines, left out": 1, "documents without text": 1}
    )


def test_span_groups_and_overlaps():
    doc = make_doc("Bank of Ghana in Accra", (0, 13, "Bank of Ghana"), (8, 13, "Ghana"), (17, 22, "Accra"), key="links")
    counts = Counter()
    (paragraph,) = read_doc_paragraphs([doc], counts, spans_key="links")
    assert paragraph.links == [(0, 13, "Bank of Ghana"), (17, 22, "Accra")]
    assert counts["mentions inside or across others, left out"] == 1


def test_a_corpus_of_files(docs, tmp_path):
    write_docbin(docs, tmp_path / "docs.spacy")
    read = read_linked_docs([tmp_path / "docs.spacy"], language="en")
    corpus = write_corpus(lambda counts: read_doc_paragraphs(read, counts), tmp_path / "corpus", language="en")
    assert list(corpus.paragraphs()) == list(read_doc_paragraphs(docs, Counter()))
    assert corpus.manifest["counts"]["links"] == 2
    assert corpus.manifest["counts"]["links across lines, left out"] == 1


def test_mentions_at_the_edge_of_blanks():
    doc = Doc(NLP.vocab, words=[" ", "Ada", " ", "x"], spaces=[False] * 4)
    doc.set_ents([Span(doc, 0, 3, label="X", kb_id="Ada")])
    (paragraph,) = read_doc_paragraphs([doc], Counter())
    assert paragraph.links == [(0, 3, "Ada")]


def test_sentences():
    text = "Dr. Maas met J. R. Smith in the U.S. She left! Why? "
    spans = RuleSentences("en")(text)
    assert [text[a:b].strip() for a, b in spans] == ["Dr. Maas met J. R. Smith in the U.S. She left!", "Why?"]
    russian = "Это дом. Он стар!"
    assert [russian[a:b] for a, b in RuleSentences("xx")(russian)] == ["Это дом.", "Он стар!"]
    assert RuleSentences("en")("") == []
    assert repr(RuleSentences("de")) == "RuleSentences(language='de')"
    with pytest.raises(ValueError, match="no rules for the language 'ltg'"):
        RuleSentences("ltg")("a")
