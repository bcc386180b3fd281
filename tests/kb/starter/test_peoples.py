"""Names of peoples, and what a reader makes of them."""

import json

import pytest

from spacy_luke.kb.starter.peoples import is_people
from spacy_luke.readers.datasets.table import read_dataset


@pytest.mark.parametrize("name", ["American", "Americans", "Swedes", "South African", "Dutch", "Dutchmen", "Jewish"])
def test_peoples(name):
    assert is_people(name)


@pytest.mark.parametrize("name", ["America", "Sweden", "american", "South", "", "s", "adjectives", "Paris"])
def test_what_is_none(name):
    assert not is_people(name)


def test_docred(tmp_path):
    mentions = [[{"sent_id": 0, "pos": [i, i + 1], "type": x}] for i, x in enumerate(("LOC", "LOC", "ORG", "LOC"))]
    document = {"sents": [["Swedes", "Sweden", "Irish", "Kenyan"]], "vertexSet": mentions}
    (tmp_path / "x.json").write_text(json.dumps([document]), encoding="utf8")

    def labels(**settings):
        (record,) = read_dataset(tmp_path / "x.json", format="docred", **settings)
        return [mention.label for mention in record.mentions]

    assert labels() == ["LOC", "LOC", "ORG", "LOC"]
    assert labels(peoples="MISC") == ["MISC", "LOC", "ORG", "MISC"]
