import json
import sys

import numpy as np
import pytest
from safetensors.torch import load_file

from spacy_luke.kge.engines import SparseEngine
from spacy_luke.kge.settings import TransESettings
from spacy_luke.kge.train import BEST, METRICS_FILE, STATE, VECTORS_FOLDER, train_graph
from spacy_luke.kge.triples import Graph
from spacy_luke.vectors.store import EntityVectors

SETTINGS = TransESettings(size=8, epochs=12, batch_size=16, negatives=20, learning_rate=0.3, reciprocal=True)
WRITTEN = (f"{VECTORS_FOLDER}/vectors.npy", "relations.npy", "relations.txt", STATE, BEST)


def stop_in(monkeypatch, epoch):
    """As if the process were killed while this epoch (from 0) is trained."""
    whole = SparseEngine.train_epoch

    def broken(self, number, progress):
        if number == epoch:
            raise KeyboardInterrupt
        return whole(self, number, progress)

    monkeypatch.setattr(SparseEngine, "train_epoch", broken)


def without_times(folder):
    found = json.loads((folder / METRICS_FILE).read_text(encoding="utf8"))
    return {key: value for key, value in found.items() if key not in ("seconds", "triples_per_second")}


def test_it_learns_what_follows_from_the_rest(small_graph, tmp_path):
    settings = TransESettings(size=4, epochs=20, batch_size=16, negatives=20, learning_rate=1.0)
    found = train_graph(small_graph, tmp_path / "run", settings, every=5)
    assert found["test"]["mrr"] > 0.9
    assert found["test"]["hits@3"] == 1.0


def test_metrics_file(small_graph, tmp_path):
    found = train_graph(small_graph, tmp_path / "run", SETTINGS, every=4)
    assert json.loads((tmp_path / "run" / METRICS_FILE).read_text(encoding="utf8")) == found
    assert [("valid" in row) for row in found["history"]] == [(i + 1) % 4 == 0 for i in range(12)]
    assert found["valid"]["mrr"] == max(row["valid"]["mrr"] for row in found["history"] if "valid" in row)
    assert found["settings"] == SETTINGS.to_dict()
    assert found["graph"]["relations"] == 4


def test_the_store_has_the_vectors_of_the_best_epoch(small_graph, tmp_path):
    train_graph(small_graph, tmp_path / "run", SETTINGS, every=4)
    store = EntityVectors.open(tmp_path / "run" / VECTORS_FOLDER)
    best = load_file(tmp_path / "run" / BEST)["entities_ND"].numpy()
    rows = store.rows(small_graph.entities)
    assert len(store) == len(small_graph.entities) == 46
    assert store.size == 8
    np.testing.assert_array_equal(store.gather(rows), best)
    assert np.load(tmp_path / "run" / "relations.npy").shape == (8, 8)


def test_entities_without_training_triples_are_left_out(small_graph, tmp_path):
    triples = {**small_graph.triples, "test": np.array([[0, 0, 46]], np.int32)}
    graph = Graph([*small_graph.entities, "Q99"], small_graph.relations, triples)
    found = train_graph(graph, tmp_path / "run", SETTINGS, every=12)
    assert found["graph"]["entities_without_training_triples"] == 1
    assert EntityVectors.open(tmp_path / "run" / VECTORS_FOLDER).row("Q99") == -1


@pytest.mark.parametrize("stopped", [3, 5, 11])
def test_resumed_equals_uninterrupted(small_graph, tmp_path, monkeypatch, stopped):
    train_graph(small_graph, tmp_path / "whole", SETTINGS, every=3)
    with monkeypatch.context() as patch:
        stop_in(patch, stopped)
        with pytest.raises(KeyboardInterrupt):
            train_graph(small_graph, tmp_path / "parts", SETTINGS, every=3)
    train_graph(small_graph, tmp_path / "parts", SETTINGS, every=3, resume=True)
    for name in WRITTEN:
        if name != STATE:  # its header has times
            assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name
    whole, parts = (load_file(tmp_path / name / STATE) for name in ("whole", "parts"))
    assert all((whole[name] == parts[name]).all() for name in whole)
    assert without_times(tmp_path / "whole") == without_times(tmp_path / "parts")


def test_a_finished_run_may_be_resumed(small_graph, tmp_path):
    first = train_graph(small_graph, tmp_path / "run", SETTINGS, every=3)
    assert train_graph(small_graph, tmp_path / "run", SETTINGS, every=3, resume=True) == first


def test_without_validation_the_last_epoch_counts(small_graph, tmp_path):
    nothing = np.empty((0, 3), np.int32)
    graph = Graph(
        small_graph.entities, small_graph.relations, {**small_graph.triples, "valid": nothing, "test": nothing}
    )
    found = train_graph(graph, tmp_path / "run", SETTINGS, every=5)
    assert found["epoch"] == 12
    assert found["valid"] is None
    assert found["test"] is None
    assert not (tmp_path / "run" / BEST).exists()


def test_where_there_is_nothing_to_resume(small_graph, tmp_path, capsys):
    """So that a job that a cluster starts again, or for the first time, is one command."""
    found = train_graph(small_graph, tmp_path / "new", SETTINGS, every=12, resume=True, progress=True)
    assert f"Begins anew, as {tmp_path / 'new'} has nothing to resume." in capsys.readouterr().out
    assert found["epoch"] == 12
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(ValueError, match="nothing was saved yet"):
        train_graph(small_graph, tmp_path / "other", SETTINGS, resume=True)


def test_runs_are_not_mixed(small_graph, tmp_path):
    run = tmp_path / "run"
    train_graph(small_graph, run, SETTINGS, every=12)
    with pytest.raises(ValueError, match="is not empty"):
        train_graph(small_graph, run, SETTINGS, every=12)
    other = TransESettings(**{**SETTINGS.to_dict(), "seed": 1})
    with pytest.raises(ValueError, match=r"its settings is \{'seed': 0\}, but now \{'seed': 1\}"):
        train_graph(small_graph, run, other, every=12, resume=True)
    graph = Graph(
        small_graph.entities, small_graph.relations, {**small_graph.triples, "test": small_graph.triples["valid"]}
    )
    with pytest.raises(ValueError, match="its graph is"):
        train_graph(graph, run, SETTINGS, every=12, resume=True)
    (run / STATE).write_bytes((run / STATE).read_bytes()[:-100])
    with pytest.raises(ValueError, match="is damaged"):
        train_graph(small_graph, run, SETTINGS, every=12, resume=True)


def test_a_loss_that_is_no_number(small_graph, tmp_path):
    with pytest.raises(ValueError, match="Take a smaller learning rate"):
        train_graph(small_graph, tmp_path / "run", TransESettings(size=4, epochs=3, learning_rate=1e38))


def test_without_pykeen(small_graph, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "spacy_luke.kge.pykeen_engine", raising=False)
    monkeypatch.setitem(sys.modules, "pykeen.evaluation", None)
    with pytest.raises(ImportError, match=r"pip install 'spacy-luke\[kg\]'. Or take the engine sparse"):
        train_graph(small_graph, tmp_path / "run", TransESettings(engine="pykeen"))


def test_a_run_that_was_killed_before_its_first_state(small_graph, tmp_path):
    """What it left is half a file of a dead process, or a best epoch without a state: the same command begins anew."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / f".{STATE}.abcdefgh.new").mkdir()
    (folder / BEST).write_bytes(b"of the killed run")
    settings = TransESettings(size=4, epochs=2, batch_size=16, negatives=20, learning_rate=1.0)
    found = train_graph(small_graph, folder, settings, every=1)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [BEST, METRICS_FILE, STATE, VECTORS_FOLDER, "relations.npy", "relations.txt"]
    )
    again = train_graph(small_graph, tmp_path / "other", settings, every=1)
    assert found["valid"] == again["valid"]
