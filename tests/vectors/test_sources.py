import gzip
import json
from contextlib import contextmanager

import numpy as np
import pytest

from spacy_luke.stores.opening import open_source
from spacy_luke.vectors import matrices
from spacy_luke.vectors.build import build_vectors
from spacy_luke.vectors.sources import find_vector_files

ROWS = np.array([[1, 2], [3, 4], [5, 6.5]], np.float32)
IDS = "3\n/m/a\t0\n/m/b\t1\n/m/c\t2\n"
LABELS = 'id\tlabel\n1\t"b ""x"""\n0\ta\n2\tc\n'


@pytest.fixture
def build(tmp_path):
    return lambda source, **settings: build_vectors(source, tmp_path / "store", **settings).store


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "source"
    path.mkdir()
    return path


def rows_by_name(store, names):
    return store.gather(store.rows(names)).tolist()


# ---- OpenKE


@pytest.mark.parametrize("key", ["ent_embeddings.weight", "ent_embeddings"])
@pytest.mark.parametrize("indent", [None, 1])
def test_openke_json(folder, build, key, indent):
    (folder / "entity2id.txt").write_text(IDS)
    weights = {"zero_const": [0.0], "rel_embeddings.weight": [[9.0, 9.0]], key: ROWS.tolist(), "pi": [[1.0]]}
    (folder / "transe.json").write_text(json.dumps(weights, indent=indent))
    store = build(folder)
    assert rows_by_name(store, ["/m/c", "/m/a"]) == [[5, 6.5], [1, 2]]
    assert store.info["format"] == "openke"
    assert rows_by_name(build(folder / "transe.json"), ["/m/b"]) == [[3, 4]]


@pytest.mark.parametrize("read", [1, 7, 64])
def test_openke_json_in_small_pieces(folder, build, read, monkeypatch):
    class Slow:
        def __init__(self, file):
            self.file = file

        def read(self, _):
            return self.file.read(read)

    @contextmanager
    def open_slowly(path, **settings):
        with open_source(path, **settings) as file:
            yield Slow(file)

    monkeypatch.setattr(matrices, "open_source", open_slowly)
    (folder / "entity2id.txt").write_text(IDS)
    (folder / "e.json").write_text(json.dumps({"a": 1, "ent_embeddings.weight": ROWS.tolist(), "b": [[2.0, 2.0]]}))
    assert rows_by_name(build(folder), ["/m/c", "/m/a"]) == [[5, 6.5], [1, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"rel_embeddings.weight": [[1, 2]]}', "expected OpenKE's vectors under one of"),
        ('{"ent_embeddings.weight": [[1, 2], [3, 4], [5', "ends in the middle of the entities' vectors, after 2 rows"),
        ('{"ent_embeddings.weight": [[[1, 2]], [3, 4]]}', "expected a list of lists of numbers"),
        ('{"ent_embeddings.weight": [1, 2]}', "expected a list of lists of numbers"),
        ('{"ent_embeddings.weight": []}', "is empty"),
        ('{"ent_embeddings.weight": [[1, 2], [3], [5, 6]]}', "row 1, '/m/b': expected 2 numbers, but got 1"),
        ('{"ent_embeddings.weight": [[1, 2], [3, null], [5, 6]]}', "row 1, '/m/b': expected a number, but number 2"),
        ('{"ent_embeddings.weight": [[1, 2], [3, NaN], [5, 6]]}', "row 1, '/m/b': number 2 is nan"),
    ],
)
def test_openke_json_errors(folder, build, text, message):
    (folder / "entity2id.txt").write_text(IDS)
    (folder / "e.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        build(folder)


def test_openke_arrays(folder, build):
    (folder / "entity2id.txt").write_text(IDS)
    ROWS.tofile(folder / "entity2vec.bin")
    ROWS[:1].tofile(folder / "relation2vec.bin")
    assert rows_by_name(build(folder), ["/m/c", "/m/a"]) == [[5, 6.5], [1, 2]]
    with (folder / "entity2vec.bin").open("ab") as file:
        file.write(b"1234")
    with pytest.raises(ValueError, match=r"float32 for 3 entities, but 28 bytes are no whole rows"):
        build(folder)
    np.save(folder / "e.npy", ROWS)
    with pytest.raises(ValueError, match=r"one file of vectors in .*, but found e.npy, entity2vec.bin"):
        build(folder)
    assert rows_by_name(build(folder / "e.npy"), ["/m/b"]) == [[3, 4]]


# ---- PyKEEN


@pytest.mark.parametrize("place", ["entity_to_id.tsv.gz", "training_triples/entity_to_id.tsv.gz", "entity_to_id.tsv"])
def test_pykeen(folder, build, place):
    path = folder / place
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(LABELS.encode()) if place.endswith("gz") else LABELS.encode())
    np.save(folder / "entity_embeddings.npy", ROWS.astype(np.float64))
    np.save(folder / "relation_embeddings.npy", ROWS[:1])
    (folder / "trained_model.pkl").write_bytes(b"never opened")
    store = build(folder)
    assert store.info["format"] == "pykeen"
    assert rows_by_name(store, ["c", 'b "x"', "a"]) == [[5, 6.5], [3, 4], [1, 2]]


def test_pykeen_safetensors(folder, build):
    save_file = pytest.importorskip("safetensors.numpy").save_file
    (folder / "entity_to_id.tsv").write_text(LABELS)
    key = "entity_representations.0._embeddings.weight"
    save_file({key: ROWS, "relation_representations.0._embeddings.weight": ROWS[:1]}, folder / "m.safetensors")
    assert rows_by_name(build(folder), ["c"]) == [[5, 6.5]]
    save_file({"x": ROWS, "y": ROWS}, folder / "m.safetensors")
    with pytest.raises(ValueError, match=r"or a single tensor of shape"):
        build(folder)
    save_file({"x": ROWS.astype(np.int32)}, folder / "m.safetensors")
    with pytest.raises(ValueError, match=r"in x, but it is I32"):
        build(folder)
    (folder / "m.safetensors").write_bytes(b"12")
    with pytest.raises(ValueError, match=r"is no whole .safetensors file"):
        build(folder)


def test_pickles_are_not_opened(folder, build):
    (folder / "trained_model.pkl").write_bytes(b"x")
    (folder / "entity_to_id.tsv").write_text(LABELS)
    with pytest.raises(ValueError, match=r"trained_model.pkl is a pickle and is not opened"):
        build(folder)
    with pytest.raises(ValueError, match=r"state_dict"):
        build(folder / "trained_model.pkl")
    np.save(folder / "e.npy", np.array([[{}, 1]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"is no whole .npy file of numbers"):
        build(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\t0\n", "line 1: expected the columns id and label"),
        ("id\tlabel\n0\ta\n1\n", "line 3: expected an entity and its number"),
        ("id\tlabel\n0\ta\nx\tb\n", "line 3: expected an entity and its number"),
        ("id\tlabel\n0\ta\n0\tb\n", "line 3: 'b' has the number 0, which 'a' in line 2 has too"),
    ],
)
def test_pykeen_errors(folder, build, text, message):
    (folder / "entity_to_id.tsv").write_text(text)
    np.save(folder / "e.npy", ROWS)
    with pytest.raises(ValueError, match=message):
        build(folder)


# ---- word2vec


@pytest.mark.parametrize("heading", ["", "3 2\n"])
@pytest.mark.parametrize("separator", [" ", "\t"])
def test_word2vec(folder, build, heading, separator):
    names = ["a", "ENTITY/New_York", "b" if separator == " " else "New York"]
    lines = [separator.join([name, *map(str, row)]) for name, row in zip(names, ROWS.tolist(), strict=True)]
    (folder / "v.txt").write_text(heading + "\n".join(lines) + " \n\n")
    store = build(folder / "v.txt")
    assert store.info["format"] == "word2vec"
    assert rows_by_name(store, names) == ROWS.tolist()
    (folder / "v.txt.gz").write_bytes(gzip.compress((folder / "v.txt").read_bytes()))
    assert rows_by_name(build(folder / "v.txt.gz"), names) == ROWS.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 2\na 1 2\n", "the first line says 2 rows, but 1 follow"),
        ("2 2\na 1 2\nb 1\n", "line 3, 'b': expected 2 numbers, but got 1"),
        ("a 1 2\nNew York 1 2\nb 1 2\n", "line 2, 'New': expected 2 numbers, but got 3"),
        ("a 1 2\nb 1  2\nc 1 2\n", "line 2, 'b': expected 2 numbers, but got 3"),
        ("a 1 2\na 3 4\n", "row 1, 'a': expected each name once, but row 0 has it too"),
        ("a 1 2\n\nb 3 4\n", "line 2, without a name: expected 2 numbers, but got 0"),
        ("", "is empty"),
        ("5 2\n", "the first line says 5 rows, but 0 follow"),
    ],
)
def test_word2vec_errors(folder, build, text, message):
    (folder / "v.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        build(folder / "v.txt")


# ---- names and files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4\nQ1\t0\nQ2\t1\nQ3\t2\n", "the first line says 4 entities, but 3 follow. The file may be truncated"),
        ("Q1\t0\nQ2\t1\n", "line 1: expected the number of entities, but got"),
        ("2\nQ1\t0\nQ2\n", "line 3: expected an entity, a tab and its number, but got 'Q2'"),
        ("2\nQ1\t0\nQ2\t-1\n", "line 3: expected an entity, a tab and its number"),
        ("2\nQ1\t0\nQ2\t0\n", "line 3: 'Q2' has the number 0, which 'Q1' in line 2 has too"),
        ("2\nQ1\t0\nQ2\t99999\n", "line 3: 99,999 is too large a number for 2 entities"),
        ("", "line 1: expected the number of entities"),
        ("0\n", "has no names"),
    ],
)
def test_ids_errors(write_ernie, build, text, message):
    with pytest.raises(ValueError, match=message):
        build(write_ernie(ids=text))


def test_text_that_is_not_utf8(write_ernie, build):
    folder = write_ernie(titles="")
    (folder / "entity_map.txt").write_bytes(b"A\tQ1\n\xff\tQ2\n")
    with pytest.raises(ValueError, match=r"entity_map.txt, line 2: expected UTF-8"):
        build(folder)
    (folder / "entity_map.txt").write_bytes(b"A Q1\n")
    with pytest.raises(ValueError, match=r"entity_map.txt, line 1: expected a title, a tab and an id, but got 'A Q1'"):
        build(folder)
    (folder / "entity2id.txt").write_bytes(b"1\n\xff\t0\n")
    with pytest.raises(ValueError, match=r"entity2id.txt, line 2: expected UTF-8"):
        build(folder)


def test_numpy(folder, build):
    np.save(folder / "v.npy", ROWS)
    with pytest.raises(ValueError, match=r"among them the names of the rows"):
        build(folder)
    with pytest.raises(ValueError, match=r"names.txt; or give names"):
        build(folder, format="numpy")
    (folder / "names.txt").write_text("a\nNew York\nc\n")
    for source in (folder, folder / "v.npy"):
        assert rows_by_name(build(source), ["New York"]) == [[3, 4]]
    (folder / "other.txt").write_text("x\ny\nz\n")
    assert rows_by_name(build(folder / "v.npy", names=folder / "other.txt"), ["y"]) == [[3, 4]]
    assert rows_by_name(build(folder / "v.npy", names=["x", "y", "z"]), ["z"]) == [[5, 6.5]]
    data = (folder / "v.npy").read_bytes()
    (folder / "v.npy").write_bytes(data[:-4])
    with pytest.raises(ValueError, match=r"v.npy is no whole .npy file"):
        build(folder)
    header = b"{'descr': '<f4\n"  # numpy parses it as Python, and raises what the parser raises
    (folder / "v.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(ValueError, match=r"v.npy is no whole .npy file"):
        build(folder)


def test_packed_text_that_is_truncated(folder, build):
    data = gzip.compress(b"".join(b"n%d 1 2\n" % i for i in range(5000)))
    (folder / "v.txt.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match=r"is not a whole gzip file"):
        build(folder / "v.txt.gz")


def test_find_source(folder, write_ernie):
    found = find_vector_files(write_ernie(titles="A\tQ1\n"))
    assert (found.format, found.vectors.name, found.names.name) == ("ernie", "entity2vec.vec", "entity2id.txt")
    assert found.titles.name == "entity_map.txt"
    assert find_vector_files(found.vectors).format == "ernie"
    for settings, message in [({"format": "glove"}, "format must be one of"), ({}, "is no source of vectors")]:
        with pytest.raises(ValueError, match=message):
            find_vector_files(folder, **settings)
    with pytest.raises(ValueError, match=r"no such file or folder"):
        find_vector_files(folder / "absent")
    with pytest.raises(ValueError, match=r"hold the names themselves"):
        find_vector_files(found.vectors, format="word2vec", names="names.txt")
