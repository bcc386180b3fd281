"""One bad line is an error that names it; with on_damage="skip" it is counted and listed, and the rest is there."""

import json

import pytest

from spacy_luke.kb.build import KBSettings, build_kb
from spacy_luke.kb.staging import SHOWN

SKIP = KBSettings(on_damage="skip")
GOOD = {"id": "Q1", "names": ["Ada"]}
ITEM = {"id": "Q1", "labels": {"en": {"value": "Ada"}}}


def jsonl(*rows):
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("name", "content", "line", "what"),
    [
        ("e.jsonl", jsonl(GOOD, "{", {"id": "Q2", "names": ["Bo"]}), 2, "not JSON"),
        ("e.jsonl", jsonl(GOOD, "[]", {"id": "Q2", "names": ["Bo"]}), 2, "expected an object"),
        ("e.jsonl", jsonl(GOOD, {"id": "Q3", "names": []}, {"id": "Q2", "names": ["Bo"]}), 2, "one or more names"),
        ("e.jsonl", jsonl(GOOD, {"id": "Q3", "names": ["C", "a\x00"]}, {"id": "Q2", "names": ["Bo"]}), 2, "control"),
        ("e.csv", "id,names,count\nQ1,Ada,1\nQ3,C,many\nQ2,Bo,2\n", 3, "expected a number from 0 for count"),
        ("e.csv", "id,names,count\nQ1,Ada,1\nQ3,C\nQ2,Bo,2\n", 3, "expected 3 fields"),
        ("n.tsv", "name\tentity\tcount\nAda\tQ1\t1\nC\tQ3\t0\nBo\tQ2\t1\n", 3, "expected a number above 0"),
        ("w.json", jsonl(ITEM, "{", {**ITEM, "id": "Q2"}), 2, "not JSON"),
        ("w.json", jsonl(ITEM, {"id": "Q3"}, {**ITEM, "id": "Q2"}), 2, "expected an item of Wikidata"),
        ("w.json", jsonl(ITEM, {"id": "Q3", "labels": {"en": {"value": "a\x01"}}}, {**ITEM, "id": "Q2"}), 2, "control"),
    ],
)
def test_a_bad_line_is_skipped_whole(tmp_path, name, content, line, what):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=rf"{name}, line {line}: .*{what}"):
        build_kb([tmp_path / name], tmp_path / "kb")
    built = build_kb([tmp_path / name], tmp_path / "kb", settings=SKIP)
    assert sorted(built.kb.entities()) == ["Q1", "Q2"]
    assert built.kb.candidates("C") == []
    (told,) = built.left_out
    assert told.startswith("1 lines that are not as expected, the first: ")
    assert f"{name}, line {line}: " in told
    assert what in told


def test_the_first_ones_are_listed_and_all_are_counted(tmp_path):
    (tmp_path / "e.jsonl").write_text(jsonl(GOOD, *["{"] * 50))
    (told,) = build_kb([tmp_path / "e.jsonl"], tmp_path / "kb", settings=SKIP).left_out
    assert told.startswith("50 lines")
    assert told.count("not JSON") == SHOWN


def test_nothing_left_and_bad_settings(tmp_path):
    (tmp_path / "e.jsonl").write_text(jsonl("{", {"id": "Q1"}))
    with pytest.raises(ValueError, match=r"e.jsonl has no entities"):
        build_kb([tmp_path / "e.jsonl"], tmp_path / "kb", settings=SKIP)
    with pytest.raises(ValueError, match="on_damage must be one of"):
        KBSettings(on_damage="drop")
