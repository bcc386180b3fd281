"""scripts/ready_relate.py and configs/ready_relation.cfg: the relations of a finished pipeline learn once more."""

import random
import runpy
import sys
from pathlib import Path

import pytest
import spacy
import torch
from spacy.cli.train import train
from spacy.util import load_config

from spacy_luke.annotations import register_extensions
from spacy_luke.pipelines.card import LEFT_OUT
from spacy_luke.pipelines.tuning import Tuned
from spacy_luke.readers.docbin import write_docbin
from tests.pipelines import make_pipeline
from tests.ready_pipeline import unpack_ready

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import ready_encounters  # noqa: E402

CONFIG = ROOT / "configs/ready_relation.cfg"
TEXT = "Ada Lovelace met Charles Babbage in London."
NAMES = {
    "PER": [[first, last] for first in ("Ada", "Bo", "Cy") for last in ("Rossi", "Wang", "Eze")],
    "LOC": [["Ulm"], ["Lund"], ["Oran"], ["Cali"], ["Suva"]],
    "ORG": [["Globex"], ["Initech"], ["Umbrella"]],
}


def state(nlp, name):
    """Of all parameters of a component, by their places."""
    shims = [shim for node in nlp.get_pipe(name).model.walk() for shim in node.shims]
    return {f"{i}/{key}": x for i, shim in enumerate(shims) for key, x in shim._model.state_dict().items()}


@pytest.mark.slow
def test_relations_alone_learn(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(unpack_ready(tmp_path / "site")))
    register_extensions()
    nlp, draw = spacy.blank("en"), random.Random(0)
    frames = ready_encounters.read_frames()["facts"]
    docs = [ready_encounters.make_sentence(nlp, draw.choice(frames), NAMES, draw) for _ in range(20)]
    config = load_config(CONFIG, overrides={"paths.data": str(tmp_path)}, interpolate=True)
    for source in (x for corpus in ("train", "dev") for x in config["corpora"][corpus]["sources"].values()):
        write_docbin(docs, source["path"])
    small = {"paths.data": str(tmp_path), "training.max_steps": 2, "training.eval_frequency": 2}
    train(CONFIG, tmp_path / "out", overrides=small)
    assert "Saved pipeline" in capsys.readouterr().out
    before, after = spacy.load("en_luke_sm"), spacy.load(tmp_path / "out/model-last")
    for name in ("luke_encoder", "luke_ner"):
        old, new = state(before, name), state(after, name)
        assert old.keys() == new.keys()
        assert all(torch.equal(old[key], new[key]) for key in old)
    (old, new) = (before.get_pipe("luke_relation"), after.get_pipe("luke_relation"))
    assert old.labels == new.labels
    one, other = ({k: v for k, v in state(x, "luke_relation").items() if "classifier" in k} for x in (before, after))
    assert one.keys() == other.keys()
    assert not any(torch.equal(one[key], other[key]) for key in one)
    assert [x.text for x in after(TEXT).ents] == [x.text for x in before(TEXT).ents]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A pipeline, and what it became when its relations learned once more."""
    folder = tmp_path_factory.mktemp("relate")
    nlp = make_pipeline("luke_ner", "luke_relation")
    nlp.to_disk(folder / "linked")
    with torch.no_grad():
        for shim in (shim for node in nlp.get_pipe("luke_relation").model.walk() for shim in node.shims):
            if hasattr(shim._model, "classifier"):
                shim._model.classifier.bias += 1.0
    nlp.to_disk(folder / "trained")
    return folder


@pytest.fixture
def run(folders, tmp_path, monkeypatch):
    """RETURNS: what was asked of the tuning, and the new pipeline. fails: no threshold is good enough."""
    script = runpy.run_path(str(ROOT / "scripts/ready_relate.py"), run_name="loaded")

    def run(*options, fails=False):
        asked = []

        def tune(pipeline, data, *, component, precision):
            asked.append((component, data.name, precision))
            if fails:
                raise ValueError("too few of them are right.")
            return Tuned(component, "threshold", 0.5, 0.0, {"f": 0.75})

        monkeypatch.setitem(script["tune_or_leave_out"].__globals__, "tune_pipeline", tune)
        paths = [folders / "linked", folders / "trained", "corpus", tmp_path / "out"]
        monkeypatch.setattr(sys, "argv", ["ready_relate.py", *map(str, paths), "--precision", "0.8", *options])
        script["main"]()
        return asked, spacy.load(tmp_path / "out")

    return run


def test_the_head_is_the_trained_one(run, folders):
    asked, nlp = run("--precision", "0.9")
    assert asked == [("luke_relation", "redocred.dev.spacy", 0.9)]
    assert nlp.pipe_names == spacy.load(folders / "linked").pipe_names
    linked, trained, own = (
        {k: v for k, v in state(x, "luke_relation").items() if "classifier.bias" in k}
        for x in (spacy.load(folders / "linked"), spacy.load(folders / "trained"), nlp)
    )
    assert own.keys() == linked.keys()
    assert all(torch.equal(own[key], trained[key]) and not torch.equal(own[key], linked[key]) for key in own)


def test_relations_that_are_not_good_enough_or_not_wanted(run):
    _, nlp = run(fails=True)
    assert "luke_relation" not in nlp.component_names
    assert nlp.meta[LEFT_OUT]["luke_relation"].endswith("too few of them are right.")


def test_relations_that_are_not_wanted(run):
    asked, nlp = run("--without", "luke_relation")
    assert asked == []
    assert "settings of the workflow" in nlp.meta[LEFT_OUT]["luke_relation"]
