import numpy as np
import pytest
import torch

from spacy_luke.vectors.build import build_vectors

torch.set_num_threads(1)  # tiny models: threads that wait for one another on a busy machine take forty times as long


@pytest.fixture(scope="session")
def make_vectors(tmp_path_factory):
    """A store of vectors: noise for these names, or a given matrix."""

    def make(names, *, size=12, matrix=None):
        if matrix is None:
            matrix = np.random.default_rng(0).normal(size=(len(names), size))
        folder = tmp_path_factory.mktemp("vectors") / "store"
        return build_vectors(np.asarray(matrix, np.float32), folder, format="numpy", names=list(names)).store

    return make
