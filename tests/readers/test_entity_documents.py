"""Documents with linked entities: Docs and lines of JSON, from any number on, and what is damaged."""

import json

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_luke.components.knowledge import make_given_entities
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.entity_documents import make_entity_documents

TEXT = "Ada lived in London. She met Babbage"
EXPECTED = [("Ada lived in London. ", [(0, 3, "Q1"), (13, 19, "Q2")]), ("She met Babbage", [(8, 15, "Q3")])]


def make_doc(nlp, *, sentences=False):
    starts = [i in (0, 5) for i in range(8)] if sentences else None
    words = ["Ada", "lived", "in", "London", ".", "She", "met", "Babbage"]
    doc = Doc(nlp.vocab, words=words, spaces=[True] * 3 + [False, True, True, True, False], sent_starts=starts)
    doc.ents = [
        Span(doc, 0, 1, "PER", kb_id="Q1"),
        Span(doc, 3, 4, "LOC", kb_id="Q2"),
        Span(doc, 5, 6, "PER"),
        Span(doc, 6, 7, "X", kb_id="NIL"),
        Span(doc, 7, 8, "PER", kb_id="Q3"),
    ]
    return doc


def write_lines(path, *items):
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf8")
    return str(path)


@pytest.mark.parametrize("sentences", [True, False])
def test_docs(tmp_path, sentences):
    """Sentences come from the Doc or, where it has none, from rules; entities without an id do not count."""
    nlp = spacy.blank("en")
    path = tmp_path / "docs.spacy"
    write_docbin([make_doc(nlp, sentences=sentences)] * 3, path)
    documents = list(make_entity_documents(str(path))(0))
    assert [document.sentences for document in documents] == [EXPECTED] * 3
    assert documents[1].name == f"{path}, document 1"


def test_given_entities(tmp_path):
    """Any getter of the config."""
    doc = make_doc(spacy.blank("en"))
    doc.user_data["luke_knowledge"] = [[0, 3, "Q7", 0.9], [13, 19, "Q8", 0.1]]
    write_docbin([doc], tmp_path / "docs.spacy")
    read = make_entity_documents(str(tmp_path / "docs.spacy"), getter=make_given_entities(threshold=0.3))
    assert [m for _, mentions in next(read(0)).sentences for m in mentions] == [(0, 3, "Q7")]


def test_from_a_number_on(tmp_path):
    nlp = spacy.blank("en")
    docs = [nlp(f"text {i}") for i in range(7)]
    write_docbin(docs, tmp_path / "docs.spacy", shard_words=4)
    assert (tmp_path / "docs.spacy").is_dir()
    write_lines(tmp_path / "docs.jsonl", *({"text": f"text {i}", "entities": []} for i in range(7)))
    for name in ("docs.spacy", "docs.jsonl"):
        path = str(tmp_path / name)

        def texts(start, path=path, **settings):
            return [document.sentences[0][0] for document in make_entity_documents(path, **settings)(start)]

        assert texts(0) == [f"text {i}" for i in range(7)]
        assert texts(5) == ["text 5", "text 6"]
        assert texts(1, skip=2, limit=3) == ["text 3", "text 4"]
        assert texts(3, skip=2, limit=3) == texts(9) == []


def test_documents_that_are_left_out_are_not_made(tmp_path):
    path = write_lines(tmp_path / "x.jsonl", {"text": "Ada", "entities": [[0, 9, "Q1"]]}, {"text": "b", "entities": []})
    assert [document.name for document in make_entity_documents(path)(1)] == [f"{path}, line 2"]
    assert len(list(make_entity_documents(path, skip=1)(0))) == 1


def test_a_folder_of_folders(tmp_path):
    nlp = spacy.blank("en")
    for name in ("b", "sub/a"):
        write_docbin([nlp(name)], tmp_path / f"{name}.spacy")
    documents = list(make_entity_documents(str(tmp_path))(0))
    assert [document.sentences[0][0] for document in documents] == ["b", "sub/a"]


def test_lines(tmp_path):
    path = write_lines(
        tmp_path / "x.jsonl",
        {"text": TEXT, "entities": [[29, 36, "Q3"], [0, 3, "Q1"], {"start": 13, "end": 19, "id": "Q2"}]},
        {"text": TEXT, "entities": [[13, 24, "Q2"]]},
        {"text": "", "entities": []},
    )
    first, second, third = make_entity_documents(path)(0)
    assert first.sentences == EXPECTED
    assert second.sentences[0][1] == [(13, 21, "Q2")]  # ends with its sentence
    assert [text for text, _ in third.sentences] in ([], [""])
    assert first.name == f"{path}, line 1"


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"text": "Ada", "entities": [[0, 4, "Q1"]]}, r"line 1: entities must be at characters .* one is at \[0, 4\)"),
        ({"text": "Ada", "entities": [[2, 2, "Q1"]]}, r"one is at \[2, 2\)"),
        ({"text": "Ada", "entities": [[0, 3]]}, r"line 1: expected \[start, end, id\]"),
        ({"text": "Ada", "entities": [[0, 3, 7]]}, r"expected \[start, end, id\]"),
        ({"text": "Ada", "entities": [{"start": 0, "end": 3}]}, "expected 'id'"),
        ({"text": "Ada"}, "expected 'entities'"),
        ({"entities": []}, "expected 'text'"),
    ],
)
def test_damaged_lines(tmp_path, item, message):
    with pytest.raises(ValueError, match=message):
        list(make_entity_documents(write_lines(tmp_path / "x.jsonl", item))(0))


def test_what_cannot_be_read(tmp_path):
    for path in (tmp_path / "no.jsonl", tmp_path):
        with pytest.raises(ValueError, match=r"Expected a \.spacy file, a folder of them, or a \.jsonl file"):
            make_entity_documents(str(path))
    with pytest.raises(ValueError, match="it is None"):
        make_entity_documents(None)
    with pytest.raises(ValueError, match="skip must be from 0"):
        make_entity_documents(write_lines(tmp_path / "x.jsonl"), limit=0)
