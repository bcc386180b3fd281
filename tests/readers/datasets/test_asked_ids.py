"""Ids of questions and queries, which a file may leave out or give as null."""

import json

import pytest

from spacy_luke.readers.datasets.table import read_dataset

TEXT = "Bonn"
PLACE = {"start": 0, "end": 3}


@pytest.mark.parametrize(("ids", "expected"), [({"id": "q7"}, "q7"), ({"id": 0}, "0"), ({"id": None}, "1"), ({}, "1")])
def test_squad(tmp_path, ids, expected):
    questions = [{"id": "a", "question": "Where?"}, {"question": "Which city?", **ids}]
    article = {"title": "x", "paragraphs": [{"context": TEXT, "qas": questions}]}
    (tmp_path / "a.json").write_text(json.dumps({"data": [article]}), encoding="utf8")
    (record,) = read_dataset(tmp_path / "a.json", format="squad")
    assert [x["id"] for x in record.questions] == ["a", expected]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ({"id": "x", "idx": 9}, "x"),
        ({"idx": 9}, "9"),
        ({"id": None, "idx": 9}, "9"),
        ({"id": None, "idx": None}, "0"),
        ({}, "0"),
    ],
)
def test_record(tmp_path, ids, expected):
    passage = {"text": TEXT, "entities": [PLACE]}
    line = {"passage": passage, "qas": [{"query": "@placeholder is hot", "answers": [PLACE], **ids}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(line), encoding="utf8")
    (record,) = read_dataset(tmp_path / "a.jsonl", format="record")
    assert [x["id"] for x in record.queries] == [expected]
