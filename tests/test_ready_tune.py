"""scripts/ready_tune.py: what it asks to be tuned, on which data, and what becomes of components that are not good.

The tuning itself is tests/cli/test_tune.py's.
"""

import random
import runpy
import sys
from collections import Counter
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Span

from spacy_luke.annotations import ENTITIES, Scope, set_scopes
from spacy_luke.components.calibration import fit_calibration, log_odds
from spacy_luke.pipelines.card import LEFT_OUT
from spacy_luke.pipelines.saving import save
from spacy_luke.pipelines.tuning import Tuned
from spacy_luke.readers.docbin import write_docbin
from tests.pipelines import make_pipeline

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "scripts/ready_tune.py"), run_name="loaded")
NAMES = "Ada Bo Cy Didi Eva Flo Gil Hal".split()
RATES = "too few of them are right."


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A pipeline whose proposals and bias are tuned higher than is allowed."""
    folder = tmp_path_factory.mktemp("trained")
    nlp = make_pipeline("luke_ner", "luke_typer", "luke_relation")
    nlp.get_pipe("luke_ner").settle(nlp, proposal_threshold=0.3, none_bias=0.3)
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
        monkeypatch.setitem(
            SCRIPT["main"].__globals__, "calibrate_entities", lambda *paths: asked.append(paths[1].name)
        )
        monkeypatch.setattr(sys, "argv", ["ready_tune.py", str(trained), "corpus", str(tmp_path / "out"), *options])
        SCRIPT["main"]()
        return asked, capsys.readouterr().out, spacy.load(tmp_path / "out")

    return run


def test_what_is_tuned(run, trained, tmp_path):
    asked, said, nlp = run("--types", "0.7")
    assert asked == [
        (str(trained), "tune.spacy", "luke_ner", {"gold_sentences": True}),
        "calibrate.spacy",
        (str(tmp_path / "out"), "redocred.dev.spacy", "luke_typer", {"precision": 0.7}),
    ]
    assert "luke_ner: none_bias = 0.5" in said
    assert "luke_relation" in nlp.pipe_names
    assert LEFT_OUT not in nlp.meta


@pytest.mark.parametrize(("most", "kept"), [(0.05, 0.05), (0.4, 0.3)])
@pytest.mark.parametrize(("option", "name"), [("--proposals", "proposal_threshold"), ("--bias", "none_bias")])
def test_settings_are_lowered_not_raised(run, trained, option, name, most, kept):
    _, said, nlp = run(option, str(most))
    assert nlp.get_pipe("luke_ner").cfg[name] == kept
    assert nlp.config["components"]["luke_ner"][name] == kept
    assert (f"{name} = {most:g}" in said) == (kept < 0.3)
    assert spacy.load(trained).get_pipe("luke_ner").cfg[name] == 0.3


def test_types_that_are_not_good_enough(run):
    asked, said, nlp = run(fails="luke_typer")
    assert len(asked) == 3
    assert {"luke_typer", "luke_relation"} & {*nlp.component_names} == {"luke_relation"}
    assert nlp.meta[LEFT_OUT]["luke_typer"].endswith(RATES)
    assert "luke_typer is left out" in said


def test_types_that_are_not_wanted(run):
    asked, _, nlp = run("--without", "luke_typer,luke_linker")
    assert len(asked) == 2
    assert "luke_typer" not in nlp.component_names
    assert "settings of the workflow" in nlp.meta[LEFT_OUT]["luke_typer"]


def test_what_cannot_be_left_out(run):
    known = r"--without takes some of \['luke_linker', 'luke_relation', 'luke_typer'\], but got \['luke_ner'\]"
    with pytest.raises(SystemExit, match=known):
        run("--without", "luke_ner")


@pytest.mark.slow
def test_scores_are_calibrated_halfway_to_texts(trained, tmp_path):
    nlp = spacy.load(trained)
    nlp.get_pipe("luke_ner").settle(nlp, none_bias=-5.0, proposal_threshold=0.0, temperature=2.0, shift=-0.5)
    save(nlp, tmp_path / "out")
    texts = [
        f"{name} met {other} in {place} ." for name in NAMES for other in NAMES for place in ("Bonn", "Rome", "Oslo")
    ]
    docs = [nlp.make_doc(text) for text in texts]
    found = list(nlp.pipe(doc.copy() for doc in docs))
    draw = random.Random(0)
    label = Counter(x.label_ for doc in found for x in doc.ents).most_common()[0][0]
    for doc, seen in zip(docs, found, strict=True):  # a label that is not annotated is neither right nor wrong
        kept = [x for x in seen.ents if x.label_ == label and draw.random() < x._.luke_score**2]
        doc.set_ents([Span(doc, x.start, x.end, label=x.label) for x in kept])
        set_scopes(doc, {ENTITIES: Scope(annotates=frozenset({label}))})
    judged = sum(x.label_ == label for doc in found for x in doc.ents)
    assert 20 < judged <= sum(len(doc.ents) for doc in found)
    write_docbin(docs, tmp_path / "calibrate.spacy")
    SCRIPT["calibrate_entities"](tmp_path / "out", tmp_path / "calibrate.spacy")
    after = list(spacy.load(tmp_path / "out").pipe(nlp.make_doc(text) for text in texts))
    temperature, shift = fit_calibration(*judge(found, docs, label))
    scores, _ = judge(found, docs, label)
    halfway = (log_odds(scores) + log_odds(scores) / temperature + shift) / 2
    assert log_odds(judge(after, docs, label)[0]) == pytest.approx(halfway, abs=1e-3)
    assert abs(temperature - 1) > 0.1


def judge(found, docs, label):
    """Scores of what is found with a label, and whether it is gold."""
    spans = [(x, gold) for doc, gold in zip(found, docs, strict=True) for x in doc.ents if x.label_ == label]
    return [x._.luke_score for x, _ in spans], [
        (x.start, x.end) in {(y.start, y.end) for y in gold.ents} for x, gold in spans
    ]
