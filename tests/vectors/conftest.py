import numpy as np
import pytest

from spacy_luke.vectors.build import build_vectors

NAMES = ["Q1", "Q22", "Berlin (Ohio)", "東京", "q1", "Q5"]


@pytest.fixture(scope="session")
def values():
    """float32 (6, 10), the fourth row all zeros."""
    values = np.random.default_rng(0).normal(size=(6, 10)).astype(np.float32)
    values[3] = 0
    return values


@pytest.fixture
def make_store(tmp_path, values):
    def make(dtype="float32", folder="store", titles="Tokyo\t東京\nThe first\tQ1\nEdo\t東京\n"):
        (tmp_path / "titles.txt").write_text(titles, encoding="utf8")
        built = build_vectors(values, tmp_path / folder, names=NAMES, dtype=dtype, titles=tmp_path / "titles.txt")
        return built.store

    return make


@pytest.fixture
def write_ernie(tmp_path):
    """A folder in the layout of ERNIE's kg_embed; texts of its files can be given."""

    def write(vectors="1\t2\t3\n4\t5\t6\t\n7\t8\t9\n", ids="3\nQ1\t0\nQ2\t1\nQ3\t2\n", titles=None, folder="kg_embed"):
        path = tmp_path / folder
        path.mkdir(exist_ok=True)
        (path / "entity2vec.vec").write_text(vectors, encoding="utf8")
        (path / "entity2id.txt").write_text(ids, encoding="utf8")
        if titles is not None:
            (path / "entity_map.txt").write_text(titles, encoding="utf8")
        return path

    return write
