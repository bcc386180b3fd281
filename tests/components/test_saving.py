"""What is saved can be used: encoders are there, weights are finite, and a killed process leaves the old or the new."""

import os
import signal
import sys

import pytest
import spacy
import torch
from safetensors.torch import load_file

import spacy_luke
from spacy_luke.bridge.digests import shim_digest
from spacy_luke.components import storage
from tests.pipelines import annotate, answers, make_pipeline, other_weights
from tests.tiny import SENTENCES

POINTS = 1000  # of a save, at which it is killed, at most
NAMES = ("luke_ner", "luke_typer")
ABSENT = r"'luke_ner' listens to an encoder, 'luke_encoder', that is not in the pipeline.*replace_listeners"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saving") / "pipeline"
    make_pipeline(*NAMES).to_disk(folder)
    return folder


@pytest.fixture
def nlp(saved):
    return spacy.load(saved)


def refused(nlp, folder, message):
    for way in (lambda: nlp.to_disk(folder), nlp.to_bytes):
        with pytest.raises(ValueError, match=message):
            way()
    assert not (folder / "luke_ner").exists()


# ---- the encoder that a component listens to


def test_a_component_that_was_sourced_alone(nlp, tmp_path):
    alone = spacy.blank("en")
    alone.add_pipe("luke_ner", source=nlp)
    refused(alone, tmp_path / "alone", ABSENT)
    nlp.to_bytes()  # the pipeline that it comes from is whole
    nlp.to_disk(tmp_path / "whole")
    alone.add_pipe("luke_encoder", source=nlp, before="luke_ner")
    alone.to_disk(tmp_path / "alone")
    expected = [[x[:3] for x in doc] for doc in answers(nlp)]
    assert [[x[:3] for x in doc] for doc in answers(spacy.load(tmp_path / "alone"))] == expected


def test_an_encoder_that_was_removed(nlp, tmp_path):
    nlp.remove_pipe("luke_encoder")
    refused(nlp, tmp_path / "pipeline", ABSENT)


def test_an_encoder_behind_its_users(nlp, tmp_path):
    """It works where it was put together, but nobody could load it."""
    whole, expected = spacy.blank("en"), answers(nlp)
    for name, place in (("sentencizer", {}), ("luke_encoder", {}), ("luke_typer", {}), ("luke_ner", {"first": True})):
        whole.add_pipe(name, source=nlp, **place)
    message = r"'luke_ner' listens to 'luke_encoder', which stands behind it.*remove_pipe.*before='luke_ner'"
    refused(whole, tmp_path / "pipeline", message)
    whole.remove_pipe("luke_encoder")
    whole.add_pipe("luke_encoder", source=nlp, before="luke_ner")
    whole.to_disk(tmp_path / "pipeline")
    assert answers(spacy.load(tmp_path / "pipeline")) == answers(whole)
    assert [[x[:3] for x in doc] for doc in answers(whole)] == [[x[:3] for x in doc] for doc in expected]


def test_an_encoder_that_was_excluded_when_loading(saved, tmp_path):
    refused(spacy.load(saved, exclude=["luke_encoder"]), tmp_path / "pipeline", ABSENT)


def test_a_copy_of_its_own(nlp, tmp_path):
    expected = [[x[:3] for x in doc] for doc in answers(nlp)]
    nlp.replace_listeners("luke_encoder", "luke_ner", ["model.encoder"])
    alone = spacy.blank("en")
    alone.add_pipe("luke_ner", source=nlp)
    alone.to_disk(tmp_path)
    assert [[x[:3] for x in doc] for doc in answers(spacy.load(tmp_path))] == expected


def test_an_encoder_that_is_left_out_by_name(nlp, saved, tmp_path):
    """It is the user's wish: the heads of a frozen encoder are saved beside it."""
    nlp.to_disk(tmp_path, exclude=["luke_encoder"])
    assert not (tmp_path / "luke_encoder").exists()
    assert (tmp_path / "luke_ner").is_dir()
    nlp.to_bytes(exclude=["luke_encoder"])
    nlp.to_disk(tmp_path / "whole")
    nlp.to_disk(tmp_path / "whole", exclude=["luke_encoder"])
    assert answers(spacy.load(tmp_path / "whole")) == answers(nlp)


def test_disabled_and_alone(nlp, tmp_path):
    expected = answers(nlp)
    with nlp.select_pipes(disable=["luke_encoder"]):
        nlp.to_disk(tmp_path / "pipeline")
    assert answers(spacy.load(tmp_path / "pipeline")) == expected
    nlp.get_pipe("luke_ner").to_disk(tmp_path / "ner")  # a component by itself, as `tune` saves it
    nlp.get_pipe("luke_ner").from_disk(tmp_path / "ner").from_bytes(nlp.get_pipe("luke_ner").to_bytes())
    assert answers(nlp) == expected


# ---- weights that are not finite


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("name", "part", "tensor"),
    [("luke_encoder", "luke_encoder", "words.piece.weight"), ("luke_ner", "head", "classifier.weight")],
)
def test_weights_that_are_not_finite(nlp, saved, tmp_path, monkeypatch, name, part, tensor, value):
    parameter = dict(nlp.get_pipe(name).own_shims[part].module.named_parameters())[tensor]
    with torch.no_grad():
        parameter[1, 2] = value
    message = f"'{name}' cannot be saved. Tensor '{tensor}' must be finite, but 1 of .* the first in row 1"
    with pytest.raises(ValueError, match=message):
        nlp.to_disk(tmp_path)
    with pytest.raises(ValueError, match=message):
        nlp.to_bytes()
    with pytest.raises(ValueError, match=message):
        spacy_luke.save(nlp, saved)
    spacy.load(saved)
    monkeypatch.setattr(storage.StoredComponent, "_check_finite", lambda *args: None)
    nlp.to_disk(tmp_path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=f"'{name}' cannot be loaded. Tensor '{tensor}' must be finite"):
        spacy.load(tmp_path)


# ---- whole pipelines


def test_save(nlp, tmp_path):
    expected = answers(nlp)
    for _ in range(2):
        spacy_luke.save(nlp, tmp_path / "a/pipeline", exclude=["luke_typer"])
        spacy_luke.save(nlp, str(tmp_path / "a/pipeline"))
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["pipeline"]
    assert answers(spacy.load(tmp_path / "a/pipeline")) == expected
    spacy_luke.save(nlp, tmp_path / "a/pipeline", exclude=["luke_typer"])
    assert not (tmp_path / "a/pipeline/luke_typer").exists()
    again = spacy.load(tmp_path / "a/pipeline", exclude=["luke_typer"])
    spacy_luke.save(again, tmp_path / "a/pipeline")  # over the files that it was read from
    assert len(annotate(spacy.load(tmp_path / "a/pipeline"), SENTENCES[:1])) == 1


def test_nothing_else_is_replaced(nlp, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    for place in (tmp_path, tmp_path / "letter.txt"):
        with pytest.raises(ValueError, match="would be replaced as a whole, but it holds no pipeline"):
            spacy_luke.save(nlp, place)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def killed_at(event: int, action) -> int:
    """Run an action in a forked process that is killed before its event-th use of the file system. RETURNS: how many
    uses there were, -1 where it was killed."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        seen = 0

        def hook(name, args):
            nonlocal seen
            if name == "open" or name.startswith(("os.", "shutil.", "tempfile.", "ctypes.", "fcntl.")):
                seen += 1
                if seen == event:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        try:
            action()
            os.write(writer, str(seen).encode())
        finally:
            os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as file:
        said = file.read()
    assert said or os.WIFSIGNALED(status), "the action failed in the child"
    return int(said or -1)


def weights_of(nlp):
    return [shim_digest(shim) for name in nlp.pipe_names[1:] for shim in nlp.get_pipe(name).own_shims.values()]


def loaded(folder, states):
    """Which of the states is loaded, or that a mixture of two is refused."""
    try:
        weights = weights_of(spacy.load(folder))
    except ValueError as error:
        return "mixture" if "was saved with another encoder than the one in 'luke_encoder'" in str(error) else error
    return states.index(weights)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on Windows")
@pytest.mark.parametrize("atomic", [True, False])
def test_killed(saved, tmp_path, atomic):
    """`save` leaves the old or the new pipeline; `to_disk` these, or a mixture that is refused."""
    folder = tmp_path / "pipeline"
    new = other_weights(spacy.load(saved))
    states = [weights_of(spacy.load(saved)), weights_of(new)]

    def write():
        if atomic:
            spacy_luke.save(new, folder)
        else:
            new.to_disk(folder)

    spacy.load(saved).to_disk(folder)
    uses = killed_at(-1, write)
    assert uses > 20
    found = []
    for event in sorted({1 + i * (uses - 1) // (POINTS - 1) for i in range(POINTS)}):
        spacy_luke.save(spacy.load(saved), folder)
        assert killed_at(event, write) == -1
        found.append(loaded(folder, states))
    assert set(found) == ({0, 1} if atomic else {0, "mixture", 1})
    assert found == sorted(found, key=[0, "mixture", 1].index)
    load_file(folder / "luke_ner/model.safetensors")
