"""`--code`: pipelines with components of one's own are read by every command that reads pipelines."""

import inspect
import json
import shutil
from importlib import import_module

import pytest
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

from spacy_luke import cli
from spacy_luke.cli import serve
from spacy_luke.readers.docbin import write_docbin
from tests.pipelines import annotate, as_gold, make_pipeline
from tests.tiny import SENTENCES

HOOK = """
from spacy.language import Language

@Language.component("{factory}")
def strip_dates(doc):
    doc.user_data["stripped"] = True
    return doc
"""
DONE = {  # what follows the command and its pipeline, and what is said in the end
    "info": ("", "strip_dates"),
    "export": ("{}/exported --component luke_ner", "Saved to"),
    "evaluate": ("{}/gold.spacy", "luke_ner"),
    "tune": ("{}/gold.spacy --force", "saved in"),
    "quantize": ("{}/int8 --data {}/gold.spacy --max-loss 100", "Saved to"),
    "dequantize": ("{}/float", "No encoder of the pipeline is int8"),
    "card": ("--about {}/about.json", "Saved the card"),
    "annotate": ("{}/text.txt", "text.txt: 10 words"),
    "apply": ("{}/text.txt {}/applied --workers 0 --input-format lines", "1 document"),
    "serve": ("", "answers at"),
}
ABOUT = {"name": "tiny", "version": "1.0", "description": "", "license": "MIT", "sources": []}


def run(*words):
    result = CliRunner().invoke(spacy_app, ["luke", *map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A pipeline, gold of it, a text, and what a card says."""
    folder = tmp_path_factory.mktemp("code")
    nlp = make_pipeline("luke_ner")
    write_docbin([as_gold(doc) for doc in annotate(nlp)], folder / "gold.spacy")
    nlp.to_disk(folder / "pipeline")
    (folder / "text.txt").write_text(SENTENCES[0], encoding="utf8")
    (folder / "about.json").write_text(json.dumps(ABOUT), encoding="utf8")
    return folder


@pytest.fixture
def own(saved, tmp_path):
    """A folder with a pipeline that has a component of its own, and hook.py, which no test before has run."""
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    factory = f"strip_dates_{tmp_path.name}"
    (tmp_path / "hook.py").write_text(HOOK.format(factory=factory), encoding="utf8")
    config = tmp_path / "pipeline/config.cfg"
    text = config.read_text(encoding="utf8").replace("pipeline = [", 'pipeline = ["strip_dates",')
    config.write_text(f'{text}\n[components.strip_dates]\nfactory = "{factory}"\n', encoding="utf8")
    return tmp_path


@pytest.mark.parametrize("command", DONE)
def test_own_components(own, monkeypatch, command):
    monkeypatch.setattr(serve, "make_app", lambda annotator, limits: None)
    monkeypatch.setattr(serve, "run_app", lambda app, listening, **settings: listening())
    rest, said = DONE[command]
    words = [command, own / "pipeline", *rest.replace("{}", str(own)).split()]
    without = run(*words)
    assert "[E002]" in without
    assert "give the Python file that registers it: --code" in without
    text = run(*words, "--code", own / "hook.py")
    assert "[E002]" not in text
    assert said in text, text


def test_every_command_of_a_pipeline_has_it():
    functions = {
        name: getattr(import_module(f"spacy_luke.cli.{module}"), f"{module}_cli")
        for name, module in ((name, name.replace("-", "_")) for name in cli.COMMANDS)
    }
    taking = {name: inspect.signature(function).parameters for name, function in functions.items()}
    assert {name for name, settings in taking.items() if "pipeline" in settings} == set(DONE)
    given = {name for name, settings in taking.items() if "code" in settings}
    assert given == {*DONE, "train", "pretrain", "pretrain-ernie", "distill"}


def test_code_that_fails(own):
    (own / "hook.py").write_text("import nowhere", encoding="utf8")
    text = run("info", own / "pipeline", "--code", own / "hook.py")
    assert "hook.py: the Python file of --code ends in ModuleNotFoundError: No module named 'nowhere'" in text
