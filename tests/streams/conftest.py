"""A small pipeline on disk, and inputs for it."""

import json

import pytest

from tests.pipelines import make_pipeline
from tests.tiny import SENTENCES


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams") / "pipeline"
    make_pipeline("luke_ner", "luke_relation").to_disk(folder)
    return folder


@pytest.fixture
def lines(tmp_path):
    """40 texts as JSON lines, one of them empty."""
    path = tmp_path / "texts.jsonl"
    texts = [" ".join(SENTENCES[(i + k) % 4] for k in range(i % 4)) for i in range(40)]
    path.write_text("".join(json.dumps({"id": f"d{i}", "text": x}) + "\n" for i, x in enumerate(texts)), "utf8")
    return path
