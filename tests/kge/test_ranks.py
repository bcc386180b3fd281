import numpy as np
import pytest
import torch

from spacy_luke.kge import ranks as module
from spacy_luke.kge.ranks import metrics_of, rank_triples

N, R = 15, 3


def make_case(seed=0, reciprocal=False):
    random = np.random.default_rng(seed)
    known = np.unique(np.stack([random.integers(n, size=60) for n in (N, R, N)], axis=1).astype(np.int32), axis=0)
    entities = torch.from_numpy(random.normal(size=(N, 4)).astype(np.float32))
    relations = torch.from_numpy(random.normal(size=(2 * R if reciprocal else R, 4)).astype(np.float32))
    return entities, relations, known[::3], known


def plain_ranks(entities, relations, triples, known, norm, reciprocal):
    true = {tuple(x) for x in known.tolist()}
    ranks = [[], []]
    for h, r, t in triples.tolist():
        for side in (0, 1):
            back = relations[r + R] if reciprocal else -relations[r]
            query = entities[t] + back if side else entities[h] + relations[r]
            far = torch.linalg.vector_norm(query - entities, ord=norm, dim=1).tolist()
            right = h if side else t
            others = [e for e in range(N) if e != right and ((e, r, t) if side else (h, r, e)) not in true]
            nearer = sum(far[e] < far[right] for e in others)
            ranks[side].append(1 + nearer + sum(far[e] == far[right] for e in others) / 2)
    return np.array(ranks)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("most", [1 << 20, 40])
def test_ranks_equal_their_plain_twin(norm, reciprocal, most, monkeypatch):
    monkeypatch.setattr(module, "MOST_DISTANCES", most)
    entities, relations, triples, known = make_case(reciprocal=reciprocal)
    found = rank_triples(entities, relations, triples, known, norm=norm, reciprocal=reciprocal)
    np.testing.assert_array_equal(found, plain_ranks(entities, relations, triples, known, norm, reciprocal))
    assert found.max() > 1
    assert (found == 1).any()


def test_equal_distances_count_half():
    found = rank_triples(torch.zeros(5, 2), torch.zeros(1, 2), np.array([[0, 0, 1]]), np.array([[0, 0, 1]]), norm=1)
    np.testing.assert_array_equal(found, [[3.0], [3.0]])


def test_metrics():
    found = metrics_of(np.array([[1.0, 4.0], [2.0, 20.0]]))
    assert found["mrr"] == pytest.approx((1 + 1 / 4 + 1 / 2 + 1 / 20) / 4)
    assert [found[f"hits@{k}"] for k in (1, 3, 10)] == [0.25, 0.5, 0.75]
    assert found["mean_rank"] == 6.75
    assert found["mrr_tails"] == 0.625
    assert found["triples"] == 2
    with pytest.raises(ValueError, match="one or more triples to rank"):
        metrics_of(np.empty((2, 0)))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_vectors_that_are_not_finite_have_no_ranks(bad):
    entities, relations, triples, known = make_case()
    entities[3, 1] = bad
    with pytest.raises(ValueError, match="those of 1 of 15 entities hold NaN or infinity, the first in row 3"):
        rank_triples(entities, relations, triples, known, norm=2)
    entities, relations, triples, known = make_case()
    with pytest.raises(ValueError, match="3 of 3 relations hold NaN"):
        rank_triples(entities, relations * bad, triples, known, norm=2)
