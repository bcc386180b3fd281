import json

import pytest
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.kb.knowledge_base import EntityKB


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "entities.csv").write_text("id,names,description\nQ1,Ada|A. L.,A poet.\nQ2,Ada,\n")
    (tmp_path / "names.tsv").write_text("EU\tEuropean Union\t3\nEU\tEuropa\t1\n")

    def run(*arguments):
        result = CliRunner().invoke(spacy_app, ["luke", "build-kb", *arguments])
        return result.exit_code, " ".join(result.output.split())

    return run


def test_build(run):
    code, text = run("entities.csv", "kb", "--verify")
    assert code == 0, text
    for expected in ("entities read 2", "entities 2", "names 2", " bytes in "):
        assert expected in text
    assert EntityKB.open("kb").candidates("ADA") == [("Q1", 0.5), ("Q2", 0.5)]


def test_a_list_without_a_first_line(run):
    code, text = run("names.tsv", "kb", "--columns", "name, entity, count", "--max-candidates", "1")
    assert code == 0, text
    assert "Left out: 1 candidates beyond max_candidates" in text
    assert EntityKB.open("kb").candidates("EU") == [("European Union", 0.75)]


def test_adding(run, tmp_path):
    run("entities.csv", "kb")
    (tmp_path / "more.jsonl").write_text(json.dumps({"id": "Q3", "names": ["Ada"], "prior": 0.5}) + "\n")
    code, text = run("more.jsonl", "kb", "--add-to", "kb")
    assert code == 0, text
    assert "entities 3" in text
    assert len(EntityKB.open("kb").candidates("Ada")) == 3


def test_removing_alone(run, tmp_path):
    run("entities.csv", "kb")
    first, *others = EntityKB.open("kb").entities()
    (tmp_path / "gone.txt").write_text(f"{first}\n")
    code, text = run("kb", "--add-to", "kb", "--remove", "gone.txt")
    assert code == 0, text
    assert list(EntityKB.open("kb").entities()) == others
    for arguments in (("kb",), ("kb", "--add-to", "kb"), ("kb", "--add-to", "kb", "--replace")):
        code, text = run(*arguments)
        assert (code, "Expected sources before the folder" in text) == (1, True), text
    assert list(EntityKB.open("kb").entities()) == others


def test_errors_are_told(run, tmp_path):
    before = sorted(tmp_path.iterdir())
    code, text = run("names.tsv", "kb")
    assert code == 1
    assert "Nothing was written" in text
    assert "names.tsv, line 2: expected the columns name, entity" in text
    for arguments in (("nothing.csv", "kb"), ("entities.csv", "kb", "--add-to", "none"), ("entities.csv", ".")):
        code, text = run(*arguments)
        assert (code, "Nothing was written" in text) == (1, True), text
    assert sorted(tmp_path.iterdir()) == before
