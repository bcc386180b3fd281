"""`spacy luke tune`: thresholds are found on dev data and saved."""

import pytest
import spacy
from pipelines import annotate, as_gold, make_pipeline
from spacy.cli._util import app as spacy_app
from spacy.tokens import DocBin, Span
from tiny import SENTENCES
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.readers.docbin import write_docbin


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", "tune", *map(str, arguments)])
    return result, " ".join(result.output.split())


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A pipeline whose components have thresholds that fit badly, and gold that they would say with others."""
    folder = tmp_path_factory.mktemp("tune")
    nlp = make_pipeline(luke_typer={"threshold": 0.98}, luke_relation={"none": "no", "multi_label": True})
    docs = annotate(nlp)
    golds = []
    for doc in docs:
        gold = as_gold(doc)
        gold.set_ents([Span(gold, 0, 2, "PER"), Span(gold, 4, 5, "LOC")])
        gold.spans["luke_types"] = [Span(gold, 0, 2, "person"), Span(gold, 4, 5, "place"), Span(gold, 4, 5, "city")]
        gold._.luke_relations = [(gold.ents[0], gold.ents[1], "near")]
        golds.append(gold)
    write_docbin(golds, folder / "dev.spacy")
    nlp.to_disk(folder / "pipeline")
    return folder


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("luke_ner", "none_bias"),
        ("luke_typer", "threshold"),
        ("luke_relation", "threshold"),
        ("luke_qa", "no_answer_threshold"),
    ],
)
def test_a_new_pipeline(saved, tmp_path, name, key):
    result, text = run(saved / "pipeline", saved / "dev.spacy", "--component", name, "--output", tmp_path / "tuned")
    assert result.exit_code == 0, result.output
    assert f"'{name}': {key} = " in text
    nlp = spacy.load(tmp_path / "tuned")
    before = spacy.load(saved / "pipeline")
    value = nlp.get_pipe(name).cfg[key]
    assert nlp.config["components"][name][key] == value
    if name == "luke_typer":
        assert value < before.get_pipe(name).cfg[key] == 0.98
    assert annotate(nlp, SENTENCES[:1])[0].to_bytes()
    others = [pipe for pipe in nlp.pipe_names if pipe.startswith("luke_") and pipe != name]
    assert all(nlp.get_pipe(pipe).cfg == before.get_pipe(pipe).cfg for pipe in others)


def test_in_place(tmp_path):
    nlp = make_pipeline("luke_typer", luke_typer={"threshold": 0.98})
    nlp.to_disk(tmp_path / "pipeline")
    gold = nlp.make_doc(SENTENCES[0])
    gold.spans["luke_types"] = [Span(gold, 0, 2, "person"), Span(gold, 0, 2, "city")]
    DocBin(docs=[gold]).to_disk(tmp_path / "dev.spacy")
    files = {path: path.read_bytes() for path in (tmp_path / "pipeline").rglob("*") if path.is_file()}
    result, text = run(tmp_path / "pipeline", tmp_path / "dev.spacy")
    assert result.exit_code == 0, result.output
    changed = {path.relative_to(tmp_path / "pipeline").as_posix() for path in files if path.read_bytes() != files[path]}
    assert changed == {"config.cfg", "luke_typer/model.safetensors"}
    assert {path for path in (tmp_path / "pipeline").rglob("*") if path.is_file()} == set(files)
    tuned = spacy.load(tmp_path / "pipeline")
    assert tuned.get_pipe("luke_typer").cfg["threshold"] == tuned.config["components"]["luke_typer"]["threshold"] < 0.98


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "The components with a threshold are ['luke_ner', 'luke_typer', 'luke_relation', 'luke_qa']. Expected"),
        (("--component", "luke_cloze"), "'luke_cloze' has no threshold to tune"),
        (("--component", "typer"), "no LUKE component 'typer'"),
    ],
)
def test_the_component_must_be_clear(saved, arguments, message):
    result, text = run(saved / "pipeline", saved / "dev.spacy", *arguments)
    assert result.exit_code == 1
    assert message in text


def test_no_foreign_folder_is_replaced(saved, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    result, text = run(saved / "pipeline", saved / "dev.spacy", "--component", "luke_qa", "--output", tmp_path)
    assert result.exit_code == 1
    assert "holds no pipeline" in text
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_what_is_no_folder_cannot_be_changed(saved):
    result, text = run("en_core_web_none", saved / "dev.spacy")
    assert result.exit_code == 1
    assert "choose a new one with --output" in text


def test_no_gold(saved, tmp_path):
    DocBin(docs=[spacy.blank("en").make_doc(SENTENCES[0])]).to_disk(tmp_path / "empty.spacy")
    result, text = run(saved / "pipeline", tmp_path / "empty.spacy", "--component", "luke_typer")
    assert result.exit_code == 1
    assert "Nothing was changed." in text
    assert "found none" in text
