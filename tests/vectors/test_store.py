import copy
import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.vectors.build import build_vectors
from spacy_luke.vectors.store import EntityVectors
from tests.sealing import change_manifest, reseal

NAMES = ["Q1", "Q22", "Berlin (Ohio)", "東京", "q1", "Q5"]


def test_rows_and_names(make_store):
    store = make_store()
    assert (len(store), store.size, store.name_count, store.dtype) == (6, 10, 9, "float32")
    assert [store.row(name) for name in NAMES] == list(range(6))
    assert store.rows(["Edo", "Q1", "Q9", "", "Tokyo", "\ud800"]).tolist() == [3, 0, -1, -1, 3, -1]
    assert store.rows([]).tolist() == []
    assert store.names_of([3, 0, 3]) == ["東京", "Q1", "東京"]
    assert [name in store for name in ("The first", "the first", 3)] == [True, False, False]
    assert repr(store).endswith("6 x 10, float32)")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_gather(make_store, values, dtype):
    store = make_store(dtype)
    rows = np.array([5, 0, 3, 5, 1])
    found = store.gather(rows)
    assert (found.dtype, found.shape) == (np.float32, (5, 10))
    within = {"float32": 0, "float16": 1e-3, "int8": np.abs(values).max() / 127 / 2 + 1e-6}
    assert np.abs(found - values[rows]).max() <= within[dtype]
    assert (found[2] == 0).all()
    found[:] = 9  # the caller's own
    assert np.array_equal(store.gather(rows[:1]), store.gather([5]))
    assert store.gather(np.zeros(0, int)).shape == store.gather([]).shape == (0, 10)


def test_int8_keeps_the_largest_number(make_store, values):
    found = make_store("int8").gather(np.arange(6))
    at = np.abs(values).argmax(axis=1)[:, None]
    assert np.allclose(np.take_along_axis(found, at, 1), np.take_along_axis(values, at, 1), rtol=1e-6)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0, 6], "rows from 0 to 5, but row 1 of those asked for is 6"),
        ([-1], "row 0 of those asked for is -1"),
        ([0.5], "whole numbers"),
        ([[0]], r"shape \(E,\)"),
        ([True], "whole numbers"),
    ],
)
def test_rows_out_of_range(make_store, rows, message):
    store = make_store()
    with pytest.raises(ValueError, match=message):
        store.gather(np.array(rows))
    with pytest.raises(ValueError, match=message):
        store.names_of(np.array(rows))


def test_a_text_is_no_list_of_names(make_store):
    with pytest.raises(ValueError, match=r"`row` takes a single name"):
        make_store().rows("Q1")


def test_save_pickle_deepcopy(make_store, tmp_path, values):
    store = make_store("int8")
    store.save(tmp_path / "new" / "copy")
    saved = EntityVectors.open(tmp_path / "new" / "copy")
    saved.verify()
    if os.name != "nt":
        assert os.path.samefile(saved.path / "vectors.npy", store.path / "vectors.npy")
    store.save(store.path)  # over itself
    saved.save(store.path)  # over the one it is linked with
    for other in (saved, pickle.loads(pickle.dumps(store)), copy.deepcopy(store), EntityVectors.open(store.path)):
        assert np.array_equal(other.gather([4, 2]), store.gather([4, 2]))
        assert other.rows(["Edo"]).tolist() == [3]
    assert len(pickle.dumps(store)) < 500
    with pytest.raises(ValueError, match=r"holds something else than vectors"):
        store.save(tmp_path)


def test_a_folder_that_is_gone(make_store, tmp_path):
    """As of a pipeline that was loaded from a temporary folder."""
    store = make_store()
    store.save(tmp_path / "gone")
    loaded = EntityVectors.open(tmp_path / "gone")
    data = pickle.dumps(loaded)
    shutil.rmtree(tmp_path / "gone")
    assert (loaded.gather([1]) == store.gather([1])).all(), "what is mapped can be read"
    for use in (lambda: pickle.loads(data), lambda: loaded.save(tmp_path / "new"), loaded.pack):
        with pytest.raises(ValueError, match=r"store of vectors in .*gone.*there no more.*nlp\.to_disk"):
            use()
    assert not (tmp_path / "new").exists()


def test_links_that_fail_become_copies(make_store, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("another disk")

    monkeypatch.setattr(os, "link", refuse)
    store = make_store()
    store.save(tmp_path / "copy")
    assert not os.path.samefile(tmp_path / "copy" / "vectors.npy", store.path / "vectors.npy")
    EntityVectors.open(tmp_path / "copy").verify()


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_subset(make_store, tmp_path, dtype):
    store = make_store(dtype)
    small = store.subset(["Tokyo", "Q5", "Q1", "Tokyo", "東京"], tmp_path / "small")
    assert small.names_of([0, 1, 2]) == ["Q1", "東京", "Q5"]
    assert small.rows(["Edo", "Tokyo", "The first", "Q22"]).tolist() == [1, 1, 0, -1]
    assert np.array_equal(small.gather([0, 1, 2]), store.gather([0, 3, 5]))
    assert small.info["subset_of"] == 6
    small.verify()
    small.subset(["Q5"], tmp_path / "small")  # in place
    assert np.array_equal(EntityVectors.open(tmp_path / "small").gather([0]), store.gather([5]))
    assert small.row("Edo") == 1, "a store in use stays as it was"


def test_subset_errors(make_store, tmp_path):
    store = make_store()
    with pytest.raises(ValueError, match=r"2 of 3 names are not in .*: 'X', 'Y'"):
        store.subset(["Q1", "X", "Y"], tmp_path / "small")
    with pytest.raises(ValueError, match=r"but got none"):
        store.subset([], tmp_path / "small")
    assert not (tmp_path / "small").exists()


def test_the_same_bytes_every_time(make_store):
    one, two = make_store(folder="one"), make_store(folder="two")
    for path in one.path.iterdir():
        assert path.read_bytes() == (two.path / path.name).read_bytes()


READ = """
import multiprocessing, pickle, sys
from spacy_luke.vectors.store import EntityVectors
def read(store, queue, rows):
    for _ in range(200):
        found = store.gather(rows)
    queue.put((rows, found.sum(axis=1).tolist(), store.names_of(rows), store.row("Edo")))
if __name__ == "__main__":
    store = EntityVectors.open(sys.argv[1])
    context = multiprocessing.get_context(sys.argv[2])
    queue = context.Queue()
    jobs = [context.Process(target=read, args=(store, queue, rows)) for rows in ([0, 1, 2], [5, 4, 3])]
    for job in jobs: job.start()
    for _ in jobs:
        rows, sums, names, row = queue.get(timeout=30)
        assert sums == store.gather(rows).sum(axis=1).tolist() and names == store.names_of(rows) and row == 3
    for job in jobs: job.join(); assert job.exitcode == 0
    assert "torch" not in sys.modules and "spacy" not in sys.modules
    print("shared")
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_two_processes(make_store, tmp_path, method):
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("no fork here")
    (tmp_path / "read.py").write_text(READ)
    command = [sys.executable, str(tmp_path / "read.py"), str(make_store().path), method]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "shared", done.stderr


# ---- what is no store, or not a whole one


def test_absent_or_no_store(make_store, tmp_path):
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(ValueError, match=r"is no store of vectors: there is no manifest.json.*build-vectors"):
            EntityVectors.open(path)
    store = make_store()
    for text in ("{", "[]", '{"format": 1}', "\xff"):
        (store.path / "manifest.json").write_text(text, encoding="latin1")
        with pytest.raises(ValueError, match=r"manifest.json is not readable"):
            EntityVectors.open(store.path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 3}, "of version 3, but this spacy_luke reads version 2"),
        ({"format": "x"}, "says format 'x'"),
        ({"dtype": "int4"}, "is not whole"),
        ({"rows": 0}, "is not whole"),
        ({"rows": "6"}, "is not whole"),
        ({"files": ["vectors.npy"]}, "is not whole"),
        ({"files": {"vectors.npy": 3}}, "is not whole"),
        ({"files": {"../vectors.npy": [3, ""]}}, "is not whole"),
        ({"rows": 5}, r"belongs to another store: expected <f4 \(5, 10\), but it has <f4 \(6, 10\)"),
        ({"size": 11}, "belongs to another store"),
        ({"names": 8}, "name_rows.npy belongs to another store"),
        ({"dtype": "float16"}, "expected <f2"),
    ],
)
def test_manifest_of_something_else(make_store, changes, message):
    store = make_store()
    change_manifest(store.path, **changes)
    with pytest.raises(ValueError, match=message):
        EntityVectors.open(store.path)


@pytest.mark.parametrize("name", ["vectors.npy", "names.txt", "name_hashes.npy", "name_order.npy", "name_starts.npy"])
def test_truncated_missing_damaged(make_store, name):
    store = make_store()
    file = store.path / name
    data = bytearray(file.read_bytes())
    file.unlink()
    with pytest.raises(ValueError, match=f"{name} is missing"):
        EntityVectors.open(store.path)
    file.write_bytes(data[:-3])
    with pytest.raises(ValueError, match=f"expected {len(data)} bytes in {name}, but it has {len(data) - 3}"):
        EntityVectors.open(store.path)
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match=f"{name} is damaged, or belongs to another store"):
        EntityVectors.open(store.path)
    data[:6] = b"\0" * 6
    file.write_bytes(data)
    reseal(store.path)
    if name != "names.txt":
        with pytest.raises(ValueError, match=f"{name} is damaged"):
            EntityVectors.open(store.path)


def test_swapped_files(make_store, tmp_path, values):
    store = make_store()
    other = build_vectors(values[:, ::-1].copy(), tmp_path / "other", names=NAMES).store
    (store.path / "vectors.npy").write_bytes((other.path / "vectors.npy").read_bytes())
    with pytest.raises(ValueError, match=r"vectors.npy is damaged, or belongs to another store"):
        EntityVectors.open(store.path)
    reseal(store.path)
    (store.path / "name_rows.npy").write_bytes((other.path / "name_rows.npy").read_bytes())
    with pytest.raises(ValueError, match=r"in name_rows.npy"):
        EntityVectors.open(store.path)


def test_cut_while_open(make_store):
    store = make_store()
    os.truncate(store.path / "vectors.npy", 200)
    if hasattr(os, "pread"):
        with pytest.raises(ValueError, match=r"was cut while it was open"):
            store.gather([5])


@given(st.dictionaries(st.text(st.characters(codec="utf-8", exclude_characters="\n")).map(str.strip).filter(bool),
                       st.integers(0, 255), min_size=1, max_size=30), st.data())  # fmt: skip
def test_as_a_dictionary(tmp_path_factory, rows, data):
    """The twin: a dictionary from name to vector."""
    names = list(rows)
    values = np.array(list(rows.values()), np.float32)[:, None].repeat(3, 1)
    folder = tmp_path_factory.mktemp("twin") / "store"
    store = build_vectors(values, folder, names=names).store
    asked = data.draw(st.lists(st.one_of(st.sampled_from(names), st.text(max_size=3)), max_size=20))
    found = store.rows(asked)
    assert [store.row(name) for name in asked] == found.tolist()
    assert found.tolist() == [names.index(name) if name in rows else -1 for name in asked]
    known = found[found >= 0]
    assert store.gather(known)[:, 0].tolist() == [rows[name] for name in asked if name in rows]
    assert store.names_of(known) == [name for name in asked if name in rows]
