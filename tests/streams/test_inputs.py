"""Inputs in all their formats: the texts, their ids, and what is told of what cannot be read."""

import bz2
import csv
import gzip
import io
import json
import os
import sys
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_luke.stores.plain_text import printable_name
from spacy_luke.streams import input_formats
from spacy_luke.streams.given_texts import GivenText, UnreadText, count_words
from tests.streams.runs import find

TEXTS = ["Ada Lovelace lived in London.", 'He said: "No,\nnever."', "", "Ünïcode 😀\tand a tab"]


def write(path, format):
    if format == "jsonl":
        path.write_text("".join(json.dumps({"id": i, "text": x}) + "\n\n" for i, x in enumerate(TEXTS)), "utf8")
    elif format in ("csv", "tsv"):
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            rows = csv.writer(file, delimiter="," if format == "csv" else "\t")
            rows.writerows([["other", "text", "id"], *(["x", x, str(i)] for i, x in enumerate(TEXTS))])
    elif format == "parquet":
        pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({"id": list(range(len(TEXTS))), "x": TEXTS, "text": TEXTS}), path)
    else:
        nlp = spacy.blank("en")
        docs = DocBin(store_user_data=True)
        for i, x in enumerate(TEXTS):
            doc = nlp.make_doc(x)
            doc.user_data["id"] = str(i)
            docs.add(doc)
        docs.to_disk(path)


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "parquet", "spacy"])
def test_records(tmp_path, format):
    path = tmp_path / f"a.{format}"
    write(path, format)
    items = list(find(path))
    assert [(x.id, x.text) for x in items] == [(str(i), x) for i, x in enumerate(TEXTS)]
    assert all(x.place.startswith(f"{path.as_posix()}:") for x in items)
    inputs = find(path)
    assert len(list(inputs)) == 4
    assert inputs.read == inputs.size == path.stat().st_size


def test_quotes_in_tsv_that_are_letters(tmp_path):
    lines = ['"Heroes" (album)', '"', 'a 5" nail', '"Oh no', 'said he."', '"All ""quoted"""']
    (tmp_path / "a.tsv").write_text("".join(f"{line}\t{i}\n" for i, line in enumerate(["text", *lines])))
    (tmp_path / "b.tsv").write_text("id\ttext\n" + "".join(f"{i}\t{line}\n" for i, line in enumerate(lines)))
    for name in ("a.tsv", "b.tsv"):
        header = {"text": "text", "id": "0"} if name == "a.tsv" else {}
        assert [x.text for x in find(tmp_path / name, **header)] == [*lines[:-1], 'All "quoted"']


def test_a_column_that_is_there_twice(tmp_path):
    (tmp_path / "a.csv").write_text("id,text,text\n1,A.,B.\n")
    with pytest.raises(ValueError, match=r"a\.csv: expected each column once, but 'text' is there twice"):
        list(find(tmp_path / "a.csv"))


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_packed_files(tmp_path, suffix, pack):
    write(tmp_path / "a.jsonl", "jsonl")
    (tmp_path / f"b.jsonl{suffix}").write_bytes(pack((tmp_path / "a.jsonl").read_bytes()))
    assert [x.text for x in find(tmp_path / f"b.jsonl{suffix}")] == TEXTS
    (tmp_path / f"c.jsonl{suffix}").write_bytes(pack((tmp_path / "a.jsonl").read_bytes())[:-9])
    with pytest.raises(ValueError, match=r"not a whole (gzip|bzip2) file"):
        list(find(tmp_path / f"c.jsonl{suffix}"))


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path):
    for name in ("b/2.txt", "a.md", "b/10.txt", ".hidden/x.txt", "b/notes.pdf", "b/c.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = '{"text": "json"}' if name.endswith("jsonl") else f"\ufeffOf {name}\nand more."
        (tmp_path / name).write_text(text, "utf8")
    items = list(find(tmp_path))
    place = tmp_path.as_posix()
    assert [x.id for x in items] == [f"{place}/a.md", f"{place}/b/10.txt", f"{place}/b/2.txt", f"{place}/b/c.jsonl:1"]
    assert items[1].text == "Of b/10.txt\nand more."
    assert [x.name for x in find(tmp_path).left_out] == ["notes.pdf"]
    assert [x.text for x in find(tmp_path, format="lines")][:2] == ["Of a.md", "and more."]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"has no file of texts: expected \.txt, \.md"):
        find(tmp_path / "empty")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_no_utf8(tmp_path):
    """Also of an ASCII locale, where Python holds each byte by itself. None becomes another's."""
    names = [b"b\xfcro.txt", b"b\\xfcro.txt", b"b\\\\xfcro.txt", b"b\xfdro.txt", b"a\\b.txt", "ö.txt".encode()]
    for name in names:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"Ada.")
    ids = {x.id.rpartition("/")[2] for x in find(tmp_path)}
    shown = {r"b\xfcro.txt", r"b\\xfcro.txt", r"b\\\\xfcro.txt", r"b\xfdro.txt", r"a\b.txt", "ö.txt"}
    assert ids == shown
    assert printable_name(Path("f\udcc3\udcb6/t.txt")) == "fö/t.txt"


def test_lines_and_standard_input(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"One.\r\n\nTwo."), encoding="utf8"))
    items = list(find("-", format="lines"))
    assert [(x.id, x.text) for x in items] == [("-:1", "One."), ("-:3", "Two.")]
    assert find("-").size is None
    assert find("-").files[0].format == "jsonl"
    with pytest.raises(ValueError, match="named several times"):
        find("-", "-")
    with pytest.raises(ValueError, match="Standard input cannot be parquet"):
        find("-", format="parquet")


def test_fields_have_names(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"body": "Text.", "url": "u/1"}\n{"body": 5}\n')
    items = list(find(tmp_path / "a.jsonl", text="body", id="url"))
    assert items[0] == GivenText("u/1", "Text.", f"{(tmp_path / 'a.jsonl').as_posix()}:1")
    assert isinstance(items[1], UnreadText)
    assert items[1].message == "expected a text, but it is 5."
    (tmp_path / "a.csv").write_text("body,url\nText.,u/1\n")
    assert next(iter(find(tmp_path / "a.csv", text="body", id="url"))).id == "u/1"
    with pytest.raises(ValueError, match=r"expected a column 'text' .* columns are \['body', 'url'\]"):
        list(find(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("id;text", "a.csv: expected commas .* first line is 'id;text'. Save it with commas, or with tabs as .tsv"),
        ('"id";"body, or not"', "expected a first line with the names of the columns, but ',' expected"),
        ('"id";"text"', "expected commas between the columns"),
        ("sep=;\nid;text", "it is 'sep=;', which only Excel reads. Remove this line, and save it with commas, or"),
        ('"sep=,"\nid,text', "which only Excel reads. Remove this line.$"),
        ("id;body", "expected commas between the columns"),
        ("a;b", r"columns are \['a;b'\]. Say which by --text-field"),
        ("id;x,y", r"columns are \['id;x', 'y'\]. Say which by --text-field"),
        ("id", r"columns are \['id'\]. Say which by --text-field"),
        ("", r"columns are \[\]"),
    ],
)
def test_columns_that_are_none(tmp_path, header, message):
    (tmp_path / "a.csv").write_text(f"{header}\n1;A.\n")
    with pytest.raises(ValueError, match=message):
        list(find(tmp_path / "a.csv"))


def test_line_ends_of_old_macs(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"id\ttext\r1\tA.\r")
    with pytest.raises(ValueError, match=r"a.tsv, line 1: expected a line feed .* tr '.r' '.n' < .*a.tsv > NEW"):
        list(find(tmp_path / "a.tsv"))


def test_semicolons_in_a_table_with_commas(tmp_path):
    (tmp_path / "a.csv").write_text("text;id,text\nx;y,A;B.\n")
    (tmp_path / "b.csv").write_text("text\ntext;id\n")
    (tmp_path / "c.tsv").write_text("id;text\ttext\n1\tA.\n")
    assert [x.text for x in find(tmp_path)] == ["A;B.", "text;id", "A."]


def test_ids_of_records_without_a_text(tmp_path):
    path = tmp_path / "a.jsonl"
    ids = ["n", 7, True, "\ud800", "", None, ["n"]]
    path.write_text("".join(json.dumps({"id": x, "body": "A."}) + "\n" for x in ids))
    items = list(find(path))
    assert [x.id for x in items] == ["n", "7", *(f"{path.as_posix()}:{i}" for i in range(3, 8))]
    assert {x.message for x in items} == {"expected a JSON object with 'text', but it is ['body', 'id']."}


def test_questions_come_along(tmp_path):
    rows = [{"text": "A.", "questions": ["Who?"], "queries": None}, {"text": "B.", "questions": "Who?"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(x) + "\n" for x in rows))
    one, other = find(tmp_path / "a.jsonl")
    assert (one.questions, one.queries) == (("Who?",), ())
    assert other.message == "expected a list of questions, but it is 'Who?'."


def test_what_cannot_be_read_costs_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(input_formats, "MOST_BYTES", 60)
    (tmp_path / "a.jsonl").write_bytes(
        b'{"text": "A."}\n' + b"x" * 200 + b'\n[1]\n{"text": "Malm\xf6"}\n{"text": "B."}\n'
    )
    items = list(find(tmp_path / "a.jsonl"))
    assert [x.text for x in items if isinstance(x, GivenText)] == ["A.", "B."]
    told = [x.message for x in items if isinstance(x, UnreadText)]
    assert [x.partition(",")[0] for x in told] == [
        "expected a line of at most 60 bytes; this is longer.",
        "expected a JSON object with 'text'",
        "expected UTF-8",
    ]
    (tmp_path / "a.csv").write_bytes(b"id,text\n1,A.\n2,B.,more\n\n3,Malm\xf6\n4,D.\n")
    items = list(find(tmp_path / "a.csv"))
    assert [getattr(x, "text", x.place.rpartition(":")[2]) for x in items] == ["A.", "2", "4", "D."]
    assert [x.id for x in items] == ["1", items[1].place, "3", "4"]
    (tmp_path / "b.txt").write_bytes(b"fine\nMalm\xf6")
    assert "line 2" in next(iter(find(tmp_path / "b.txt"))).message


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_all_cells_that_go_along_are_text(tmp_path, delimiter):
    path = tmp_path / ("a.csv" if delimiter == "," else "a.tsv")
    rows = ["id,text,city", "1,A.,Bonn", "2,B.,K\xf6ln", "M\xfcller,C.,Bonn", "4,D.,Bonn"]
    path.write_bytes("\n".join(rows).replace(",", delimiter).encode("cp1252"))
    name = path.as_posix()
    items = list(find(path))
    assert [(x.id, isinstance(x, UnreadText)) for x in items] == [
        *[("1", False), ("2", True), (f"{name}:3", True), ("4", False)]
    ]
    for number, told in ((1, "column 'city': expected UTF-8, but byte 1 is 0xf6"), (2, "column 'id': expected UTF-8")):
        assert items[number].message.startswith(told)
        assert f"iconv -f cp1252 -t utf8 {name} > NEW" in items[number].message
    assert [x.id for x in find(path, others=()) if isinstance(x, UnreadText)] == [f"{name}:3"]
    path.write_bytes("text,gr\xf6\xdfe\nA.,1\n".replace(",", delimiter).encode("cp1252"))
    with pytest.raises(ValueError, match="line 1: expected UTF-8, but byte 7 is 0xf6"):
        list(find(path))


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be"])
def test_tables_in_utf16(tmp_path, suffix, coding):
    (tmp_path / f"a.{suffix}").write_bytes("\ufefftext\tid\r\nA.\t1\r\n".encode(coding))
    with pytest.raises(ValueError, match=r"line 1: expected UTF-8, .* iconv -f utf16 -t utf8"):
        list(find(tmp_path / f"a.{suffix}"))


@pytest.mark.parametrize(
    ("lines", "read", "lost"),
    [
        (['1,"A."', '2,"B.', "3,C.", "4,D."], ["1"], (3, 5)),
        (['1,"A.', '2,"B."', '3,"C."'], ["3"], (2, 3)),
        (['1,"A.', 'and more."', '2,"B.', "", '3,"C.', "4,D."], ["1", "4"], (4, 6)),
    ],
)
def test_each_line_that_a_quote_takes_along_is_told(tmp_path, lines, read, lost):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["id,text", *lines, ""]))
    items = list(find(path))
    assert [x.id for x in items if isinstance(x, GivenText)] == read
    failed = [x for x in items if isinstance(x, UnreadText)]
    assert len(failed) == lost[1] - lost[0] + 1
    assert len({x.place for x in items}) == len(items)
    for one in failed:
        assert f"the lines {lost[0]} to {lost[1]} are lost, as a quote that opens in one of them" in one.message


@pytest.mark.parametrize("format", ["spacy", "parquet"])
def test_files_that_are_none(tmp_path, format):
    if format == "parquet":
        pytest.importorskip("pyarrow", reason="needs the extra parquet")
    (tmp_path / f"a.{format}").write_bytes(b"junk that is none")
    with pytest.raises(ValueError, match=r"is no (file of Docs|whole Parquet file)"):
        list(find(tmp_path / f"a.{format}"))


def test_unknown_sources(tmp_path):
    with pytest.raises(ValueError, match="nowhere is not there"):
        find(tmp_path / "nowhere")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ValueError, match=r"pipe is neither. Pipe texts to standard input, and name it -"):
            find(tmp_path / "pipe")
    (tmp_path / "a.pdf").touch()
    with pytest.raises(ValueError, match=r"a\.pdf. Say what it is, such as by --input-format lines"):
        find(tmp_path / "a.pdf")


def test_words_are_counted_also_without_blanks():
    assert count_words("one two three") == 3
    assert count_words("日" * 1200) == 100
