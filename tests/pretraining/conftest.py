import numpy as np
import pytest

from spacy_luke.vectors.build import build_vectors


@pytest.fixture(scope="session")
def make_vectors(tmp_path_factory):
    """A store of vectors: noise for these names, or a given matrix."""

    def make(names, *, size=12, matrix=None):
        if matrix is None:
            matrix = np.random.default_rng(0).normal(size=(len(names), size))
        folder = tmp_path_factory.mktemp("vectors") / "store"
        return build_vectors(np.asarray(matrix, np.float32), folder, format="numpy", names=list(names)).store

    return make
