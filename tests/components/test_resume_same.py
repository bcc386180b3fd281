"""`spacy luke train` goes on only with the run that was stopped, and replaces none without being asked."""

import io
import shutil

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from spacy.tokens import DocBin
from spacy.util import load_config
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.checkpoint.checkpoint import write_huggingface
from tests.components.recognised import gold_docs
from tests.tiny import make_checkpoint
from tests.training_config import LUKE_NER, quiet, start, write_config


@pytest.fixture(scope="module")
def stopped(config_path, tmp_path_factory):
    """A run of 3 of 9 steps."""
    output = tmp_path_factory.mktemp("stopped")
    quiet(start(config_path, training__max_steps=3), output)
    return output


def go_on(config_path, stopped, tmp_path, **overrides):
    """RETURNS: what was said."""
    shutil.copytree(stopped, tmp_path / "run")
    said = io.StringIO()
    quiet(start(config_path, **overrides), tmp_path / "run", resume=True, stdout=said)
    return " ".join(said.getvalue().split())


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"training__seed": 99}, "training.seed: was 3, now 99"),
        ({"training__dropout": 0.5}, "training.dropout: was 0.1, now 0.5"),
        ({"training__batcher__size": 2}, "training.batcher.size: was 3, now 2"),
        ({"training__optimizer__learn_rate__initial_rate": 0.9}, "learn_rate.initial_rate: was 0.003, now 0.9"),
        ({"training__eval_frequency": 2}, "training.eval_frequency: was 3, now 2"),
        ({"components__luke_ner__overlap": 33}, "components.luke_ner.overlap: was 32, now 33"),
        ({"corpora__train__augmenter__level": 0.1}, "corpora.train.augmenter.level: was 0.5, now 0.1"),
    ],
    ids=str,
)
def test_another_config_is_refused(config_path, stopped, tmp_path, changed, expected):
    with pytest.raises(ValueError, match="belongs to a run with other settings or data") as error:
        go_on(config_path, stopped, tmp_path, training__max_steps=3, **changed)
    assert expected in str(error.value)
    assert str(error.value).count(": was ") == 1


def test_other_data_are_refused(config_path, stopped, tmp_path):
    """By their content, wherever they lie."""
    path = load_config(config_path)["paths"]["train"]
    docs = list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))
    DocBin(docs=docs[:-1]).to_disk(tmp_path / "other.spacy")
    with pytest.raises(ValueError, match=r"corpora\.dev\.path: was data with the digest"):
        go_on(config_path, stopped, tmp_path, paths__train=str(tmp_path / "other.spacy"))


def test_what_changes_nothing_may_differ(config_path, stopped, tmp_path):
    path = load_config(config_path)["paths"]["train"]
    shutil.copy(path, tmp_path / "moved.spacy")
    changed = {"paths__train": str(tmp_path / "moved.spacy"), "training__gpu_allocator": "pytorch"}
    said = go_on(config_path, stopped, tmp_path, training__max_steps=9, **changed)
    assert "Goes on with another training.gpu_allocator: was null, now pytorch" in said
    assert "Goes on with another training.max_steps: was 3, now 9" in said
    assert "path" not in said


def test_a_run_is_not_overwritten_without_a_word(config_path, stopped, tmp_path):
    shutil.copytree(stopped, tmp_path / "run")
    before = (tmp_path / "run/model-best/meta.json").read_bytes()
    command = ["luke", "train", str(config_path), "-o", str(tmp_path / "run"), "--training.max_steps", "1"]
    result = CliRunner().invoke(spacy_app, command)
    text = " ".join(result.output.split())
    assert result.exit_code == 1
    assert (
        "has model-best, model-last, resume of an earlier run. Go on with it (--resume), replace it (--overwrite)"
        in text
    )
    assert (tmp_path / "run/model-best/meta.json").read_bytes() == before
    result = CliRunner().invoke(spacy_app, [*command, "--resume", "--overwrite"])
    assert (result.exit_code, "choose one" in result.output) == (1, True)
    result = CliRunner().invoke(spacy_app, [*command, "--overwrite"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "run/model-best/meta.json").read_bytes() != before
    (tmp_path / "run/resume/state.pt").unlink()
    said = " ".join(CliRunner().invoke(spacy_app, command).output.split())
    assert "It left no state to go on with: replace it (--overwrite)" in said
    assert "--resume" not in said


@pytest.mark.parametrize("bias_correction", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_spacys_own_components_go_on_as_if_nothing_was(tmp_path, bias_correction):
    """Their parameters are Thinc's, whose moments the optimizer keeps by nodes, which are others in each process."""
    DocBin(docs=gold_docs(spacy.blank("en"))).to_disk(tmp_path / "train.spacy")
    write_huggingface(make_checkpoint(), tmp_path / "checkpoint")
    config = write_config(
        tmp_path / "config.cfg",
        {"luke_ner": LUKE_NER, "ner": {}},
        train=tmp_path / "train.spacy",
        checkpoint=tmp_path / "checkpoint",
        optimizer={"bias_correction": bias_correction},
        batcher={"@batchers": "spacy.batch_by_sequence.v1", "size": 3},
        max_steps=4,
        eval_frequency=2,
    )
    quiet(start(config), tmp_path / "whole")
    quiet(start(config, training__max_steps=2), tmp_path / "parts")
    quiet(start(config), tmp_path / "parts", resume=True)
    for name in ("ner/model", "luke_ner/model.safetensors"):
        whole, parts = (tmp_path / run / "model-last" / name for run in ("whole", "parts"))
        assert parts.read_bytes() == whole.read_bytes(), name
