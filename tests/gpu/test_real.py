"""What only a GPU itself can show: pipelines that are loaded, trained and pretrained on one."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from spacy.cli._util import app as spacy_app
from spacy.util import load_model_from_path
from thinc.api import require_cpu, require_gpu
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.checkpoint.export import write_huggingface
from spacy_luke.pipelines.quantization import dequantize, quantize
from tests.components.every import MAKERS, facts, random_texts
from tests.components.recognised import LABELS
from tests.pretraining.luke.shards import make_shards
from tests.pretraining.luke.small_runs import SMALL, overrides
from tests.pretraining.runs import as_arguments
from tests.threads import in_threads
from tests.tiny import SENTENCES, make_checkpoint
from tests.training_config import write_ner_training

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of torch's compiler, and of Thinc's calls of CuPy
]
PRETRAINING = [
    {"training.precision": "float32"},
    {"training.precision": "bfloat16", "training.recompute": True},
    {"training.precision": "float16"},
    {"training.compile": True},
]


@pytest.fixture
def on_gpu():
    require_gpu()
    yield
    require_cpu()


@pytest.fixture
def made(request, tmp_path):
    """A saved pipeline of many components, what makes a Doc for it, texts, and what is found in them on the CPU."""
    make, make_doc, words = MAKERS[request.param]
    nlp = make(tmp_path)
    nlp.to_disk(tmp_path / "saved")
    texts = random_texts(6, words)
    return tmp_path / "saved", make_doc, texts, [facts(nlp(make_doc(nlp, text))) for text in texts]


EACH = pytest.mark.parametrize("made", MAKERS, indirect=True)


def close_to(expected, tolerance=1e-4):
    return [pytest.approx(one, abs=tolerance) for one in expected]


@EACH
def test_loaded(made, on_gpu, tmp_path):
    """There, and on the CPU again what was saved there."""
    saved, make_doc, texts, expected = made
    nlp = load_model_from_path(saved)
    assert {p.device.type for _, pipe in nlp.pipeline for p in parameters(pipe)} == {"cuda"}
    found = [facts(doc) for doc in nlp.pipe([make_doc(nlp, text) for text in texts], batch_size=4)]
    assert found == close_to(expected)
    nlp.to_disk(tmp_path / "again")
    require_cpu()
    here = load_model_from_path(tmp_path / "again")
    assert {p.device.type for _, pipe in here.pipeline for p in parameters(pipe)} == {"cpu"}
    assert [facts(here(make_doc(here, text))) for text in texts] == close_to(expected, 1e-6)


def parameters(pipe):
    return [p for shim in getattr(pipe, "own_shims", {}).values() for p in shim.module.parameters()]


@EACH
def test_threads(made, on_gpu):
    saved, make_doc, texts, expected = made
    nlp, wrong = load_model_from_path(saved), []

    def work(number):
        require_gpu()  # what Thinc computes with is a thread's own
        order = np.random.default_rng(number).permutation(len(texts)).tolist()
        for i, doc in zip(order, nlp.pipe([make_doc(nlp, texts[i]) for i in order], batch_size=3), strict=True):
            if facts(doc) != pytest.approx(expected[i], abs=1e-4):
                wrong.append((texts[i], facts(doc), expected[i]))

    assert not in_threads(4, work)
    assert not wrong, (len(wrong), wrong[0])


@pytest.mark.parametrize("made", ["shared", "own_full"], indirect=True)
def test_bfloat16(made, on_gpu):
    """By "auto": numbers of eight bits, so that a score moves by some hundredths at most."""
    saved, make_doc, texts, _ = made
    nlp, found = load_model_from_path(saved), []
    nodes = [pipe.encoder_node for _, pipe in nlp.pipeline if hasattr(pipe, "encoder_node")]
    for precision in ("float32", "auto"):
        for node in nodes:
            node.attrs["predict_precision"] = precision
        found.append([facts(doc) for doc in nlp.pipe([make_doc(nlp, text) for text in texts])])
    pairs = [(one[key], other[key]) for one, other in zip(*found, strict=True) for key in one.keys() & other.keys()]
    moved = [abs(a - b) for a, b in pairs if a]
    assert 0 < max(moved) < 0.2
    assert np.median(moved) < 0.02


@pytest.mark.parametrize("made", ["shared"], indirect=True)
def test_int8(made, on_gpu):
    """A GPU multiplies with the numbers that int8 stands for, and does not round what they are multiplied with."""
    saved, make_doc, texts, _ = made
    require_cpu()
    here = load_model_from_path(saved)
    here.get_pipe("luke_encoder").encoder_node.attrs["predict_precision"] = "float32"
    quantize(here)
    here.to_disk(saved)
    dequantize(here)
    expected = [facts(here(make_doc(here, text))) for text in texts]
    require_gpu()
    there = load_model_from_path(saved)
    found = [facts(doc) for doc in there.pipe([make_doc(there, text) for text in texts])]
    assert found == close_to(expected)


# ---- commands


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", *map(str, arguments)])
    require_cpu()
    assert result.exit_code == 0, (result.output, result.exception)
    return " ".join(result.output.split())


@pytest.fixture
def config(tmp_path):
    """A training of NER, its data and its checkpoint."""
    return write_ner_training(tmp_path / "ner.cfg")


def test_trained_evaluated_applied(config, tmp_path):
    """As far as on the CPU; what is trained there is read on the CPU."""
    run("train", config, "-o", tmp_path / "cpu")
    run("train", config, "-o", tmp_path / "gpu", "--gpu-id", 0)
    last = [load_model_from_path(tmp_path / where / "model-last") for where in ("cpu", "gpu")]
    one, other = ([facts(nlp(text)) for text in SENTENCES] for nlp in last)
    assert other == close_to(one, 1e-2)
    assert {key[3] for found in other for key in found if key[0] == "ent"} == set(LABELS)
    command = ("evaluate", tmp_path / "gpu/model-last", tmp_path / "gold.spacy")
    tables = [run(*command, *more).partition("luke_ner entities")[2] for more in ((), ("--gpu-id", 0))]
    assert tables[0] == tables[1]
    assert "100.00" in tables[0]
    (tmp_path / "texts.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf8")
    run("apply", tmp_path / "gpu/model-last", tmp_path / "texts.txt", tmp_path / "found", "--gpu-ids", "0")
    assert list((tmp_path / "found").glob("part*"))


def test_resumed(config, tmp_path):
    """A training that goes on after a while gives what one in a go gives."""
    run("train", config, "-o", tmp_path / "whole", "--gpu-id", 0)
    run("train", config, "-o", tmp_path / "parts", "--gpu-id", 0, "--training.max_steps", 40)
    run("train", config, "-o", tmp_path / "parts", "--gpu-id", 0, "--resume")
    one, other = (load_model_from_path(tmp_path / name / "model-last") for name in ("whole", "parts"))
    assert [facts(other(text)) for text in SENTENCES] == close_to([facts(one(text)) for text in SENTENCES], 1e-3)


def test_started_by_torchrun(config, tmp_path):
    """One process, which has nobody to speak with: NCCL takes several GPUs."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1", "-m", "spacy"]
    command += ["luke", "train", config, "-o", tmp_path / "torchrun", "--gpu-id", "0"]
    found = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr[-3000:]
    run("train", config, "-o", tmp_path / "gpu", "--gpu-id", 0)
    one, other = (load_model_from_path(tmp_path / name / "model-last") for name in ("torchrun", "gpu"))
    assert [facts(other(text)) for text in SENTENCES] == close_to([facts(one(text)) for text in SENTENCES], 1e-3)


@pytest.mark.parametrize("changes", PRETRAINING, ids=str)
@pytest.mark.filterwarnings("ignore::UserWarning")  # of torch's compiler
def test_pretrained(changes, tmp_path):
    """In each format of numbers, with what is computed again, and compiled."""
    write_huggingface(make_checkpoint(entity_aware=False), tmp_path / "dropout")
    make_shards(tmp_path / "shards")
    settings = as_arguments(overrides(tmp_path, **changes))
    text = run("pretrain", SMALL, "-o", tmp_path / "run", "--gpu-id", 0, *settings)
    assert (tmp_path / "run/all/resume").exists(), text
