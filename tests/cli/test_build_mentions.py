import pytest
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.aliases.store import AliasStore

TABLE = "name\tentity\tcount\toccurrences\nYork\tYork\t3\t40\nYork\tNew York\t1\t40\nOld York here\tYork\t9\t9\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.tsv").write_text(TABLE, encoding="utf8")

    def run(*arguments, sources=("names.tsv",), output="store"):
        result = CliRunner().invoke(spacy_app, ["luke", "build-mentions", *sources, output, *arguments])
        return result.exit_code, " ".join(result.output.split())

    return run


def test_table(run):
    code, text = run()
    assert code == 0, text
    for expected in ("store: ", "rows 3", "names 2", "entities 2", "candidates 3"):
        assert expected in text
    store = AliasStore.open("store")
    assert store.candidates("York") == [("York", 0.75), ("New York", 0.25)]
    assert store.link_probability("York") == pytest.approx(0.1)
    assert run()[0] == 0, "a store may be replaced"


def test_settings(run):
    code, text = run(
        "--case", "casefold", "--min-count", "2", "--max-words", "2", "--max-candidates", "1",
        "--min-link-probability", "0.05", output="new/folder/store",
    )  # fmt: skip
    assert code == 0, text
    assert "Left out: 1 links of names with more words than max_words" in text
    assert "Left out: 1 candidates with fewer links" in text
    store = AliasStore.open("new/folder/store")
    assert (list(store), store.case) == (["york"], "casefold")
    assert store.candidates("YORK") == [("York", 0.75)]


def test_dump(run, tmp_path):
    (tmp_path / "dump.xml").write_text(
        "<mediawiki><page><title>A</title><ns>0</ns><revision><text>[[b|B]] [[C]] B</text></revision></page>"
        "<page><title>B</title><ns>0</ns><redirect title='D'/><revision><text/></revision></page></mediawiki>"
    )
    code, text = run("--titles", sources=("dump.xml",))
    assert code == 0, text
    for expected in ("pages 1", "redirects 1", "links 2", "names 3"):
        assert expected in text
    assert AliasStore.open("store").candidates("B") == [("D", 1.0)]
    assert AliasStore.open("store").link_probability("B") == 0.5


def test_the_same_file_every_time(run, tmp_path):
    run(output="one")
    run(output="two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((), {"sources": ("absent.tsv",)}, "no such file"),
        ((), {"output": "names.tsv"}, "names.tsv would be replaced, but it is no store of names"),
        ((), {"output": "."}, "is a folder"),
        (("--case", "lower"), {}, "case must be one of"),
        (("--min-count", "100"), {}, "No name is left to store"),
        (("--titles",), {}, "titles, which tables do not have"),
    ],
)
def test_errors(run, tmp_path, arguments, settings, message):
    code, text = run(*arguments, **settings)
    assert code == 1
    assert "Nothing was written" in text
    assert message in text
    assert [path.name for path in tmp_path.iterdir()] == ["names.tsv"]
    assert (tmp_path / "names.tsv").read_text(encoding="utf8") == TABLE
