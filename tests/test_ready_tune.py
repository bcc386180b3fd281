"""scripts/ready_tune.py: what it asks to be tuned, on which data, and what becomes of components that are not good.

The tuning itself is tests/cli/test_tune.py's.
"""

import runpy
import sys
from pathlib import Path

import pytest
import spacy

from spacy_luke.pipelines.card import LEFT_OUT
from spacy_luke.pipelines.saving import save
from spacy_luke.pipelines.tuning import Tuned
from tests.pipelines import make_pipeline

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "scripts/ready_tune.py"), run_name="loaded")
RATES = "too few of them are right."


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A pipeline whose proposals are tuned higher than is allowed."""
    folder = tmp_path_factory.mktemp("trained")
    nlp = make_pipeline("luke_ner", "luke_typer", "luke_relation")
    nlp.get_pipe("luke_ner").settle(nlp, proposal_threshold=0.3)
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def run(trained, tmp_path, monkeypatch, capsys):
    """Runs it, with a tuning that changes nothing and of one component may fail. RETURNS: what was asked of the tuning,
    what was said, and the new pipeline."""

    def run(*options, fails=""):
        asked = []

        def tune(pipeline, data, *, component, output=None, **settings):
            asked.append((str(pipeline), data.name, component, settings))
            if component == fails:
                raise ValueError(RATES)
            if output is not None:
                save(spacy.load(pipeline), output)
            return Tuned(component, "none_bias", 0.5, 0.0, {"f": 0.75})

        monkeypatch.setitem(SCRIPT["main"].__globals__, "tune_pipeline", tune)
        monkeypatch.setattr(sys, "argv", ["ready_tune.py", str(trained), "corpus", str(tmp_path / "out"), *options])
        SCRIPT["main"]()
        return asked, capsys.readouterr().out, spacy.load(tmp_path / "out")

    return run


def test_what_is_tuned(run, trained, tmp_path):
    asked, said, nlp = run("--precision", "0.9", "--types", "0.7")
    assert asked == [
        (str(trained), "tune.spacy", "luke_ner", {"gold_sentences": True}),
        (str(tmp_path / "out"), "redocred.dev.spacy", "luke_typer", {"precision": 0.7}),
        (str(tmp_path / "out"), "redocred.dev.spacy", "luke_relation", {"precision": 0.9}),
    ]
    assert "luke_ner: none_bias = 0.5" in said
    assert "luke_relation" in nlp.pipe_names
    assert LEFT_OUT not in nlp.meta


@pytest.mark.parametrize(("most", "kept"), [("0.05", 0.05), ("0.5", 0.3)])
def test_proposals_are_lowered_not_raised(run, trained, most, kept):
    _, said, nlp = run("--proposals", most)
    assert nlp.get_pipe("luke_ner").proposal_threshold == kept
    assert nlp.config["components"]["luke_ner"]["proposal_threshold"] == kept
    assert ("proposal_threshold = " in said) == (kept < 0.3)
    assert spacy.load(trained).get_pipe("luke_ner").proposal_threshold == 0.3


@pytest.mark.parametrize("name", ["luke_typer", "luke_relation"])
def test_what_is_not_good_enough(run, name):
    asked, said, nlp = run(fails=name)
    assert len(asked) == 3
    assert {"luke_typer", "luke_relation"} - {*nlp.component_names} == {name}
    assert nlp.meta[LEFT_OUT][name].endswith(RATES)
    assert f"{name} is left out" in said


def test_relations_that_are_not_wanted(run):
    asked, _, nlp = run("--without", "luke_relation,luke_linker")
    assert [component for _, _, component, _ in asked] == ["luke_ner", "luke_typer"]
    assert "luke_relation" not in nlp.component_names
    assert "settings of the workflow" in nlp.meta[LEFT_OUT]["luke_relation"]


def test_what_cannot_be_left_out(run):
    with pytest.raises(
        SystemExit, match=r"--without takes luke_typer, luke_relation and luke_linker, but got \['luke_ner'\]"
    ):
        run("--without", "luke_ner")
