import pytest
import spacy
from spacy.tokens import DocBin

from spacy_luke.checkpoint.checkpoint import write_huggingface
from tests.components import known
from tests.components.linker import linked
from tests.components.recognised import gold_docs
from tests.tiny import make_checkpoint
from tests.training_config import LUKE_NER, write_config


@pytest.fixture(scope="session")
def config_path(tmp_path_factory):
    """A config that trains luke_ner, with data and weights beside it."""
    folder = tmp_path_factory.mktemp("training")
    DocBin(docs=gold_docs(spacy.blank("en"))).to_disk(folder / "train.spacy")
    write_huggingface(make_checkpoint(), folder / "checkpoint")
    return write_config(
        folder / "config.cfg",
        {"luke_ner": {**LUKE_NER, "model": {**LUKE_NER["model"], "attention": "one_way"}}},
        train=folder / "train.spacy",
        checkpoint=folder / "checkpoint",
        augmenter={"@augmenters": "spacy.lower_case.v1", "level": 0.5},
        learn_rate={"@schedules": "warmup_linear.v1", "warmup_steps": 3, "total_steps": 12, "initial_rate": 0.003},
        optimizer={"grad_clip": 1.0, "layer_decay": 0.9},
        batcher={"@batchers": "spacy.batch_by_sequence.v1", "size": 3},
        dropout=0.1,
        accumulate_gradient=2,
        max_steps=9,
        eval_frequency=3,
    )


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """The vectors of `linked.ENTITIES`, with a bias in the last place."""
    return linked.make_store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def vectors(tmp_path_factory):
    """The folder of the vectors of `known.NAMES`."""
    return known.make_vectors(tmp_path_factory.mktemp("kg"))
