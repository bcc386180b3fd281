"""What an app tells torch of its own tensors (a default type or device, inference mode) changes nothing."""

from contextlib import contextmanager, nullcontext

import pytest
import torch
from spacy.training import Example
from spacy.util import load_model_from_path

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.checkpoint import read_checkpoint
from tests import pipelines
from tests.components import known
from tests.components.every import MAKERS, asked, facts, make_all, random_texts
from tests.family_folders import write_folder
from tests.tiny import SENTENCES


@contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


# Nothing can be computed on the device "meta", so that a tensor that were there by default would be found.
SETTINGS = {
    "float64": lambda: default_dtype(torch.float64),
    "bfloat16": lambda: default_dtype(torch.bfloat16),
    "device": lambda: torch.device("meta"),
    "inference_mode": torch.inference_mode,
}


@pytest.mark.product
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_predictions(name, setting, tmp_path):
    """Of pipelines that are loaded before, and loaded then."""
    make, make_doc, words = MAKERS[name]
    make(tmp_path).to_disk(tmp_path / "saved")
    nlp, other = (load_model_from_path(tmp_path / "saved") for _ in range(2))
    texts = random_texts(4, words)
    expected = [pytest.approx(facts(doc), abs=2e-5) for doc in nlp.pipe([make_doc(nlp, text) for text in texts])]
    assert any(x.expected for x in expected)
    with SETTINGS[setting]():
        loaded = load_model_from_path(tmp_path / "saved")
    for pipeline, running in ((other, SETTINGS[setting]), (loaded, SETTINGS[setting]), (loaded, nullcontext)):
        docs = [make_doc(pipeline, text) for text in texts]
        with running():
            found = list(pipeline.pipe(docs))
        assert [facts(doc) for doc in found] == expected


@pytest.mark.product
@pytest.mark.parametrize("family", ["mpnet", "deberta-v2"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_fresh_pipelines(family, setting, tmp_path):
    """From the checkpoint of an encoder without entities."""
    source = write_folder(tmp_path / "checkpoint", family)
    texts = random_texts(3)
    made = []
    for name, running in (("plain", nullcontext), ("told", SETTINGS[setting])):
        (tmp_path / name).mkdir()
        with running():
            nlp = make_all(tmp_path / name, weights=lambda: read_checkpoint(source, entity_size=12))
            made.append([facts(nlp(asked(nlp, text))) for text in texts])
    assert made[1] == [pytest.approx(x, abs=2e-5) for x in made[0]]


def learn(nlp, examples, running):
    """RETURNS: the losses of two updates, and what is found then."""
    optimizer, losses = make_adamw(0.01), {}
    with running():
        for _ in range(2):
            nlp.update([Example(x.x.copy(), x.y) for x in examples], sgd=optimizer, losses=losses, drop=0.0)
    return losses, [facts(nlp(x.x.copy())) for x in examples]


def luke_to_learn(folder):
    nlp = pipelines.make_pipeline()
    return nlp, [pipelines.make_example(nlp, text) for text in SENTENCES[:2]]


def ernie_to_learn(folder):
    return known.make(known.BOTH, known.make_vectors(folder), shared=True, **known.ALWAYS)


@pytest.mark.product
@pytest.mark.parametrize("make", [luke_to_learn, ernie_to_learn])
@pytest.mark.parametrize("setting", ["float64", "bfloat16", "device"])
def test_updates(make, setting, tmp_path):
    nlp, examples = make(tmp_path)
    nlp.to_disk(tmp_path / "saved")
    losses, found = learn(nlp, examples, nullcontext)
    again = load_model_from_path(tmp_path / "saved")
    assert sum(losses.values()) > 0
    assert learn(again, examples, SETTINGS[setting]) == (
        pytest.approx(losses, rel=1e-4),
        [pytest.approx(x, abs=1e-4) for x in found],
    )
