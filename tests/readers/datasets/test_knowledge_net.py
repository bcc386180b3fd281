"""KnowledgeNet's page: passages, facts, properties without any, pronouns."""

import zipfile

import pytest
import spacy

from spacy_luke.annotations import get_rows
from spacy_luke.readers.datasets.knowledge_net import read_knowledge_rows
from spacy_luke.readers.datasets.table import dataset_docs, read_dataset
from tests.readers.datasets.knowledge_page import ROWS, TEXT, write_page

NLP = spacy.blank("en")


def test_passages(tmp_path):
    born, lives = read_dataset(write_page(tmp_path / "page.html", ROWS), format="knowledge_net")
    assert (born.title, born.text, born.has_entities) == ("12", TEXT, False)
    mentions = [(TEXT[x.start : x.end], x.label, x.kb_id) for x in born.mentions]
    assert mentions == [("Ed Ott", "PER", "Q7"), ("Bonn", "LOC", ""), ("A&B", "ORG", "")]
    assert born.relations == [(0, 1, "PLACE_OF_BIRTH"), (0, 2, "EMPLOYEE_OR_MEMBER_OF")]
    assert born.pairs == [(0, 1), (0, 2)]
    assert born.notes == {"properties of which a passage states nothing": 1, "facts of pronouns, left out": 0}
    assert (lives.text, lives.relations, lives.pairs) == ("He in Rome", [], [])
    assert lives.notes["facts of pronouns, left out"] == 1


def test_docs_and_pronouns(tmp_path):
    docs = list(dataset_docs(NLP, write_page(tmp_path / "page.html", ROWS), format="knowledge_net", pronouns="keep"))
    assert get_rows(docs[0], "luke_relations")[1] == [0, 6, 11, 14, "EMPLOYEE_OR_MEMBER_OF", 1.0]
    assert get_rows(docs[0], "luke_pairs") == [[0, 6, 28, 32], [0, 6, 11, 14]]
    assert get_rows(docs[1], "luke_relations") == [[0, 2, 6, 10, "PLACE_OF_RESIDENCE", 1.0]]
    assert not docs[0].has_annotation("ENT_IOB")


def test_rows(tmp_path):
    """All that the page says: what a passage was read for without a fact, facts of pronouns, folds."""
    rows = list(read_knowledge_rows(write_page(tmp_path / "page.html", ROWS)))
    assert [(x.fold, x.document, x.place, x.property) for x in rows[2:]] == [
        (1, "12", (10, 43), "SPOUSE"),
        (1, "12", (44, 55), "PLACE_OF_RESIDENCE"),
    ]
    assert [x.ends for x in rows] == [((0, 6), (28, 32)), ((0, 6), (11, 14)), None, ((0, 2), (6, 10))]
    assert rows[0].ids == {"subject": "Q7"}


def test_zip(tmp_path):
    page, packed = write_page(tmp_path / "page.html", ROWS), tmp_path / "page.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(page, "page.html")
        archive.writestr("__MACOSX/._page.html", "x")
    assert [x.text for x in read_dataset(packed, format="knowledge_net")] == [TEXT, "He in Rome"]
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("page.html", b"\xff")
    with pytest.raises(ValueError, match=r"page\.zip: expected UTF-8, but byte 0"):
        list(read_dataset(packed, format="knowledge_net"))
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("train.json", "[]")
    with pytest.raises(ValueError, match=r"page\.zip: expected one page \(.html\) in it, but there are 0"):
        list(read_dataset(packed, format="knowledge_net"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "expected the page of KnowledgeNet"),
        ([ROWS[0].replace('<td style="x">1</td>', "", 1)], "row 1: expected 10 cells, but there are 9"),
        ([ROWS[0], ROWS[1].replace(">21<", ">x<")], "row 2: expected places as numbers"),
        ([ROWS[0].replace("PLACE_OF_BIRTH", "AGE")], "expected one of the properties .*'AGE'"),
        (
            [ROWS[0].replace(">42<", ">99<")],
            r"row 1: subject or object, \[0, 6\) and \[28, 89\), is not",
        ),
        ([ROWS[0], ROWS[1].replace("was born", "is born")], "row 2: its passage is not that of .*row 1"),
    ],
)
def test_malformed(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        list(read_dataset(write_page(tmp_path / "page.html", rows), format="knowledge_net"))


def test_wrong_pronouns(tmp_path):
    with pytest.raises(ValueError, match=r"pronouns must be one of .'leave out', 'keep'., but it is 'he'"):
        list(read_dataset(write_page(tmp_path / "page.html", ROWS), format="knowledge_net", pronouns="he"))
