"""The benchmark of coherence without an encoder: what it knows of pairs of entities, and what it learns from that."""

import importlib

import numpy as np
import pytest

from tests.benchmark_files import by_bare_names


class Vectors:
    size = 2
    known = {"Leeds": [1, 0], "Leeds United": [0.8, 0.6], "York": [0, 1]}

    def rows(self, names):
        return np.array([list(self.known).index(x) if x in self.known else -1 for x in names])

    def gather(self, rows):
        return np.array(list(self.known.values()), dtype=np.float32)[rows]


class KB:
    vectors = Vectors()


@pytest.fixture
def coherence():
    with by_bare_names():
        yield importlib.import_module("linking_coherence")


def test_what_candidates_have_in_common_with_known_entities(coherence):
    knowledge = coherence.Knowledge(KB(), [{"Leeds", "York"}, {"Leeds", "York"}, {"Leeds"}])
    found = knowledge.compare(["Leeds", "Leeds United", "?"], ["York", "Leeds"], {"York": {"Leeds"}})
    shared = np.log1p(2)
    expected = [
        [1, 0, 0, shared, shared, 1, 1],  # is one of them, so that York alone is another one
        [0, (0.6 + 0.8) / 2, 0.8, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert not knowledge.compare(["Leeds"], [], {}).any()


def test_what_tells_the_right_candidate_is_learned(coherence):
    """The gradient of the penalised log-likelihood is 0 where Newton's method ends."""
    random = np.random.default_rng(0)
    features = [random.normal(size=(k, 3)).astype(np.float32) for k in random.integers(2, 6, 60)]
    golds = [int(np.argmax(x[:, 0] + 0.5 * random.normal(size=len(x)))) for x in features]
    weights, scale = coherence.learn(features, golds)
    gradient = -2 * coherence.DECAY * weights
    for x, gold in zip(features, golds, strict=True):
        share = np.exp(x / scale @ weights)
        gradient += (x / scale)[gold] - share / share.sum() @ (x / scale)
    assert np.abs(gradient).max() < 1e-3
    assert weights[0] > 2 * np.abs(weights[1:]).max()
