from dataclasses import replace

import pytest

from spacy_luke.checkpoint.checkpoint import write_huggingface
from spacy_luke.pretraining.luke.job import pretrain_luke
from tests.pretraining.luke.shards import make_shards
from tests.pretraining.luke.small_runs import read_config
from tests.tiny import make_checkpoint


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A tiny checkpoint without dropout, whose sums would differ from process to process, and one with; shards."""
    folder = tmp_path_factory.mktemp("pretrain")
    tiny = make_checkpoint(entity_aware=False)
    write_huggingface(tiny, folder / "dropout")
    config = replace(tiny.config, dropout=0.0, attention_dropout=0.0)
    write_huggingface(replace(tiny, config=config), folder / "tiny")
    make_shards(folder / "shards")
    return folder


@pytest.fixture(scope="session")
def whole(folder):
    """An uninterrupted run."""
    pretrain_luke(read_config(folder), folder / "whole", progress=False)
    return folder / "whole"
