import json
import os

import numpy as np
import pytest

from spacy_luke.vectors import build as building
from spacy_luke.vectors.build import build_vectors
from spacy_luke.vectors.store import EntityVectors


@pytest.fixture
def build(tmp_path):
    return lambda source, **settings: build_vectors(source, tmp_path / "store", **settings)


def dropped(built):
    return [line.split("\t") for line in (built.store.path / "dropped.tsv").read_text("utf8").splitlines()[1:]]


def test_golden(shared, build):
    """The original's table (row 0 of it stands for no entity), but for the short row, which it fills with zeros."""
    safetensors = pytest.importorskip("safetensors.numpy")
    folder = shared("golden/ernie_checkpoint/kg_embed")
    table = safetensors.load_file(folder.parent / "expected.safetensors")
    expected = next(x for key, x in table.items() if key.endswith("entity_table"))
    names = [line.split("\t")[0] for line in (folder / "entity2id.txt").read_text("utf8").splitlines()[1:]]
    titles = [line.split("\t") for line in (folder / "entity_map.txt").read_text("utf8").splitlines()]
    lengths = [len(line.split()) for line in (folder / "entity2vec.vec").read_text("utf8").splitlines()]
    (short,) = (row for row, length in enumerate(lengths) if length != expected.shape[1])
    lost = [title for title, name in titles if name == names[short]]
    with pytest.raises(
        ValueError,
        match=f"{1 + len(lost)} entities or titles are damaged. line {short + 1}, '{names[short]}': "
        f"expected {expected.shape[1]} numbers, but got {lengths[short]}",
    ):
        build(folder)
    built = build(folder, on_damage="drop")
    assert [x[1] for x in dropped(built)] == [names[short], *lost]
    kept = [name for name in names if name != names[short]]
    assert len(built.store) == len(kept) == len(expected) - 2
    assert np.array_equal(built.store.gather(built.store.rows(kept)), np.delete(expected[1:], short, axis=0))
    whole = [(title, name) for title, name in titles if name != names[short]]
    assert whole
    assert built.store.names_of(built.store.rows([title for title, _ in whole])) == [name for _, name in whole]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_ernie(write_ernie, build, dtype):
    store = build(write_ernie(titles="Eins\tQ1\nZwei\tQ2\nDos\tQ2\nQ3\tQ3\n"), dtype=dtype).store
    assert store.rows(["Q1", "Q2", "Q3", "Dos", "Eins", "Drei"]).tolist() == [0, 1, 2, 1, 0, -1]
    assert np.allclose(store.gather([2, 0]), [[7, 8, 9], [1, 2, 3]], atol=0.04 if dtype == "int8" else 0)
    assert store.info == {"source": "entity2vec.vec", "format": "ernie", "dropped": 0}
    assert store.name_count == 6, "a title that is the id itself is no second name"
    store.verify()


def test_numbers_in_another_order(write_ernie, build):
    store = build(write_ernie(ids="3\nQ3\t2\nNew York\t0\nQ2 1\n\n")).store
    assert store.rows(["New York", "Q2", "Q3"]).tolist() == [0, 1, 2]


def test_windows_lines_and_byte_order_mark(write_ernie, build):
    folder = write_ernie(vectors="1\t2\r\n3\t4\r\n", ids="\ufeff2\r\nQ1\t0\r\nQ2\t1\r\n")
    assert build(folder).store.gather([1]).tolist() == [[3, 4]]


# ---- damaged entities: each is named, none is repaired


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"vectors": "1\t2\t3\n4\t5\n7\t8\t9\n"}, ["line 2", "Q2", "expected 3 numbers, but got 2"]),
        ({"vectors": "1\t2\t3\n4\t5\t6\t7\n7\t8\t9\n"}, ["line 2", "Q2", "expected 3 numbers, but got 4"]),
        ({"vectors": "1\t2\t3\n\n7\t8\t9\n"}, ["line 2", "Q2", "expected 3 numbers, but got 0"]),
        ({"vectors": "1\t2\t3\n4\tx\t6\n7\t8\t9\n"}, ["line 2", "Q2", "expected a number, but number 2 is 'x'"]),
        ({"vectors": "1\t2\t3\n4\t\t6\n7\t8\t9\n"}, ["line 2", "Q2", "expected a number, but number 2 is ''"]),
        ({"vectors": "1\t2\t3\n4\t5 6\t7\n7\t8\t9\n"}, ["line 2", "Q2", "expected a number, but number 2 is '5 6'"]),
        ({"vectors": "1\t2\t3\n4\t5\tnan\n7\t8\t9\n"}, ["line 2", "Q2", "number 3 is nan"]),
        ({"vectors": "1\t2\t3\n1e39\t5\t6\n7\t8\t9\n"}, ["line 2", "Q2", "number 1 is inf"]),
        ({"vectors": "1\t2\t3\n4\t5\t6\n"}, ["row 2", "Q3", "its row is missing: the vectors end after row 1"]),
        ({"vectors": "1\t2\t3\n" * 4}, ["line 4", "", "the names do not tell whose row it is"]),
        ({"ids": "2\nQ1\t0\nQ3\t2\n"}, ["line 2", "", "the names do not tell whose row it is"]),
        ({"ids": "3\nQ1\t0\nQ2\t1\nQ1\t2\n"}, ["row 2", "Q1", "expected each name once, but row 0 has it too"]),
        ({"titles": "A\tQ4\n"}, ["entity_map.txt, line 1", "A", "its id Q4 has no vector"]),
        ({"titles": "A\tQ1\nA\tQ2\n"}, ["entity_map.txt, line 2", "A", "stands for Q2, but before for Q1"]),
        ({"titles": "A\tQ1\nQ1\tQ2\n"}, ["entity_map.txt, line 2", "Q1", "stands for Q2, but before for Q1"]),
    ],
)
def test_damage(write_ernie, build, tmp_path, files, expected):
    folder = write_ernie(**files)
    where, name, what = expected
    with pytest.raises(ValueError) as caught:
        build(folder)
    named = repr(name) if name else "without a name"
    assert f"entity2vec.vec: 1 entities or titles are damaged. {where}, {named}: {what}" in str(caught.value)
    assert "--on-damage drop" in str(caught.value)
    assert not (tmp_path / "store").exists()
    built = build(folder, on_damage="drop")
    assert dropped(built) == [expected]
    assert (built.dropped, built.store.info["dropped"]) == (1, 1)
    plain = {b"Q1": [1, 2, 3], b"Q2": [4, 5, 6], b"Q3": [7, 8, 9]}
    for name in ("Q1", "Q2", "Q3"):
        if (row := built.store.row(name)) >= 0 and "1\t2\t3\n" * 4 != files.get("vectors"):
            assert built.store.gather([row])[0].tolist() == plain[name.encode()]
    built.store.verify()


def test_title_of_a_dropped_entity(write_ernie, build):
    folder = write_ernie(vectors="1\t2\n4\n7\t8\n", titles="B\tQ2\nA\tQ1\nC\tQ3\nA\tQ1\n")
    built = build(folder, on_damage="drop")
    assert [x[1] for x in dropped(built)] == ["Q2", "B"]
    assert built.store.rows(["A", "B", "C", "Q2", "Q3"]).tolist() == [0, -1, 1, -1, 1]


def test_many_damaged_rows_are_counted(build, tmp_path):
    values = np.ones((10_000, 2), np.float32)
    values[::2] = np.inf
    with pytest.raises(
        ValueError, match=r"5,000 entities .*row 0, 'Q0': number 1 is inf; .*row 8, 'Q8'.*and 4,995 more"
    ):
        build(values, names=[f"Q{i}" for i in range(10_000)])
    built = build(values, names=[f"Q{i}" for i in range(10_000)], on_damage="drop")
    assert len(built.store) == 5000
    assert built.store.names_of([4999]) == ["Q9999"]
    assert len(dropped(built)) == 5000


def test_too_large_for_float16(build):
    values = np.array([[1, 2], [1, 70_000]], np.float32)
    with pytest.raises(ValueError, match=r"row 1, 'b': number 2 is 70000.0, too large for float16"):
        build(values, names=["a", "b"], dtype="float16")
    assert build(values, names=["a", "b"], dtype="int8").store.gather([1])[0, 1] == pytest.approx(70_000)


def test_nothing_left(build):
    with pytest.raises(ValueError, match=r"has no entity that can be stored: row 0, 'a': number 1 is nan"):
        build(np.full((1, 2), np.nan, np.float32), names=["a"], on_damage="drop")


def test_the_size_is_that_of_most_rows(write_ernie, build):
    folder = write_ernie(vectors="1\n4\t5\n7\t8\n")
    with pytest.raises(ValueError, match=r"line 1, 'Q1': expected 2 numbers, but got 1"):
        build(folder)
    with pytest.raises(ValueError, match=r"2 entities .*expected 1 numbers, but got 2"):
        build(folder, size=1)


# ---- arrays and settings


def test_names_that_differ_in_their_unicode_form(write_ernie, build):
    with pytest.warns(UserWarning, match="2 names of vectors are equal to others but for their Unicode form"):
        build(np.eye(2), names=["Köln", "Ko\u0308ln"])
    store = build(write_ernie(titles="Köln\tQ1\nKo\u0308ln\tQ1\n")).store  # both are one entity
    assert store.rows(["Köln", "Ko\u0308ln"]).tolist() == [0, 0]


def test_array_errors(build):
    ones = np.ones((2, 3), np.float32)
    for source, settings, message in [
        (ones, {}, "Expected names for the rows"),
        (ones, {"names": ["a", " b"]}, "the name of row 1, but got ' b'"),
        (ones, {"names": ["a", 1]}, "the name of row 1, but got 1"),
        (ones, {"names": ["a"]}, "row 1, without a name"),
        (ones, {"names": ["a", "b"], "size": 4}, "expected vectors of 4 numbers, but they have 3"),
        (ones.astype(int), {"names": ["a", "b"]}, r"floating-point numbers of shape \(rows, size\), but got int64"),
        (ones[0], {"names": ["a"]}, r"but got float32 \(3,\)"),
        (ones, {"names": ["a", "b"], "dtype": "int4"}, "dtype must be one of"),
        (ones, {"names": ["a", "b"], "on_damage": "repair"}, "on_damage must be one of"),
    ]:
        with pytest.raises(ValueError, match=message):
            build(source, **settings)


def test_float64_and_names_in_a_file(build, tmp_path):
    (tmp_path / "names.txt").write_text("a\nb c\n")
    store = build(np.eye(2), names=tmp_path / "names.txt").store
    assert store.gather([store.row("b c")]).tolist() == [[0, 1]]


# ---- writing


def test_an_error_leaves_the_old_store(write_ernie, build, tmp_path, monkeypatch):
    build(write_ernie())
    before = sorted(os.listdir(tmp_path))

    def full(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(building, "finish_store", full)
    with pytest.raises(OSError, match=r"No space left"):
        build(write_ernie(vectors="1\n2\n3\n"))
    assert EntityVectors.open(tmp_path / "store").size == 3
    assert sorted(os.listdir(tmp_path)) == before


def test_what_is_replaced(write_ernie, build, tmp_path):
    folder = write_ernie()
    old = build(folder).store
    assert build(folder, dtype="float16").store.dtype == "float16"
    assert old.gather([0]).tolist() == [[1, 2, 3]], "a store in use stays as it was"
    (tmp_path / "store" / "manifest.json").write_text(json.dumps({}))
    with pytest.raises(ValueError, match=r"holds something else than vectors"):
        build(folder)
    with pytest.raises(ValueError, match=r"is a file"):
        build_vectors(folder, folder / "entity2id.txt")


def test_blocks_of_rows(build, monkeypatch):
    """Rows of many blocks, damaged ones at their borders."""
    monkeypatch.setattr("spacy_luke.vectors.matrices.BLOCK_ROWS", 4)
    values = np.arange(22, dtype=np.float32)[:, None]
    values[[0, 3, 4, 21]] = np.nan
    store = build(values, names=[str(i) for i in range(22)], on_damage="drop").store
    kept = [i for i in range(22) if i not in (0, 3, 4, 21)]
    assert store.gather(store.rows([str(i) for i in kept]))[:, 0].tolist() == kept
    assert store.rows(["0", "3", "4", "21"]).tolist() == [-1] * 4
