"""Mistakes at the command line: every command ends in one message, which names what is wrong; --traceback shows the rest."""

import re
from pathlib import Path

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from tiny import make_checkpoint
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke import cli
from spacy_luke.checkpoint.checkpoint import write_huggingface
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.jsonl import JsonlCorpus

ROOT = Path(__file__).parents[1]
MOST_LINES = 15


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the commands below take: data, weights, and files that are not what they should be."""
    folder = tmp_path_factory.mktemp("errors")
    sample = JsonlCorpus(ROOT / "assets/sample/dev.jsonl", overlaps="outermost")
    write_docbin(list(sample.docs(spacy.blank("en")))[:3], folder / "data.spacy")
    write_huggingface(make_checkpoint(max_positions=300), folder / "tiny")
    return folder


def run(folder, line, **named):
    """The command of a line, in which {} is the folder. RETURNS: exit code and what it printed, in one line of text."""
    words = [word.replace("{}", str(folder)) for word in line.split()]
    result = CliRunner().invoke(spacy_app, ["luke", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    return result.exit_code, result.output


TRAIN = f"train {ROOT}/configs/ner_small.cfg -o {{}}/out --paths.train {{}}/data.spacy --paths.dev {{}}/data.spacy"
TRAIN += " --paths.weights {}/tiny --components.luke_ner.max_span_pieces null"
MISTAKES = {
    # a line, and what its message says
    f"{TRAIN} --paths.train {{}}/none.spacy": "none.spacy",
    f"{TRAIN} --paths.trian x": "paths.trian: there is no such setting in [paths]. Is train meant?",
    f"{TRAIN} --tranig.seed 1": "no section [tranig]. Is training meant?",
    f"{TRAIN} --training.max_step 3": "training.max_step: there is no such setting. Is max_steps meant?",
    f"{TRAIN} --training.batcher.sizes 3": "batcher.sizes: there is no such setting. Is size meant?",
    f"{TRAIN} --components.luke_ner.max_span_word 3": "luke_ner.max_span_word: there is no such setting. Is max_span_words",
    f"{TRAIN} --components.luke_ner.model.attentoin full": "attentoin: there is no such setting. Is attention meant?",
    f"{TRAIN} --components.luke_ner.model.attention half": "attention must be one of ('full', 'one_way'), but it is 'half'",
    f"{TRAIN} --initialize.components.luke_ner.weightss x": "luke_ner.weightss: there is no such setting. Is weights meant?",
    f"{TRAIN} --training.dropout high": "dropout: Input should be a valid number, but it is 'high'",
    f"{TRAIN} --training.max_steps x": "max_steps: Input should be a valid integer, but it is 'x'",
    f"{TRAIN} --paths.weights {{}}/nowhere": "nowhere",
    f"{TRAIN} --paths.weights {{}}/data.spacy": "data.spacy",
    f"{TRAIN} --resume": "nothing to resume in",
    f"{TRAIN} --foo": "No such option '--foo'",
    f"{TRAIN} foo": "Invalid config override 'foo'",
    f"{TRAIN} --code {{}}/none.py": "none.py",
}


@pytest.mark.parametrize("line", MISTAKES, ids=lambda line: line.replace(TRAIN, "train"))
def test_a_mistake_ends_in_one_message(folder, line):
    code, text = run(folder, line)
    assert code in (1, 2), text
    assert "Traceback" not in text
    assert len(text.splitlines()) <= MOST_LINES, text
    assert " ".join(MISTAKES[line].split()) in " ".join(text.split()), text


def test_traceback_on_demand(folder):
    code, text = run(folder, f"{TRAIN} --paths.train {{}}/none.spacy --traceback")
    assert code == 1
    assert "Traceback (most recent call last)" in text
    assert "none.spacy: No such file or directory (FileNotFoundError)" in " ".join(text.split())


@pytest.mark.parametrize("name", [name for name, _, _ in cli.COMMANDS])
def test_every_command_has_traceback(name):
    result = CliRunner().invoke(spacy_app, ["luke", name, "--help"])
    assert "--traceback" in re.sub(r"\x1b\[[0-9;]*m", "", result.output)


def test_a_fault_of_ours_asks_for_a_report(folder, monkeypatch):
    def fail(*args, **kwargs):
        raise KeyError("a bug")

    monkeypatch.setattr("spacy_luke.cli.train.init_nlp", fail)
    code, text = run(folder, TRAIN)
    assert code == 1
    assert "KeyError: 'a bug'" in text
    assert "report it, with what --traceback shows" in " ".join(text.split())
    assert "Traceback (most" not in text
