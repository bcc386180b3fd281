"""`spacy luke embed-entities`: vectors of a knowledge base, made once, and those of new entities alone."""

import json

import numpy as np
import pytest
import torch
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.checkpoint.checkpoint import write_huggingface
from spacy_luke.checkpoint.text_encoder import TextEncoder
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.change import add_to_kb
from spacy_luke.kb.knowledge_base import EntityKB
from tests.tiny import make_checkpoint


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", "embed-entities", *map(str, arguments)])
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture
def folder(tmp_path):
    write_huggingface(make_checkpoint(), tmp_path / "tiny")
    rows = [{"id": f"Q{i}", "names": [f"Name {i}"], "description": "what it is " * i} for i in range(5)]
    (tmp_path / "entities.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf8")
    build_kb([tmp_path / "entities.jsonl"], tmp_path / "kb")
    return tmp_path


def test_vectors(folder):
    status, output = run(folder / "kb", "--weights", folder / "tiny", "--no-normalise")
    assert status == 0, output
    assert "Made 5 of 5 vectors of 32 numbers" in output
    kb = EntityKB.open(folder / "kb")
    one = TextEncoder(make_checkpoint(), normalise=False).encode(["Name 1. what it is"])
    assert np.allclose(kb.vectors.gather([kb.vectors.row("Q1")]), one, atol=1e-5)
    (folder / "more.jsonl").write_text(json.dumps({"id": "Q7", "names": ["Name"]}) + "\n", encoding="utf8")
    add_to_kb(kb, [folder / "more.jsonl"])
    assert "Made 1 of 6" in run(folder / "kb", "--weights", folder / "tiny", "--no-normalise")[1]
    again = EntityKB.open(folder / "kb")
    assert (again.vectors.gather([again.vectors.row("Q1")]) == kb.vectors.gather([kb.vectors.row("Q1")])).all()
    assert "Made 6 of 6" in run(folder / "kb", "--weights", folder / "tiny", "--again")[1]
    vectors = EntityKB.open(folder / "kb").vectors
    assert np.allclose(np.linalg.norm(vectors.gather(range(6)), axis=1), 1, atol=1e-5)


def test_the_gpu_that_is_asked_for(folder, monkeypatch):
    """The CPU is had on a machine with a GPU, too."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    arguments = (folder / "kb", "--weights", folder / "tiny", "--gpu-id")
    assert "Made 5 of 5" in run(*arguments, -1)[1]
    moved = []
    monkeypatch.setattr(torch.nn.Module, "to", lambda module, device: moved.append(device))
    for gpu_id in (None, 1):
        TextEncoder(make_checkpoint(), gpu_id=gpu_id)
    assert moved == [torch.device("cuda"), torch.device("cuda", 1)]
    status, output = run(*arguments, 2)
    assert status == 1
    assert "one of the 2 GPUs that torch sees" in output


def test_refused(folder):
    status, output = run(folder / "nothing", "--weights", folder / "tiny")
    assert status == 1
    assert "no knowledge base" in output
    run(folder / "kb", "--weights", folder / "tiny")
    write_huggingface(make_checkpoint(hidden_size=16), folder / "other")
    status, output = run(folder / "kb", "--weights", folder / "other")
    assert status == 1
    assert "have 32 numbers, but the encoder makes 16" in output


def test_long_and_odd_texts():
    """A text longer than a window is read as far as the window goes; batches change nothing."""
    encoder = TextEncoder(make_checkpoint())
    texts = ["a", "London " * 200, "\u0130\u00df\u4e2d\U0001f600", "Ada"]
    together = encoder.encode(texts, batch_size=10)
    for text, vector in zip(texts, together, strict=True):
        assert np.allclose(encoder.encode([text])[0], vector, atol=1e-5)
