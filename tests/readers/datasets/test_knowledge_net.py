"""KnowledgeNet's page: passages, facts, properties without any, pronouns."""

import zipfile

import pytest
import spacy

from spacy_luke.annotations import get_rows
from spacy_luke.readers.datasets.table import dataset_docs, read_dataset

NLP = spacy.blank("en")
LINK = '<a href="http://www.wikidata.org/entity/Q7" target="_blank">'
ED = f'<span id="subject">{LINK}Ed Ott</a></span>'


def row(document, place, ends, name, passage):
    cells = ["1", document, *map(str, place), *map(str, ends), name, f"<p> {passage}</p>"]
    return "<tr>" + "".join(f'<td style="x">{cell}</td>' for cell in cells) + "</tr>\n"


TEXT = "Ed Ott, of A&B, was born in Bonn."
ROWS = [
    row("12", (10, 43), (10, 16, 38, 42), "PLACE_OF_BIRTH",
        f'{ED}, of A&B, was born in <span id="object">Bonn</span>.'),
    row("12", (10, 43), (10, 16, 21, 24), "EMPLOYEE_OR_MEMBER_OF",
        f'{ED}, of <span id="object">A&B</span>, was born in Bonn.'),
    row("12", (10, 43), ("-", "-", "-", "-"), "SPOUSE", TEXT),
    row("12", (44, 55), (44, 46, 50, 54), "PLACE_OF_RESIDENCE",
        '<span id="subject">He</span> in <span id="object">Rome</span>'),
]  # fmt: skip


def write(folder, rows):
    path = folder / "page.html"
    path.write_text("<HTML><tr class='header'><th>Fold</th></tr><tbody>\n" + "".join(rows), encoding="utf8")
    return path


def test_passages(tmp_path):
    born, lives = read_dataset(write(tmp_path, ROWS), format="knowledge_net")
    assert (born.title, born.text, born.has_entities) == ("12", TEXT, False)
    mentions = [(TEXT[x.start : x.end], x.label, x.kb_id) for x in born.mentions]
    assert mentions == [("Ed Ott", "PER", "Q7"), ("Bonn", "LOC", ""), ("A&B", "ORG", "")]
    assert born.relations == [(0, 1, "PLACE_OF_BIRTH"), (0, 2, "EMPLOYEE_OR_MEMBER_OF")]
    assert born.pairs == [(0, 1), (0, 2)]
    assert born.notes == {"properties of which a passage states nothing": 1, "facts of pronouns, left out": 0}
    assert (lives.text, lives.relations, lives.pairs) == ("He in Rome", [], [])
    assert lives.notes["facts of pronouns, left out"] == 1


def test_docs_and_pronouns(tmp_path):
    docs = list(dataset_docs(NLP, write(tmp_path, ROWS), format="knowledge_net", pronouns="keep"))
    assert get_rows(docs[0], "luke_relations")[1] == [0, 6, 11, 14, "EMPLOYEE_OR_MEMBER_OF", 1.0]
    assert get_rows(docs[0], "luke_pairs") == [[0, 6, 28, 32], [0, 6, 11, 14]]
    assert get_rows(docs[1], "luke_relations") == [[0, 2, 6, 10, "PLACE_OF_RESIDENCE", 1.0]]
    assert not docs[0].has_annotation("ENT_IOB")


def test_zip(tmp_path):
    page, packed = write(tmp_path, ROWS), tmp_path / "page.zip"
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
        list(read_dataset(write(tmp_path, rows), format="knowledge_net"))


def test_wrong_pronouns(tmp_path):
    with pytest.raises(ValueError, match=r"pronouns must be one of .'leave out', 'keep'., but it is 'he'"):
        list(read_dataset(write(tmp_path, ROWS), format="knowledge_net", pronouns="he"))
