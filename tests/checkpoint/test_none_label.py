"""The label that means none, wherever it stands and however it is written."""

import pytest
import torch

from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.none_label import put_none_first
from tests.tiny import make_checkpoint


def read_with(folder, labels, **settings):
    write_huggingface(make_checkpoint(labels=labels), folder)
    return read_checkpoint(folder, **settings)


@pytest.mark.parametrize("name", ["NONE", "none", "<none>", "nil", "Null", "No_Entity", "non-entity", "O", "o", "N/A"])
def test_it_is_moved_to_the_front(tmp_path, name):
    checkpoint = read_with(tmp_path, ["PER", "LOC", name])
    assert checkpoint.labels == [name, "PER", "LOC"]
    matrix = make_checkpoint(labels=["PER", "LOC", name]).tensors["head.classifier.weight"]
    assert torch.equal(checkpoint.tensors["head.classifier.weight"], matrix[[2, 0, 1]])
    assert checkpoint.report[-1] == f"moved the label {name}, which means none, to the front"


@pytest.mark.parametrize("name", ["Na", "NA", "no relation", "NO-RELATION", "none", "other", "None of the above"])
def test_relations(name):
    checkpoint = make_checkpoint(labels=["P17", "P31", name])
    checkpoint.task = "entity_pair_classification"
    put_none_first(checkpoint)
    assert checkpoint.labels == [name, "P17", "P31"]


def test_other_is_a_kind_of_entity(tmp_path):
    assert read_with(tmp_path, ["NIL", "PER", "Other"]).labels == ["NIL", "PER", "Other"]
    assert read_with(tmp_path, ["PER", "Other", "None"]).labels == ["None", "PER", "Other"]


def test_no_known_name(tmp_path):
    """What is taken is said; a known name among given labels says otherwise."""
    checkpoint = read_with(tmp_path, ["PER", "LOC", "zilch"])
    assert checkpoint.labels == ["PER", "LOC", "zilch"]
    assert checkpoint.report[-1] == (
        "took the first label, PER, for the one that means none, as none of ['PER', 'LOC', 'zilch'] is known to; "
        "where it is another, give all labels in their order (--labels), and call that one NIL"
    )
    assert read_checkpoint(tmp_path, labels=["PER", "LOC", "NIL"]).labels == ["NIL", "PER", "LOC"]


def test_tasks_that_can_do_without():
    """An ERNIE for relations has all its labels; types have none."""
    for task, labels in (("pair_classification", ["P17", "P31"]), ("entity_classification", ["place", "none"])):
        checkpoint = make_checkpoint(labels=labels)
        checkpoint.task = task
        put_none_first(checkpoint)
        assert (checkpoint.labels, checkpoint.report) == (labels, [])
