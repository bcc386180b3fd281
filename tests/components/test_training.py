"""Training from a config: `spacy train`, and `spacy luke train`, which goes on after a kill as if nothing had been."""

import io
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest
import spacy
import torch
from spacy.cli._util import app as spacy_app
from spacy.cli.debug_config import debug_config
from spacy.cli.train import train as spacy_train
from spacy.tokens import DocBin, Span
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.components import storage
from spacy_luke.training import loop
from spacy_luke.training.dev_gold import faults_of_dev
from tests.pipelines import make_gold, make_pipeline
from tests.tiny import SENTENCES
from tests.training_config import quiet, start

PARTS = ["model-best", "model-last", "resume"]


def files(folder):
    """What counts in a training's output. Optimizer state and vocabulary are compared by what they lead to."""
    names = ("luke_ner/model.safetensors", "meta.json", "config.cfg")
    return {
        f"{part}/{name}": (folder / part / name).read_bytes() for part in ("model-best", "model-last") for name in names
    }


@pytest.fixture(scope="session")
def uninterrupted(config_path, tmp_path_factory):
    output = tmp_path_factory.mktemp("uninterrupted")
    quiet(start(config_path), output)
    assert sorted(path.name for path in output.iterdir()) == PARTS
    return files(output)


# ---- spaCy's own commands


def test_config_is_valid_and_complete(config_path, capsys):
    debug_config(config_path)
    assert "Config is valid" in capsys.readouterr().out
    nlp = start(config_path)
    filled = nlp.config["components"]["luke_ner"]
    assert filled["context"] == "document"
    assert filled["model"]["encoder"]["predict_precision"] == "float32"
    assert nlp.get_pipe("luke_ner").labels == ("LOC", "ORG", "PER")


def test_wrong_setting_in_a_config(config_path, tmp_path, capsys):
    text = config_path.read_text().replace("overlap = 32", "overlap = 32\nwindow = 3")
    (tmp_path / "config.cfg").write_text(text)
    with pytest.raises(SystemExit):
        debug_config(tmp_path / "config.cfg")
    assert "window" in capsys.readouterr().out


@pytest.mark.parametrize("optimizer", ["spacy-luke.AdamW.v1", "Adam.v1"])
def test_spacy_train(config_path, tmp_path, capsys, optimizer):
    config = load_config(config_path)
    config["training"].update(optimizer={"@optimizers": optimizer}, max_steps=2, eval_frequency=1)
    config.to_disk(tmp_path / "config.cfg")
    spacy_train(tmp_path / "config.cfg", tmp_path / "out")
    capsys.readouterr()
    nlp = spacy.load(tmp_path / "out/model-last")
    assert nlp.get_pipe("luke_ner").labels == ("LOC", "ORG", "PER")
    assert set(nlp.meta["performance"]) >= {"ents_f", "ents_p", "ents_r", "ents_per_type", "luke_ner_loss"}
    assert nlp("Ada Lovelace") is not None


def test_scores_that_were_not_computed_are_not_saved(config_path, tmp_path):
    nlp = start(config_path, training__max_steps=1)
    nlp.config["training"]["score_weights"]["sents_f"] = None  # the dev data have no sentences
    quiet(nlp, tmp_path)
    performance = spacy.load(tmp_path / "model-last").meta["performance"]
    assert {"ents_f", "ents_per_type"} <= set(performance)
    assert "sents_f" not in performance


def test_labels_from_a_file(config_path, tmp_path):
    (tmp_path / "labels.json").write_text('["PER", "MISC", "LOC", "ORG"]')
    config = load_config(config_path)
    config["initialize"]["components"]["luke_ner"]["labels"] = {
        "@readers": "spacy.read_labels.v1",
        "path": str(tmp_path / "labels.json"),
    }
    assert init_nlp(config).get_pipe("luke_ner").labels == ("PER", "MISC", "LOC", "ORG")


def test_frozen_component(config_path, tmp_path):
    nlp = start(config_path, training__max_steps=2)
    before = nlp.get_pipe("luke_ner").to_bytes()
    nlp.config["training"]["frozen_components"] = ["luke_ner"]
    quiet(nlp, tmp_path)
    assert nlp.get_pipe("luke_ner").to_bytes() == before


def test_a_saved_pipeline_needs_no_checkpoint(config_path, tmp_path):
    nlp = start(config_path, training__max_steps=1)
    nlp.config["initialize"]["components"]["luke_ner"]["weights"]["path"] = "/nowhere"
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path)("Ada").text == "Ada"


# ---- exact resume


def test_equal_runs_are_equal(config_path, uninterrupted, tmp_path):
    quiet(start(config_path), tmp_path)
    assert files(tmp_path) == uninterrupted


@pytest.mark.parametrize("step", [4, 6, 9])
def test_resume_after_an_exception(config_path, uninterrupted, tmp_path, monkeypatch, step):
    calls = []

    def fail(*args, **kwargs):
        calls.append(1)
        if len(calls) > step:
            raise RuntimeError("stop")
        return update(*args, **kwargs)

    update = loop.update
    with monkeypatch.context() as patch:
        patch.setattr(loop, "update", fail)
        with pytest.raises(RuntimeError, match="stop"):
            quiet(start(config_path), tmp_path)
    torch.rand(7)
    random.random()
    quiet(start(config_path), tmp_path, resume=True)
    assert files(tmp_path) == uninterrupted


def test_resume_of_a_stream(config_path, tmp_path):
    """max_epochs = -1: the corpus is read as it is needed, and its augmenter draws in between."""
    quiet(start(config_path, training__max_epochs=-1), tmp_path / "whole")
    quiet(start(config_path, training__max_epochs=-1, training__max_steps=3), tmp_path / "parts")
    quiet(start(config_path, training__max_epochs=-1), tmp_path / "parts", resume=True)
    weights = "model-last/luke_ner/model.safetensors"
    assert files(tmp_path / "parts")[weights] == files(tmp_path / "whole")[weights]


def test_resume_of_a_finished_run_changes_nothing(config_path, uninterrupted, tmp_path):
    quiet(start(config_path), tmp_path)
    quiet(start(config_path), tmp_path, resume=True)
    assert files(tmp_path) == uninterrupted


KILL = """
    import os, signal
    import safetensors.torch
    from spacy_luke.training import loop
    from spacy_luke.components import storage

    def killed_at(number, function, before=lambda *args: None):
        def call(*args, **kwargs):
            nonlocal number
            number -= 1
            if number < 0:
                before(*args)
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)
        return call

    def half(tensors, path, metadata):
        with open(path, "wb") as file:
            file.write(safetensors.torch.save(tensors, metadata)[:5000])

    if {saves} is None:
        loop.update = killed_at({updates}, loop.update)
    else:
        storage.save_file = killed_at({saves}, storage.save_file, before=half)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("during", ["update", "save"])
def test_resume_after_a_kill(config_path, uninterrupted, tmp_path, during):
    """At a random step, and half-way through writing the weights; then again by the command."""
    draw = random.Random()
    numbers = {"update": (draw.randint(1, 9), None), "save": (None, draw.randint(3, 8))}[during]
    (tmp_path / "kill.py").write_text(textwrap.dedent(KILL.format(updates=numbers[0], saves=numbers[1])))
    arguments = ["luke", "train", str(config_path), "-o", str(tmp_path / "out")]
    command = [sys.executable, "-m", "spacy", *arguments, "--code", str(tmp_path / "kill.py")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment, check=False)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    for part in ("model-best", "model-last"):
        spacy.load(tmp_path / "out" / part)  # whole, whenever the kill came
    result = CliRunner().invoke(spacy_app, [*arguments, "--resume"])
    assert result.exit_code == 0, result.output
    assert files(tmp_path / "out") == uninterrupted, numbers
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == PARTS  # nothing half written is left


@pytest.mark.slow
def test_resume_after_a_kill_between_two_renames(config_path, uninterrupted, tmp_path):
    quiet(start(config_path), tmp_path)
    for part in PARTS:
        (tmp_path / part).rename(tmp_path / f".{part}.old")
    quiet(start(config_path), tmp_path, resume=True)
    assert files(tmp_path) == uninterrupted


def test_faults_of_the_dev_data_are_said(config_path, tmp_path):
    """Scores cannot tell of labels that only the dev data have, nor of what these have not."""
    paths = load_config(config_path)["paths"]
    docs = list(DocBin().from_disk(paths["train"]).get_docs(spacy.blank("en").vocab))
    for name, label in (("other", "CITY"), ("none", None)):
        for doc in docs:
            doc.set_ents([Span(doc, x.start, x.end, label=label) for x in doc.ents] if label else [])
        DocBin(docs=docs).to_disk(tmp_path / f"{name}.spacy")
        overrides = {"paths.dev": str(tmp_path / f"{name}.spacy"), "training.max_steps": 1}
        out = io.StringIO()
        loop.train(init_nlp(load_config(config_path, overrides=overrides)), tmp_path / name, stdout=out)
        told = " ".join(out.getvalue().split())
        assert ("The dev data have CITY (" in told) == (name == "other")
        assert ("The dev data have no entities in doc.ents for 'luke_ner'" in told) == (name == "none")


def test_faults_of_dev_data_for_types_and_relations():
    nlp = make_pipeline("luke_typer", "luke_relation")
    examples = [Example(nlp.make_doc(text), make_gold(nlp, text)) for text in SENTENCES[:2]]
    assert list(faults_of_dev(nlp, examples, [], trained=())) == []
    for example in examples:
        doc = example.reference
        doc.spans["luke_types"] = [Span(doc, x.start, x.end, x.label_.upper()) for x in doc.spans["luke_types"]]
        doc._.luke_relations = None
    types, relations = faults_of_dev(nlp, examples, [], trained=())
    assert "have CITY (2), PERSON (2), PLACE (2), which 'luke_typer' does not learn" in types
    assert "for 'luke_relation': no score will tell how good it is" in relations
    assert list(faults_of_dev(nlp, examples, ["luke_typer", "luke_relation"], trained=())) == []


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ({}, "The dev data have CITY (2), PERSON (2), PLACE (2), which 'luke_typer' does not learn"),
        ({"labels": {"PERSON": ["person", "city"], "*": None}}, None),
        ({"labels": {"CITY": "town"}, "annotates": ["town", "PERSON"]}, "have CITY (2), PERSON (2), which"),
        ({"annotates": []}, "no spans of doc.spans['luke_types'] for 'luke_typer': no score"),
    ],
)
def test_faults_of_dev_data_are_told_by_what_its_labels_mean(scope, said):
    """As the scores are: labels of other data sets, and labels that are no gold, are no faults."""
    nlp = make_pipeline("luke_typer", "luke_relation")
    examples = [Example(nlp.make_doc(text), make_gold(nlp, text)) for text in SENTENCES[:2]]
    for doc in [example.reference for example in examples]:
        doc.spans["luke_types"] = [Span(doc, x.start, x.end, x.label_.upper()) for x in doc.spans["luke_types"]]
        doc._.luke_scope = {"types": scope}
    found = list(faults_of_dev(nlp, examples, [], trained=()))
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


@pytest.mark.parametrize("joined", [None, 0.0, 1.0])
@pytest.mark.parametrize("shared", [False, True])
def test_dev_texts_that_are_trained_on_are_said(config_path, tmp_path, shared, joined):
    """Those of the file, also where this package's corpus (joined: not None) joins and cuts documents."""
    nlp = spacy.blank("en")
    doc = nlp("Clara met Mozart in Vienna .")
    doc.ents = [Span(doc, 0, 1, "PER"), Span(doc, 4, 5, "LOC")]
    DocBin(docs=[doc]).to_disk(tmp_path / "new.spacy")
    config = load_config(config_path, overrides={"training.max_steps": 1})
    train = config["paths"]["train"]
    config["paths"]["dev"] = train if shared else str(tmp_path / "new.spacy")
    if joined is not None:
        lengths = {"@misc": "spacy-luke.mixed_lengths.v1", "sentences": 0.0, "joined": joined}
        config["corpora"]["train"] = {"@readers": "spacy-luke.GoldCorpus.v1", "path": train, "lengths": lengths}
    out = io.StringIO()
    loop.train(init_nlp(config), tmp_path / "out", stdout=out)
    told, n = " ".join(out.getvalue().split()), len(list(DocBin().from_disk(train).get_docs(nlp.vocab)))
    assert ("dev texts are training texts, too" in told) == shared
    if joined is not None:
        assert (f"{n} of the {n} dev texts are training texts, too" in told) == shared
        assert (f" texts made of {n} documents" if joined else f", {n} documents,") in told


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [("eval_frequency", 0, 1), ("accumulate_gradient", 0, 1), ("max_steps", -2, 0), ("patience", -1, 0)],
)
def test_numbers_of_a_training(config_path, tmp_path, name, value, least):
    config = load_config(config_path, overrides={f"training.{name}": value})
    with pytest.raises(ValueError, match=rf"\[training\] {name} must be {least} or more, but it is {value}"):
        loop.train(init_nlp(config), tmp_path / "out")


def test_where_there_is_nothing_to_resume(config_path, tmp_path):
    """So that a job that a cluster starts again, or for the first time, is one command."""
    log = io.StringIO()
    loop.train(start(config_path), tmp_path / "new", resume=True, stdout=log, stderr=io.StringIO())
    assert f"Begins anew, as {tmp_path / 'new'} has nothing to resume" in " ".join(log.getvalue().split())
    shutil.rmtree(tmp_path / "new" / "resume")
    with pytest.raises(ValueError, match=r"nothing to resume in .*resume: expected state\.pt.*Give --overwrite"):
        quiet(start(config_path), tmp_path / "new", resume=True)


def test_other_optimizers_cannot_be_resumed(config_path, tmp_path):
    nlp = start(config_path)
    nlp.config["training"]["optimizer"] = {"@optimizers": "Adam.v1"}
    with pytest.raises(ValueError, match=r"Exact resume needs .*spacy-luke\.AdamW\.v1.*has \"Adam\.v1"):
        quiet(nlp, tmp_path)


def test_full_disk_during_training_leaves_the_old_output(config_path, uninterrupted, tmp_path, monkeypatch):
    quiet(start(config_path), tmp_path)

    def fail(tensors, path, metadata):
        path.write_bytes(storage.save(tensors, metadata)[:5000])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "save_file", fail)
        with pytest.raises(OSError, match="No space left"):
            quiet(start(config_path, training__seed=5), tmp_path, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == PARTS
    assert files(tmp_path) == uninterrupted
