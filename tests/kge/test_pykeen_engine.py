"""Against PyKEEN, where it is installed (extra kg): identical ranks, and the same guarantees of a run."""

import json

import pytest
import torch

pytest.importorskip("pykeen", reason="the extra kg is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

from spacy_luke.kge.pykeen_engine import PykeenEngine  # noqa: E402
from spacy_luke.kge.ranks import metrics_of, rank_triples  # noqa: E402
from spacy_luke.kge.settings import TransESettings  # noqa: E402
from spacy_luke.kge.train import METRICS_FILE, VECTORS_FOLDER, train_graph  # noqa: E402
from spacy_luke.vectors.store import EntityVectors  # noqa: E402

SETTINGS = TransESettings(engine="pykeen", size=8, epochs=6, batch_size=32, negatives=8, learning_rate=0.3)


@pytest.mark.parametrize("norm", [1, 2])
def test_our_ranks_are_those_of_pykeens_evaluator(small_graph, norm):
    settings = TransESettings(**{**SETTINGS.to_dict(), "norm": norm})
    engine = PykeenEngine(small_graph, settings)
    engine.train_epoch(0, None)
    test, known = small_graph.triples["test"], small_graph.known()
    for triples in (test, small_graph.triples["train"]):
        found = metrics_of(rank_triples(*engine.vectors(), triples, known, norm=norm))
        assert found == engine.evaluate(triples, progress=False)


@pytest.mark.parametrize("norm", [1, 2])
def test_each_rank_is_pykeens(small_graph, norm):
    engine = PykeenEngine(small_graph, TransESettings(**{**SETTINGS.to_dict(), "norm": norm}))
    triples, known = small_graph.triples["test"], small_graph.known()
    ranks = rank_triples(*engine.vectors(), triples, known, norm=norm)
    for i in range(len(triples)):
        alone = engine.evaluate(triples[i : i + 1], progress=False)
        assert (alone["mrr_tails"], alone["mrr_heads"]) == tuple(round(1 / rank, 5) for rank in ranks[:, i])


@pytest.mark.parametrize("loss", ["softmax", "nssa", "margin"])
@pytest.mark.parametrize(("reciprocal", "normalize"), [(False, True), (True, False)])
def test_a_run_writes_a_store(small_graph, tmp_path, loss, reciprocal, normalize):
    changed = {"loss": loss, "reciprocal": reciprocal, "normalize": normalize, "margin": 1.0}
    found = train_graph(small_graph, tmp_path / "run", TransESettings(**{**SETTINGS.to_dict(), **changed}), every=3)
    assert 0 < found["test"]["mrr"] < 1
    assert found["history"][-1]["loss"] < found["history"][0]["loss"]
    assert len(EntityVectors.open(tmp_path / "run" / VECTORS_FOLDER)) == 46
    assert not normalize or found["mean_length_of_vectors"] == pytest.approx(1, abs=1e-3)


def test_resumed_equals_uninterrupted(small_graph, tmp_path, monkeypatch):
    train_graph(small_graph, tmp_path / "whole", SETTINGS, every=2)
    whole_epoch = PykeenEngine.train_epoch

    def broken(self, epoch, progress):
        if epoch == 5:
            raise KeyboardInterrupt
        torch.manual_seed(99)  # the run must not depend on what others draw
        return whole_epoch(self, epoch, progress)

    with monkeypatch.context() as patch:
        patch.setattr(PykeenEngine, "train_epoch", broken)
        with pytest.raises(KeyboardInterrupt):
            train_graph(small_graph, tmp_path / "parts", SETTINGS, every=2)
    train_graph(small_graph, tmp_path / "parts", SETTINGS, every=2, resume=True)
    for name in (f"{VECTORS_FOLDER}/vectors.npy", "relations.npy"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    histories = [json.loads((tmp_path / name / METRICS_FILE).read_text())["history"] for name in ("whole", "parts")]
    assert histories[0] == histories[1]
