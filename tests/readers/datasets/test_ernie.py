"""Files of ERNIE's release: given entities, what is mended, what is left out."""

import json
from collections import Counter

import pytest
import spacy
from spacy.training import Example

from spacy_luke.annotations import get_all_rows, get_rows
from spacy_luke.readers.datasets.table import dataset_docs
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.given import copy_given
from spacy_luke.readers.gold_corpus import make_gold_corpus

NLP = spacy.blank("en")
TEXT = '"Bonn" -LRB- or Berlin -RRB- is near Köln'
FIGER = {
    "sent": TEXT,
    "start": 16,
    "end": 22,
    "labels": ["/location", "/location/city"],
    "ents": [["Q586", 1, 5, 0.9], ["Q64", 16, 22, 0.31], ["Q7", 8, 11, 0.1], ["Q365", 37, 41, 1]],
}
PAIR = {"text": TEXT, "label": "P47", "ents": [["Q586", 1, 5, 0.5], ["Q365", 37, 41, 0.5]]}
TACRED = {**PAIR, "label": "NA", "ann": [["Q64", 16, 22, 0.41]]}


@pytest.fixture
def read(tmp_path):
    def read(items, format, counts=None, **settings):
        path = tmp_path / "data.json"
        path.write_text(json.dumps(items), encoding="utf8")
        return list(dataset_docs(NLP, path, format=format, counts=counts, **settings))

    return read


def given_texts(doc):
    return [(doc.text[a:b], name, score) for a, b, name, score in get_rows(doc, "luke_knowledge")]


@pytest.mark.parametrize("format", ["figer", "open_entity"])
def test_typing(read, format):
    (doc,) = read([FIGER], format)
    assert [(span.text, span.label_) for span in doc.spans["luke_types"]] == [
        ("Berlin", "/location"),
        ("Berlin", "/location/city"),
    ]
    assert given_texts(doc) == [("Bonn", "Q586", 0.9), ("Berlin", "Q64", 0.31), ("LRB", "Q7", 0.1), ("Köln", "Q365", 1)]
    (paper,) = read([FIGER], format, text="paper")
    assert paper.text == '"Bonn" ( or Berlin ) is near Köln'
    assert [span.text for span in paper.spans["luke_types"]] == ["Berlin"] * 2
    # A part of a bracket's name is the bracket.
    assert given_texts(paper) == [("Bonn", "Q586", 0.9), ("Berlin", "Q64", 0.31), ("(", "Q7", 0.1), ("Köln", "Q365", 1)]


def test_a_mention_without_a_character_is_counted(read):
    counts = Counter()
    docs = read([FIGER, {**FIGER, "end": 16}], "figer", counts)
    assert counts["empty mentions"] == 1
    assert ["luke_types" in doc.spans for doc in docs] == [True, False]
    assert len(given_texts(docs[1])) == 4


def test_without_entities(read):
    item = {key: value for key, value in FIGER.items() if key != "ents"}
    assert get_rows(read([item], "figer")[0], "luke_knowledge") is None


def test_fewrel(read):
    (doc,) = read([PAIR], "ernie_fewrel")
    assert given_texts(doc) == [("Bonn", "Q586", 1.0), ("Köln", "Q365", 1.0)]
    assert [(e.text, e.label_, e.kb_id_) for e in doc.ents] == [("Bonn", "ENTITY", "Q586"), ("Köln", "ENTITY", "Q365")]
    assert get_rows(doc, "luke_pairs") == [[1, 5, 37, 41]]
    assert get_rows(doc, "luke_relations") == [[1, 5, 37, 41, "P47", 1.0]]


@pytest.mark.parametrize(
    ("text", "start", "file", "paper"),
    [('"Bonn" x Köln', 1, "Bonn", '"Bonn'), ("Bonn x Köln", 1, "Bonn", "Bonn"), (" Bonn x Köln", 1, "Bonn", "Bonn"),
     ("A Bonn x Köln", 2, "Bonn", "Bonn")],
)  # fmt: skip
def test_a_beginning_at_1(read, text, start, file, paper):
    item = {
        **PAIR,
        "text": text,
        "ents": [["Q1", start, text.index("Bonn") + 4, 1], ["Q2", len(text) - 4, len(text), 1]],
    }
    assert read([item], "ernie_fewrel")[0].ents[0].text == file
    assert read([item], "ernie_fewrel", text="paper")[0].ents[0].text == paper


def test_tacred(read):
    first, second, third = read(
        [TACRED, {**TACRED, "label": "no_relation"}, {**TACRED, "label": "per:age"}], "ernie_tacred"
    )
    assert given_texts(first) == [("Berlin", "Q64", 0.41)]
    assert [len(get_rows(doc, "luke_relations")) for doc in (first, second, third)] == [0, 0, 1]
    assert not any(entity.kb_id_ for entity in first.ents)  # those of "ann" are all that the original reads


@pytest.mark.parametrize(
    ("format", "item", "message"),
    [
        (
            "figer",
            {**FIGER, "ents": [["Q1", 0, 4]]},
            "item 1: expected 'ents' as .id, start, end, score., but number 0",
        ),
        ("figer", {**FIGER, "ents": [["Q1", 0, "4", 1]]}, "item 1: expected 'ents' as"),
        ("figer", {**FIGER, "ents": [["Q1", 30, 80, 1]]}, "item 1: Given entity 0 must be .*which has 41"),
        ("figer", {**FIGER, "start": 23}, "item 1: mention .23, 22, ''. must hold characters"),
        ("ernie_fewrel", {**PAIR, "ents": PAIR["ents"][:1]}, "item 1: expected two 'ents', .* there are 1"),
        ("ernie_fewrel", {**PAIR, "label": " "}, "item 1: expected a relation"),
        ("ernie_fewrel", {**PAIR, "ents": [PAIR["ents"][0]] * 2}, "item 1: .*one mention as head and tail"),
        ("ernie_fewrel", {**PAIR, "ents": [["Q1", 5, 5, 1], PAIR["ents"][1]]}, "item 1: mention"),
        ("ernie_tacred", PAIR, "item 1: expected 'ann'"),
    ],
)
def test_malformed_records(read, format, item, message):
    whole = {"figer": FIGER, "ernie_fewrel": PAIR, "ernie_tacred": TACRED}[format]
    with pytest.raises(ValueError, match=message):
        read([whole, item], format)


def test_given_entities_are_input(read, tmp_path):
    (doc,) = read([TACRED], "ernie_tacred")
    doc.user_data["luke_second"] = 16
    path = tmp_path / "docs.spacy"
    write_docbin([doc], path)
    (example,) = make_gold_corpus(path)(NLP)
    assert isinstance(example, Example)
    assert get_all_rows(example.predicted) == {"luke_knowledge": [[16, 22, "Q64", 0.41]], "luke_second": [16]}
    (bare,) = make_gold_corpus(path, knowledge=False)(NLP)
    assert get_all_rows(bare.predicted) == {"luke_second": [16]}
    assert get_all_rows(copy_given(doc, NLP.vocab, pairs=True)).keys() == {
        "luke_pairs",
        "luke_knowledge",
        "luke_second",
    }


@pytest.mark.slow
@pytest.mark.parametrize(("part", "n"), [("train", 4594), ("dev", 4546), ("test", 4688)])
def test_open_entity_has_all_its_entities(shared, part, n):
    path = shared(f"data/open_entity_ernie/{part}.json")
    items = json.loads(path.read_text(encoding="utf8"))
    for text in ("file", "paper"):
        docs = list(dataset_docs(NLP, path, format="open_entity", text=text))
        rows = [row for doc in docs for row in get_rows(doc, "luke_knowledge")]
        assert len(rows) == n
        assert sum(score > 0.3 for *_, score in rows) == sum(row[3] > 0.3 for item in items for row in item["ents"])
        for doc, item in zip(docs, items, strict=True):
            for (a, b, name, score), (q, start, end, s) in zip(
                get_rows(doc, "luke_knowledge"), item["ents"], strict=True
            ):
                assert (name, score) == (q, s)
                inside = item["sent"][start:end]
                assert doc.text[a:b] == inside or text == "paper"
