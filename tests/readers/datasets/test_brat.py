"""brat's standoff files, written by hand after its documentation."""

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_luke.annotations import get_relation_rows
from spacy_luke.quickstart.data import prepare_parts
from spacy_luke.readers.conversion import convert_files
from spacy_luke.readers.datasets.table import dataset_docs, read_dataset

TEXT = "😀 Ada Byron and\r\nBen moved from\nNew\nYork to Shell."
LINES = """
T1	PER 2 11	Ada Byron
T2	PER 17 20	Ben
T3	Move 21 26	moved
T4	LOC 32 35;36 40	New York
T5	ORG 44 49	Shell
T6	ORG 2 20	Ada Byron and Ben
R1	Sibling Arg1:T1 Arg2:T2\x20
R2	Member Arg2:T6 Arg1:T1
E1	Move:T3 Who:T1 Who2:T2 From:T4
A1	Negation E1
N1	Reference T5 Wikidata:Q154950	Shell plc
#1	AnnotatorNotes T1	a note
*	Equiv T1 T2
"""


@pytest.fixture
def write(tmp_path):
    def write(lines, text=TEXT, name="a"):
        path = tmp_path / f"{name}.ann"
        path.write_text(lines, encoding="utf8")
        path.with_suffix(".txt").write_bytes(text.encode())
        return path

    return write


def test_what_a_file_says(write):
    (record,) = read_dataset(write(LINES), format="brat")
    found = [(record.text[x.start : x.end], x.label, x.kb_id) for x in record.mentions]
    assert found == [
        ("Ada Byron", "PER", ""),
        ("Ben", "PER", ""),
        ("moved", "Move", ""),
        ("New\nYork", "LOC", ""),
        ("Shell", "ORG", "Q154950"),
        ("Ada Byron and\r\nBen", "ORG", ""),
    ]
    assert record.relations == [(0, 1, "Sibling"), (0, 5, "Member"), (2, 0, "Who"), (2, 1, "Who"), (2, 3, "From")]
    assert record.links
    assert record.notes == {
        "attributes, left out": 1,
        "notes of annotators, left out": 1,
        "sets of equal mentions, left out": 1,
    }
    (empty,) = read_dataset(write(""), format="brat")
    assert (empty.mentions, empty.relations, empty.links) == ([], None, False)


def test_events_as_arguments_and_one_trigger_of_two(write):
    lines = "T1	A 2 5	Ada\nT2	B 2 5	Ada\nT3	C 17 20	Ben\nE1	A:T1 Theme:E2\nE2	B:T2 Theme:T3\n"
    (record,) = read_dataset(write(lines), format="brat")
    assert record.relations == [(1, 2, "Theme")]
    assert record.notes == {"relations within the same words, left out": 1}


def test_words_between_the_parts_of_a_mention(write):
    path = write(
        "T1	PER 2 5;17 20	Ada Ben\nT2	PER 17 20	Ben\nR1	x Arg1:T1 Arg2:T2\nN1	Reference T1 W:Q1	Ada\n"
    )
    with pytest.raises(ValueError, match=r"line 1: the mention 'Ada Ben' has words between its parts.*--gaps"):
        list(read_dataset(path, format="brat"))
    (cover,) = read_dataset(path, format="brat", gaps="cover")
    assert [(x.start, x.end, x.kb_id) for x in cover.mentions] == [(2, 20, "Q1"), (17, 20, "")]
    assert cover.relations == [(0, 1, "x")]
    assert cover.notes == {"mentions with words between their parts, which are covered": 1}
    (skip,) = read_dataset(path, format="brat", gaps="skip")
    assert [x.start for x in skip.mentions] == [17]
    assert skip.relations is None
    assert skip.notes == {
        "mentions with words between their parts, left out": 1,
        "relations of mentions that are left out": 1,
    }


def test_documents_of_a_folder(write, tmp_path):
    for name in "bca":
        write(LINES, name=name)
    (tmp_path / "._a.ann").write_bytes(b"\xff")  # of macOS
    (tmp_path / "more").mkdir()
    for name in ("more/bare.txt", "._a.txt", "read.me"):
        (tmp_path / name).write_text("Nobody marked this.", encoding="utf8")
    write("T1	PER 0 3	Eve\n", text="Eve slept.", name="more/d")
    found = convert_files([tmp_path], tmp_path / "x.spacy", format="brat", spans_key="sc")
    assert found.counts["documents"] == 4
    assert found.counts["notes: texts without their file .ann, left out"] == 1
    assert found.labels["mentions"] == {"PER": 7, "ORG": 6, "LOC": 3, "Move": 3}
    (doc,) = dataset_docs(spacy.blank("en"), tmp_path / "b.ann", format="brat", spans_key="sc")
    assert sorted(x.text for x in doc.spans["sc"] if x.label_ == "ORG") == ["Ada Byron and\r\nBen", "Shell"]
    assert len(get_relation_rows(doc)) == 5
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match=r"none: expected files \*\.ann in the folder, but it has none"):
        convert_files([tmp_path / "none"], tmp_path / "y.spacy", format="brat")
    with pytest.raises(ValueError, match="expected files of the format jsonl, but this is a folder"):
        convert_files([tmp_path], tmp_path / "y.spacy", format="jsonl")


def test_a_folder_for_init_config(write, tmp_path):
    (tmp_path / "texts").mkdir()
    for i in range(10):
        write(LINES, TEXT + f" {i}", name=f"texts/{i}")
    parts = prepare_parts([tmp_path / "texts"], [], tmp_path / "corpus", format="brat")
    sizes = [len(list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))) for path in (parts.train, parts.dev)]
    assert sizes == [8, 2]
    again = prepare_parts([tmp_path / "corpus"], [], tmp_path / "more", format="brat")  # a folder of .spacy files
    assert again.train.exists()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("T1	PER 2 5	Bob", "line 1: the mention at 2 5 should be 'Bob', but there stands 'Ada'"),
        ("\nT1	PER 2 99	Ada", "line 2: expected characters of the 50 of the text"),
        (
            "T1	PER 2 5	Ada\nT1	PER 17 20	Ben",
            "a.ann, line 2: expected an id of its own, but .*line 1 has T1, too",
        ),
        ("T1	A 2 5	Ada\nE1	A:T1\n\nE1	A:T1", "line 4: expected an id of its own, but .*line 2 has E1, too"),
        ("T1	PER 2	Ada", "expected a label and characters"),
        (
            "T1	PER 2 5	Ada\nR1	x Arg1:T1 Arg2:T9",
            "line 2: expected a mention or an event of the file, but T9 is none",
        ),
        ("T1	PER 2 5	Ada\nR1	x Arg1:T1", "expected a relation of two arguments"),
        ("R1", "expected arguments"),
        ("E1	Move", "expected arguments"),
        ("N1	Reference T4 Wikidata:Q1	x", "line 1: expected a mention or an event of the file, but T4 is none"),
        ("N1	Wikidata T4", "expected a line of brat's"),
        ("MENTION	x", "but got|expected a line"),
        ("Ada	PER", "expected a line of brat's"),
    ],
)
def test_faults(write, lines, message):
    with pytest.raises(ValueError, match=message):
        list(read_dataset(write(lines), format="brat"))


def test_files_that_are_not_there(write, tmp_path):
    path = write(LINES)
    with pytest.raises(ValueError, match=r"a\.txt: expected a file \.ann"):
        list(read_dataset(path.with_suffix(".txt"), format="brat"))
    path.with_suffix(".txt").unlink()
    with pytest.raises(ValueError, match=r"expected the text beside it, a\.txt"):
        list(read_dataset(path, format="brat"))
