"""Texts of lines, of JSON lines, of Docs, and of folders of these."""

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_luke.readers.texts import read_texts

NLP = spacy.blank("en")


def texts(path):
    return [doc.text for doc in read_texts(path, NLP)]


def make_file(path, text):
    path.write_text(text, encoding="utf8")
    return path


def make_docs(path):
    doc = Doc(NLP.vocab, words=["New", "York.", "Rain"], spaces=[True, True, False], sent_starts=[True, False, True])
    doc.set_ents([spacy.tokens.Span(doc, 0, 2, "LOC")])
    DocBin(docs=[doc, Doc(NLP.vocab)]).to_disk(path)
    return path


def test_lines(tmp_path):
    path = make_file(tmp_path / "a.txt", "One text.\n\n  Another \u00fc.  \n")
    assert texts(path) == ["One text.", "Another \u00fc."]


def test_json_lines(tmp_path):
    path = make_file(tmp_path / "a.jsonl", '{"text": "One.", "x": 1}\n\n{"text": "Two."}\n')
    assert texts(path) == ["One.", "Two."]


def test_docs_without_annotation(tmp_path):
    (doc,) = read_texts(make_docs(tmp_path / "a.spacy"), NLP)
    assert [word.text for word in doc] == ["New", "York.", "Rain"]
    assert [word.i for word in doc if word.is_sent_start] == [0, 2]
    assert not doc.ents


def test_a_folder(tmp_path):
    make_file(tmp_path / "b.txt", "B")
    make_docs(tmp_path / "a.spacy")
    (tmp_path / "sub").mkdir()
    make_file(tmp_path / "sub" / "c.jsonl", '{"text": "C"}')
    make_file(tmp_path / "README.md", "not a text")
    assert texts(tmp_path) == ["New York. Rain", "B", "C"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "\n \n", "has no text"),
        ("a.csv", "x", "are read from files .txt, .jsonl, .spacy"),
        ("a.jsonl", '{"text": "One."}\n{"text": 3}', r"line 2: expected a JSON object with a \"text\""),
        ("a.jsonl", "{", "line 1: expected a JSON object, but it is none"),
        ("a.jsonl", '{"text": "A", "text": "B"}', "line 1: .* each key once, but 'text' is there twice"),
    ],
)
def test_what_is_none(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message):
        texts(make_file(tmp_path / name, content))


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"fine\n\xff\xfe\n")
    with pytest.raises(ValueError, match="2"):
        texts(tmp_path / "a.txt")
