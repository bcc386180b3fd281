"""`cfg["labels"]`: other names for what a component has learned, as many as there are, and nothing else."""

import copy
import pickle

import pytest
import spacy

from tests.components.known import BOTH, make_vectors
from tests.components.known import make as make_ernie_pipeline
from tests.pipelines import annotate, make_pipeline

LABELLED = ("luke_ner", "luke_typer", "luke_relation", "ernie_typer", "ernie_relation")


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory):
    ernie, _ = make_ernie_pipeline(BOTH, make_vectors(tmp_path_factory.mktemp("ernie")))
    return {"luke": make_pipeline(*LABELLED[:3], luke_relation={"none": "no"}), "ernie": ernie}


@pytest.mark.parametrize("name", LABELLED)
@pytest.mark.parametrize("how", ["itself", "copy", "pickle"])
def test_what_does_not_fit_is_refused(pipelines, name, how):
    copied = {"itself": lambda x: x, "copy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x))}[how]
    nlp = copied(pipelines[name.split("_")[0]])
    pipe = nlp.get_pipe(name)
    labels = list(pipe.labels)
    more = rf"'{name}' has outputs for {len(labels)} labels, but {len(labels) + 1} are given: .*add_label"
    for wrong, said in (
        ([*labels, "MORE"], more),
        (labels[1:], rf"'{name}' has outputs for {len(labels)} labels, but {len(labels) - 1} are given"),
        ([*labels, labels[0]], rf"'{name}' repeat \['{labels[0]}'\]"),
        ([*labels[1:], 3], rf"'{name}' must be a list of strings"),
        ([*labels[1:], ""], "strings that are not empty"),
        ("x" * len(labels), "must be a list of strings"),
        (None, "must be a list of strings"),
    ):
        with pytest.raises(ValueError, match=said):
            pipe.cfg["labels"] = wrong
        with pytest.raises(ValueError, match=said):
            pipe.cfg.update(labels=wrong)
    assert list(pipe.labels) == labels


def test_renamed(tmp_path):
    nlp = make_pipeline("luke_ner", "luke_typer", "luke_relation", luke_relation={"none": "no"})
    before = [[(e.start, e.end, e.label_) for e in doc.ents] for doc in annotate(nlp)]
    assert any(before)
    names = {}
    for name in ("luke_ner", "luke_typer", "luke_relation"):
        pipe = nlp.get_pipe(name)
        names[name] = {label: f"new {label}" for label in pipe.labels}
        pipe.cfg["labels"] = list(names[name].values())
    expected = [[(start, end, names["luke_ner"][label]) for start, end, label in doc] for doc in before]
    nlp.to_disk(tmp_path)
    for other in (nlp, spacy.load(tmp_path), copy.deepcopy(nlp)):
        assert [[(e.start, e.end, e.label_) for e in doc.ents] for doc in annotate(other)] == expected
        assert other.get_pipe("luke_typer").labels == tuple(names["luke_typer"].values())
        with pytest.raises(ValueError, match="add_label"):
            other.get_pipe("luke_typer").cfg["labels"] = ["one"]
    assert nlp.get_pipe("luke_ner").add_label("MORE") == 1
    assert nlp.get_pipe("luke_ner").labels[-1] == "MORE"


def test_a_list_that_was_changed_in_its_place_is_not_saved(tmp_path):
    nlp = make_pipeline("luke_ner")
    ner = nlp.get_pipe("luke_ner")
    ner.cfg["labels"].append("MORE")
    for save in (nlp.to_bytes, lambda: nlp.to_disk(tmp_path)):
        with pytest.raises(ValueError, match=r"outputs for 2 labels, but 3 are given: .*MORE.*add_label"):
            save()
    ner.cfg["labels"] = ["A", "B"]
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("luke_ner").labels == ("A", "B")


def test_before_there_are_outputs():
    ner = spacy.blank("en").add_pipe("luke_ner")
    ner.cfg["labels"] = ["A", "B", "C"]
    with pytest.raises(ValueError, match="repeat"):
        ner.cfg["labels"] = ["A", "A"]
    assert ner.labels == ("A", "B", "C")
