"""Docs with linked entities as paragraphs of a linked corpus."""

from collections import Counter

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_luke.corpus.from_docs import build_from_docs, make_doc_part, read_doc_paragraphs
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.sentences import RuleSentences
from spacy_luke.stores.parallel import Engine

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
        make_doc("Ada met Bob.\n\n  Bob left London.  ", (0, 3, "Ada Lovelace"), (8, 11, "NIL"), (25, 31, "London"), title="Ada"),  # noqa: E501
        make_doc("Nothing.\nTwo\nlines", (9, 18, "Across")),
        make_doc(" \n"),
    ]  # fmt: skip


def test_paragraphs(docs):
    counts = Counter()
    found = list(read_doc_paragraphs(docs, counts))
    assert [(x.page, x.text, [(x.text[a:b], title) for a, b, title in x.links]) for x in found] == [
        ("Ada", "Ada met Bob.", [("Ada", "Ada Lovelace")]),
        ("Ada", "Bob left London.", [("London", "London")]),
        ("docs, document 2", "Nothing.", []),
        ("docs, document 2", "Two", []),
        ("docs, document 2", "lines", []),
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
    corpus = build_from_docs([tmp_path / "docs.spacy"], tmp_path / "corpus")
    assert list(corpus.paragraphs()) == list(read_doc_paragraphs(docs, Counter()))
    assert corpus.manifest["counts"]["links"] == 2
    assert corpus.manifest["counts"]["pages"] == 3
    assert corpus.manifest["counts"]["links across lines, left out"] == 1


def write_many(docs, folder):
    for name in "abcd":
        write_docbin(docs, folder / f"{name}.spacy")
    return folder


def read_bytes(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("part_bytes", [1, 1 << 22])
def test_two_processes_write_what_one_does(docs, tmp_path, part_bytes):
    files = write_many(docs, tmp_path / "docs")
    (files / "._a.spacy").write_bytes(b"macOS")  # spaCy passes over hidden files
    for workers in (1, 2):
        build_from_docs([files], tmp_path / f"by_{workers}", part_bytes=part_bytes, engine=Engine(workers=workers))
    assert read_bytes(tmp_path / "by_1") == read_bytes(tmp_path / "by_2")
    corpus = build_from_docs([files], tmp_path / "by_1", part_bytes=part_bytes)
    assert len(corpus.parts) == (4 if part_bytes == 1 else 1)
    pages = [name for name in dict.fromkeys(x.page for x in corpus.paragraphs()) if name != "Ada"]
    assert pages == [f"{name}, document 2" for name in "abcd"]


def test_a_run_that_was_stopped_goes_on(docs, tmp_path, monkeypatch):
    files = write_many(docs, tmp_path / "docs")
    whole = build_from_docs([files], tmp_path / "whole", part_bytes=1, engine=Engine(workers=1))
    made = []

    def make(folder, name, task):
        if name == "part-00002" and name not in made:
            made.append(name)
            raise KeyboardInterrupt
        made.append(name)
        return make_doc_part(folder, name, task)

    monkeypatch.setattr("spacy_luke.corpus.from_docs.make_doc_part", make)
    with pytest.raises(KeyboardInterrupt):
        build_from_docs([files], tmp_path / "corpus", part_bytes=1, engine=Engine(workers=1))
    assert not (tmp_path / "corpus").exists()
    corpus = build_from_docs([files], tmp_path / "corpus", part_bytes=1, engine=Engine(workers=1))
    assert made == ["part-00000", "part-00001", "part-00002", "part-00002", "part-00003"]
    assert read_bytes(corpus.path) == read_bytes(whole.path)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_files_that_hold_no_docs(docs, tmp_path):
    write_docbin(docs, tmp_path / "good.spacy")
    (tmp_path / "bad.spacy").write_bytes((tmp_path / "good.spacy").read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"Expected Docs in .*bad.spacy, as DocBin.to_disk writes them"):
        build_from_docs([tmp_path], tmp_path / "corpus", engine=Engine(workers=1))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"Expected .spacy files in .*empty, but there are none"):
        build_from_docs([tmp_path / "empty"], tmp_path / "corpus")
    with pytest.raises(ValueError, match=r"Expected a file at .*none.spacy, but there is none"):
        build_from_docs([tmp_path / "none.spacy"], tmp_path / "corpus")
    assert not (tmp_path / "corpus").exists()


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
