"""What is known of an entity: columns of tables, what follows from what is known, which id is chosen."""

import json

import pytest

from spacy_luke.annotations import CHOICES, EntityRecord
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.change import add_to_kb
from spacy_luke.kb.knowledge_base import EntityKB
from spacy_luke.kb.record import About, make_record


@pytest.mark.parametrize(
    ("entity", "about", "record"),
    [
        ("x", About(), ("x", "x", "", "", "d", ())),
        ("Q7", About(), ("Q7", "Q7", "Q7", "https://www.wikidata.org/wiki/Q7", "d", ())),
        ("Q0", About(), ("Q0", "Q0", "", "", "d", ())),
        ("x", About("T", "Q7"), ("x", "T", "Q7", "https://www.wikidata.org/wiki/Q7", "d", ())),
        ("A B?", About(url="en"), ("A B?", "A B?", "", "https://en.wikipedia.org/wiki/A_B%3F", "d", ())),
        ("x", About("Zürich", "Q7", "de"), ("x", "Zürich", "Q7", "https://de.wikipedia.org/wiki/Z%C3%BCrich", "d", ())),
        ("x", About(url="https://x.org/1", types=("a", "b")), ("x", "x", "", "https://x.org/1", "d", ("a", "b"))),
    ],
)
def test_what_follows(entity, about, record):
    assert make_record(entity, about, "d") == EntityRecord(*record)
    assert About.from_line(about.to_line()) == about


def test_choices():
    record = EntityRecord("x", "T", "", "https://x.org", "d", ())
    assert [record.choose(which) for which in CHOICES] == ["x", "T", "x", "https://x.org"]


def test_columns(tmp_path):
    rows = [
        {"id": "1", "names": ["A"], "title": " The  A ", "wikidata": "Q1", "url": "en", "types": ["city", "city", "t"]},
        {"id": "2", "names": ["B"], "types": "x|y"},
        {"id": "3", "names": ["C"]},
    ]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    kb = build_kb([tmp_path / "e.jsonl"], tmp_path / "kb").kb
    row = kb.row("1")
    assert kb.record(row) == ("1", "The A", "Q1", "https://en.wikipedia.org/wiki/The_A", "", ("city", "t"))
    assert kb.record(kb.row("2")).types == ("x", "y")
    assert kb.record(kb.row("3")) == ("3", "C", "", "", "", ())
    assert kb.row("Q1") == kb.row("The A") == row
    (tmp_path / "e.csv").write_text("id,names,title,wikidata,url,types\n4,D|E,Dee,,https://d.org,x|y\n")
    kb = add_to_kb(kb, [tmp_path / "e.csv"]).kb
    assert kb.record(3) == ("4", "Dee", "", "https://d.org", "", ("x", "y"))
    assert kb.row("Dee") == -1  # no page has that title
    assert kb.record(row).wikidata == "Q1"


def test_what_an_entity_without_a_title_is_called(tmp_path):
    rows = [
        {"id": "c1", "names": {"Acme": 1, "Acme  Ltd": 3, "ACME": 2}},
        {"id": "Kent County Cricket Club", "names": ["Kent"]},
        {"id": "d1", "names": ["Aspirin", "ASA"], "url": "en"},
    ]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "e.csv").write_text("id,names,title\nc1,Roadrunner,Acme Corporation\n")
    kb = build_kb([tmp_path / "e.jsonl"], tmp_path / "kb").kb
    assert [kb.record(kb.row(row["id"])).title for row in rows] == ["Acme Ltd", "Kent County Cricket Club", "d1"]
    kb = build_kb([tmp_path / "e.jsonl", tmp_path / "e.csv"], tmp_path / "both").kb
    assert kb.record(kb.row("c1")).title == "Acme Corporation"  # a title before a name, whichever source comes first


def test_names_with_counts(tmp_path):
    rows = [{"id": "1", "names": {"A": 3, "B": 0.5}}, {"id": "2", "names": {"A": 1}, "count": 9}]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    kb = build_kb([tmp_path / "e.jsonl"], tmp_path / "kb").kb
    assert kb.candidates("A") == [("1", 0.75), ("2", 0.25)]
    assert kb.candidates("B") == [("1", 1.0)]
    assert kb.count(kb.row("2")) == 9


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"wikidata": "84"}, "line 1: expected Q and a number for wikidata, but got '84'"),
        ({"types": ["a", 3]}, "line 1: expected texts for title, wikidata, url and types"),
        ({"types": [" "]}, r"line 1: expected types that have some text and no \|, but got ' '"),
        ({"title": 3}, "line 1: expected texts for title"),
        ({"names": {"A": 0}}, "line 1: expected a number above 0 for A, but got 0"),
        ({"names": {}}, "line 1: expected one or more names"),
        ({"id": " NIL"}, "line 1: Expected another id than 'NIL'"),
    ],
)
def test_bad_values(tmp_path, row, message):
    (tmp_path / "e.jsonl").write_text(json.dumps({"id": "1", "names": ["A"], **row}) + "\n")
    with pytest.raises(ValueError, match=message):
        build_kb([tmp_path / "e.jsonl"], tmp_path / "kb")


def test_knowledge_bases_of_before_have_no_such_files(tmp_path):
    (tmp_path / "e.csv").write_text("id,names\nQ4,D\n")
    kb = build_kb([tmp_path / "e.csv"], tmp_path / "kb").kb
    values = {key: kb.manifest[key] for key in ("segments", "info")}
    for name in ("about.txt", "about_starts.npy"):
        (kb.path / "0" / name).unlink()
    names = [name for name in kb.manifest["files"] if "about" not in name]
    EntityKB.kind.write_manifest(kb.path, values, names=names)
    assert EntityKB.open(kb.path).record(0).wikidata == "Q4"
