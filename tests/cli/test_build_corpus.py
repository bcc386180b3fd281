"""The commands from a dump to shards, and what they say of bad input."""

import json
from pathlib import Path

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.corpus.linked_corpus import LinkedCorpus
from spacy_luke.corpus.shards import Shards
from spacy_luke.entity_vocab import EntityVocab
from spacy_luke.readers.docbin import write_docbin
from tests.tiny import make_wordpiece

SAMPLE = Path(__file__).parents[2] / "assets" / "wiki.xml"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_wordpiece().save_huggingface(tmp_path / "encoder")

    def run(*arguments):
        result = CliRunner().invoke(spacy_app, ["luke", *map(str, arguments), "--workers", "1"])
        return result.exit_code, " ".join(result.output.split())

    return run


def test_from_a_dump_to_shards(run):
    code, text = run("build-corpus", SAMPLE, "corpus")
    assert code == 0, text
    for expected in ("language en", "pages 5", "paragraphs 12", "links 30", "Left out: 1 links into redirect loops"):
        assert expected in text
    code, text = run("build-entity-vocab", "corpus", "vocab", "--min-count", "2")
    assert code == 0, text
    for expected in ("entity_vocab.jsonl", "entities 9", "entities below min_count"):
        assert expected in text
    assert EntityVocab.from_file(Path("vocab")).titles()[:4] == ["[PAD]", "[UNK]", "[MASK]", "Vellmouth"]
    settings = ["--encoder", "encoder", "--entity-vocab", "vocab", "--max-pieces", "96", "--verify"]
    code, text = run("build-shards", "corpus", "shards", *settings)
    assert code == 0, text
    for expected in ("examples", "mentions", "Left out:", "links to unknown entities", "unknown pieces"):
        assert expected in text
    shards = Shards.open("shards", verify=True)
    assert shards.manifest["max_pieces"] == 96
    counts = shards.manifest["counts"]
    assert counts["unknown pieces"] > 0.05 * counts["pieces"]
    assert "of the pieces are unknown to the encoder, which cannot learn what they say. Take an encoder of" in text
    assert shards.manifest["info"]["sentences"] == "RuleSentences(language='en')"
    code, text = run("build-shards", "corpus", "shards", *settings, "--include-unk-entities", "--lang", "xx")
    assert code == 0, text
    assert Shards.open("shards").manifest["counts"]["links to unknown entities"] == 4


def test_from_docs(run):
    nlp = spacy.blank("en")
    doc = nlp("Ada met Bob in London.")
    doc.set_ents(
        [doc.char_span(0, 3, label="PER", kb_id="Ada Lovelace"), doc.char_span(15, 21, label="LOC", kb_id="London")]
    )
    write_docbin([doc], "docs.spacy")
    code, text = run("build-corpus", "docs.spacy", "corpus", "--language", "en")
    assert code == 0, text
    assert "links 2" in text
    (paragraph,) = LinkedCorpus.open("corpus").paragraphs()
    assert [title for _, _, title in paragraph.links] == ["Ada Lovelace", "London"]


def test_several_languages(run, tmp_path):
    run("build-corpus", SAMPLE, "en")
    (tmp_path / "de.xml").write_text(
        '<mediawiki xml:lang="de"><page><title>X</title><ns>0</ns><revision><text>[[Vellmünde]] liegt</text></revision>'
        "</page></mediawiki>",
        encoding="utf8",
    )
    run("build-corpus", "de.xml", "de")
    (tmp_path / "list.txt").write_text("de:Vellmünde\n", encoding="utf8")
    code, text = run("build-entity-vocab", "en", "de", "vocab", "--min-languages", "2", "--white-list", "list.txt")
    assert code == 0, text
    lines = (tmp_path / "vocab" / "entity_vocab.jsonl").read_text(encoding="utf8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert rows[3]["entities"] == [["Vellmouth", "en"], ["Vellmünde", "de"]]
    code, text = run("build-shards", "en", "de", "shards", "-e", "encoder", "--entity-vocab", "vocab")
    assert code == 0, text
    assert Shards.open("shards").manifest["counts"]["mentions"] > 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build-corpus", "nowhere.xml", "new"], "there is no such file"),
        (["build-corpus", "bad.txt", "new"], "Expected a Wikipedia dump, or all sources .spacy files, but bad.txt"),
        (["build-corpus", SAMPLE, "new", "--spans-key", "x"], "spans_key is for Docs"),
        (["build-corpus", SAMPLE, "mine"], "holds something else than a linked corpus"),
        (["build-corpus", SAMPLE, "new", "--engine", "spark"], "engine must be one of"),
        (["build-entity-vocab", "mine", "new"], "no linked corpus: there is no manifest.json"),
        (
            ["build-shards", "corpus", "new", "-e", "mine", "--entity-vocab", "vocab"],
            "the files of a tokenizer, but mine",
        ),
        (["build-shards", "corpus", "new", "-e", "encoder", "--entity-vocab", "mine"], "Expected an entity vocabulary"),
        (["build-shards", "corpus", "new", "-e", "encoder", "--entity-vocab", "vocab", "--lang", "qqq"], "'qqq'"),
    ],
)
def test_bad_input(run, tmp_path, arguments, message):
    (tmp_path / "bad.txt").write_text("text")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("x")
    if arguments[0] == "build-shards":
        run("build-corpus", SAMPLE, "corpus")
        run("build-entity-vocab", "corpus", "vocab")
    code, text = run(*arguments)
    assert code == 1
    assert message in text
    assert "Nothing was written." in text
    assert not (tmp_path / "new").exists()
