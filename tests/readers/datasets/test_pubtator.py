"""PubTator's format, written by hand after the description of BC5CDR."""

import pytest
import spacy

from spacy_luke.annotations import LINKS, NIL
from spacy_luke.readers.conversion import convert_files
from spacy_luke.readers.datasets.table import dataset_docs, read_dataset

FILE = """
1|t|Lidocaine and asystole.
1|a|After lidocaine, heart and lung disease.
1	0	9	Lidocaine	Chemical	D008012
1	14	22	asystole	Disease	D006323
1	30	39	lidocaine	Chemical	D008012
1	41	63	heart and lung disease	Disease	D006331|D008171	heart disease|lung disease
1	51	63	lung disease	Disease	-1
1	CID	D008012	D006323
1	CID	D008012	D008171	Novel
1	CID	D008012	D999999

2|t|Nothing.
2|a|
2	0	7	Nothing	Other
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text(FILE, encoding="utf8")
    return path


def test_documents(path):
    first, second = read_dataset(path, format="pubtator")
    assert first.text == "Lidocaine and asystole.\nAfter lidocaine, heart and lung disease."
    assert [x.kb_id for x in first.mentions] == ["D008012", "D006323", "D008012", "", NIL]
    assert first.relations == [(0, 1, "CID"), (2, 1, "CID"), (0, 3, "CID"), (2, 3, "CID")]
    assert first.notes == {
        "mentions of several ids, without a link": 1,
        "relations of ids that no mention has, left out": 1,
    }
    assert [x.title for x in (first, second)] == ["1", "2"]
    assert (second.text, second.relations, second.links) == ("Nothing.\n", None, False)
    first, _ = read_dataset(path, format="pubtator", mention_pairs="first")
    assert first.relations == [(0, 1, "CID"), (0, 3, "CID")]


def test_docs(path, tmp_path):
    doc, _ = dataset_docs(spacy.blank("en"), path, format="pubtator")
    assert [(x.text, x.kb_id_) for x in doc.ents][:2] == [("Lidocaine", "D008012"), ("asystole", "D006323")]
    assert [x.text for x in doc.spans[LINKS]][-2:] == ["heart and lung disease", "lung disease"]
    found = convert_files([path], tmp_path / "x.spacy", format="pubtator")
    assert found.labels["relations"] == {"CID": 4}


def test_a_relation_of_one_mention(tmp_path):
    path = tmp_path / "y.txt"
    path.write_text("1|t|Ada\n1\t0\t3\tAda\tX\tQ1\n1\t0\t3\tAda\tY\tQ2\n1\tR\tQ1\tQ2\n", encoding="utf8")
    (record,) = read_dataset(path, format="pubtator")
    assert record.relations == []
    assert record.notes == {"relations whose entities have the same words, left out": 1}


def test_documents_without_a_blank_line(tmp_path):
    path = tmp_path / "y.txt"
    lines = "1|t|Foo disease\n1|a|Foo is bad.\n1\t0\t3\tFoo\tDisease\tD1\n2|t|Baz disease\n2|a|Qux.\n"
    path.write_text(f"{lines}2\t0\t3\tBaz\tDisease\tD2\n3|t|Last\n\n\n3|t|Again\n", encoding="utf8")
    found = [(x.title, x.text, [m.kb_id for m in x.mentions]) for x in read_dataset(path, format="pubtator")]
    assert found == [
        ("1", "Foo disease\nFoo is bad.", ["D1"]),
        ("2", "Baz disease\nQux.", ["D2"]),
        ("3", "Last", []),
        ("3", "Again", []),
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("1|t|Foo\n1|a|Bar.\n2\t0\t3\tFoo\tX\tD1", "line 3: expected a line of the document '1', which begins on"),
        ("1|t|Foo\n\n2|t|Foo\n1|a|Bar.", "line 4: expected a line of the document '2', which begins on line 3"),
        ("1|t|Foo\n1|t|Zed\n1|a|Bar.", r"line 2: expected ID\|t\|TITLE and ID\|a\|ABSTRACT once each"),
        ("1|t|Foo\n1|a|Zed\n1|a|Bar.", r"line 3: expected ID\|t\|TITLE and ID\|a\|ABSTRACT once each"),
        ("1|t|Ada\n1\t0\t2\tAda\tX\tQ1", r"line 2: the mention at 0 2 should be 'Ada', but there stands 'Ad'"),
        ("1\t0\t2\tAda\tX\tQ1", r"line 1: expected a document that begins with ID\|t\|TITLE"),
        ("1|t|Ada\nmore", r"line 2: expected ID\|t\|TITLE"),
        ("1|t|Ada\n1\t0\t3\tAda", "line 2: expected a mention's ID"),
        ("1|t|Ada\n1\t0\tx\tAda\tX\tQ1", "line 2: expected a mention's ID"),
        ("1|t|Ada\n1\t0\t3\tAda\t \tQ1", "line 2: expected a mention's ID"),
    ],
)
def test_faults(tmp_path, lines, message):
    path = tmp_path / "z.txt"
    path.write_text(lines, encoding="utf8")
    with pytest.raises(ValueError, match=message):
        list(read_dataset(path, format="pubtator"))
