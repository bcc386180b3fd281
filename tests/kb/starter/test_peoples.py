"""Names of peoples, and what a reader makes of them."""

import json

import pytest

from spacy_luke.kb.starter.peoples import is_people, with_origin
from spacy_luke.readers.datasets.table import read_dataset


@pytest.mark.parametrize("name", ["American", "Americans", "Swedes", "South African", "Dutch", "Dutchmen", "Jewish"])
def test_peoples(name):
    assert is_people(name)


@pytest.mark.parametrize(
    "name", ["America", "Sweden", "american", "South", "", "s", "adjectives", "Paris", "Laos", "Philippines"]
)
def test_what_is_none(name):
    assert not is_people(name)


@pytest.mark.parametrize(
    ("what", "origin", "expected"),
    [
        ("physicist", "Peru", "physicist from Peru"),
        ("physicist, poet", "Peruvian", "Peruvian physicist, poet"),
        ("physicist", "", "physicist"),
        ("", "Peru", ""),
    ],
)
def test_descriptions(what, origin, expected):
    assert with_origin(what, origin) == expected


def test_docred(tmp_path):
    mentions = [[{"sent_id": 0, "pos": [i, i + 1], "type": x}] for i, x in enumerate(("LOC", "LOC", "ORG", "LOC"))]
    document = {"sents": [["Swedes", "Sweden", "Irish", "Kenyan"]], "vertexSet": mentions}
    (tmp_path / "x.json").write_text(json.dumps([document]), encoding="utf8")

    def labels(**settings):
        (record,) = read_dataset(tmp_path / "x.json", format="docred", **settings)
        return [mention.label for mention in record.mentions]

    assert labels() == ["LOC", "LOC", "ORG", "LOC"]
    assert labels(peoples="MISC") == ["MISC", "LOC", "ORG", "MISC"]


def test_articles(tmp_path):
    """A small "the" before names, not in titles and dates."""
    words = ["the", "United", "States", "in", "the", "1990s", ",", "The", "Hague", ",", "the"]
    places = [(0, 3, "LOC"), (4, 6, "TIME"), (7, 9, "LOC"), (10, 11, "ORG")]
    mentions = [[{"sent_id": 0, "pos": [start, end], "type": x}] for start, end, x in places]
    document = {"sents": [words], "vertexSet": mentions}
    (tmp_path / "x.json").write_text(json.dumps([document]), encoding="utf8")

    def starts(**settings):
        (record,) = read_dataset(tmp_path / "x.json", format="docred", **settings)
        return [mention.start for mention in record.mentions]

    assert starts() == starts(articles="keep") == [0, 4, 7, 10]
    assert starts(articles="drop") == [1, 4, 7, 10]
    with pytest.raises(ValueError, match="articles"):
        starts(articles="none")
