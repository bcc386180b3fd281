"""A misspelt setting is answered with the nearest one, wherever it is given."""

import copy
import math
import pickle
import re

import pytest
import spacy
from confection import ConfigValidationError
from spacy.util import load_model_from_config
from spacy.vocab import Vocab
from thinc.api import Config

from spacy_luke.components.entity_annotator import EntityAnnotator
from spacy_luke.components.factories import settings_of
from spacy_luke.pipelines.conversion import build_pipeline
from tests.tiny import make_checkpoint


def lines_of(error):
    return [line for line in str(error.value).splitlines() if line]


@pytest.mark.parametrize(
    ("factory", "config", "line"),
    [
        ("luke_ner", {"spans_key_": "sc"}, "luke_ner.spans_key_: there is no such setting. Is spans_key meant?"),
        ("luke_ner", {"model": {"atention": "full"}}, "luke_ner.model.atention: there is no such setting. Is attention meant?"),  # noqa: E501
        ("luke_relation", {"treshold": 0.5}, "luke_relation.treshold: there is no such setting. Is threshold meant?"),
        *(("luke_ner", {x: 0.5}, f"luke_ner.{x}: there is no such setting. Is none_bias meant? It is what this component has in the place of threshold.") for x in ("threshold", "treshold")),  # noqa: E501
        ("luke_encoder", {"max_windw": 99}, "luke_encoder.max_windw: there is no such setting. Is max_window meant?"),
    ],
)  # fmt: skip
def test_in_add_pipe(factory, config, line):
    with pytest.raises(ConfigValidationError) as error:
        spacy.blank("en").add_pipe(factory, config=config)
    assert lines_of(error)[1:] == [line]


def test_two_at_once_and_a_wrong_type():
    with pytest.raises(ConfigValidationError) as error:
        spacy.blank("en").add_pipe("luke_ner", config={"overwite": True, "contxt": "x", "batch_size": "many"})
    said = " ".join(lines_of(error))
    assert "Is overwrite meant?" in said
    assert "Is context meant?" in said
    assert "luke_ner.batch_size: " in said


def test_in_a_config_and_on_loading(tmp_path):
    nlp = build_pipeline(make_checkpoint(labels=["NIL", "PER"]))
    nlp.to_disk(tmp_path / "pipeline")
    path = tmp_path / "pipeline" / "config.cfg"
    path.write_text(path.read_text(encoding="utf8").replace("none_bias", "none_bais"), encoding="utf8")
    for load in (spacy.load, lambda folder: load_model_from_config(Config().from_disk(folder / "config.cfg"))):
        with pytest.raises(ConfigValidationError, match=r"none_bais: there is no such setting\. Is none_bias meant"):
            load(tmp_path / "pipeline")


def test_of_a_class():
    with pytest.raises(TypeError, match=r"EntityAnnotator has no setting 'spans_ky'\. Is spans_key meant"):
        EntityAnnotator(Vocab(), spans_ky="sc")


@pytest.mark.parametrize(
    ("factory", "name", "value", "message"),
    [
        ("luke_linker", "treshold", 0.8, "LukeLinker has no setting 'treshold'. Is threshold meant?"),
        ("luke_linker", "threshold", 80, "threshold must be from 0 to 1, but it is 80."),
        ("luke_linker", "threshold", "0.8", "threshold must be from 0 to 1, but it is '0.8'."),
        ("luke_ner", "threshold", 0.8, "Is none_bias meant? It is what this component has in the place of threshold."),
        ("entity_annotator", "spans_ky", "sc", "Is spans_key meant?"),
    ],
)
def test_in_cfg(factory, name, value, message):
    pipe = spacy.blank("en").add_pipe(factory)
    before = dict(pipe.cfg)
    for change in (pipe.cfg.__setitem__, pipe.cfg.setdefault, lambda name, value: pipe.cfg.update({name: value})):
        if name in pipe.cfg and change == pipe.cfg.setdefault:
            continue
        with pytest.raises(ValueError, match=re.escape(message)):
            change(name, value)
    assert pipe.cfg == before


@pytest.mark.parametrize(
    ("factory", "first", "second", "message"),
    [
        (
            "entity_annotator",
            ("annotate_ents", True),
            ("max_candidates", None),
            "overlaps = false and max_candidates = null",
        ),
        (
            "entity_annotator",
            ("overlaps", True),
            ("annotate_ents", True),
            "overlaps = true and max_candidates = 1. Set",
        ),
        ("luke_ner", ("max_span_pieces", 64), ("overlap", 127), "expected 128 or more, but it is 127"),
        (
            "luke_relation",
            ("mention_scores", False),
            ("between", {"born": [["PER"]]}),
            "but for 'born' it has [['PER']]",
        ),
        ("luke_relation", ("multi_label", False), ("mention_scores", True), "needs multi_label = true"),
    ],
)
def test_settings_that_exclude_each_other(factory, first, second, message):
    """As when a component is made; several are changed at once, or none."""
    nlp = spacy.blank("en")
    with pytest.raises(ValueError, match=re.escape(message)):
        nlp.add_pipe(factory, "wrong", config=dict([first, second]))
    pipe = nlp.add_pipe(factory)
    setattr(pipe, *first)
    before = dict(pipe.cfg)
    name, value = second
    for change in (lambda: setattr(pipe, name, value), lambda: pipe.cfg.update({**before, name: value})):
        with pytest.raises(ValueError, match=re.escape(message)):
            change()
        assert pipe.cfg == before


def test_settings_that_change_together():
    pipe = spacy.blank("en").add_pipe("entity_annotator", config={"annotate_ents": True})
    pipe.cfg.update(max_candidates=None, annotate_ents=False)
    assert (pipe.max_candidates, pipe.annotate_ents) == (None, False)
    pipe.cfg.update(annotate_ents=True, max_candidates=1)
    assert (pipe.max_candidates, pipe.annotate_ents) == (1, True)


FACTORIES = [
    *("luke_encoder", "luke_ner", "luke_typer", "luke_relation", "luke_qa", "luke_cloze", "luke_linker"),
    *("ernie_encoder", "ernie_typer", "ernie_relation", "entity_annotator", "soft_textcat"),
]


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, 10**400, "0.5", True], ids=["nan", "inf", "-inf", "huge", "text", "true"]
)
def test_what_is_no_finite_number(factory, value):
    """Of NaN nothing is greater, so that a bias or threshold of it would find nothing in silence."""
    pipe = spacy.blank("en").add_pipe(factory)
    before = dict(pipe.cfg)
    for name, setting in settings_of(type(pipe)).items():
        if setting.is_float:
            with pytest.raises(
                ValueError, match=rf"{name} must be (a finite number|a probability|from .* to ).*, but it is"
            ):
                pipe.cfg[name] = value
    assert pipe.cfg == before


OTHERS = {  # values of other types
    bool: ["false", 1, 0.5],
    int: ["8", 1.5, True],
    str: [5, True, ["a"]],
    list: ["PERSON", 5, None],
    dict: ["P17", ["P17"]],
}


@pytest.mark.parametrize("factory", [x for x in FACTORIES if x != "soft_textcat"])  # which is spaCy's
def test_values_of_another_type(factory):
    """Else "false" is true, "PERSON" a list of its letters, and 2.5 an error at the next prediction."""
    pipe = spacy.blank("en").add_pipe(factory)
    before, asked = dict(pipe.cfg), 0
    for name, setting in settings_of(type(pipe)).items():
        for value in (x for kind in setting.kinds for x in OTHERS.get(kind, []) if type(x) not in setting.kinds):
            asked += 1
            with pytest.raises(ValueError, match=f"{name} must be .*, but it is"):
                pipe.cfg[name] = value
    assert asked
    assert pipe.cfg == before


def test_cfg_is_copied_and_pickled_with_its_settings():
    pipe = spacy.blank("en").add_pipe("luke_linker")
    pipe.cfg |= {"threshold": 1}
    for cfg in (copy.deepcopy(pipe.cfg), pickle.loads(pickle.dumps(pipe.cfg))):
        assert cfg == pipe.cfg
        assert isinstance(cfg["threshold"], float)
        cfg["threshold"] = 0.5
        with pytest.raises(ValueError, match="Is threshold meant"):
            cfg["treshold"] = 0.5
    assert pipe.cfg["threshold"] == 1.0


def test_what_others_say_is_left_as_it_is():
    with pytest.raises(ConfigValidationError, match="unexpected argument: 'thresold'"):
        spacy.blank("en").add_pipe("spancat", config={"thresold": 0.5})
