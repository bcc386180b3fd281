"""The file of a store: read as it was written, mapped, whole or refused."""

import json
import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.aliases.counts import AliasCounts, Limits
from spacy_luke.aliases.file import STORE_MAGIC
from spacy_luke.aliases.store import AliasStore
from spacy_luke.stores.folder import is_sealed

PAIRS = st.dictionaries(
    st.tuples(st.text("abAB é-", min_size=1, max_size=5), st.sampled_from(["X", "Y", "Zé", "X y"])),
    st.integers(1, 5),
    min_size=1,
)


def test_lookups(store):
    assert len(store) == 5
    assert repr(store) == "AliasStore(5 names, 5 entities, case='exact')"
    assert store.candidates("New York") == [
        ("New York City", pytest.approx(0.6)),
        ("New York (state)", pytest.approx(0.4)),
    ]
    assert store.candidates("AT & T")[0].entity == "AT&T"
    assert store.candidates("Boston") == []
    assert store.link_probability("New York") == 0.5
    assert store.link_probability("York") == pytest.approx(0.005)
    assert store.link_probability("Boston") == 0.0
    assert "New  York" in store
    assert "new york" not in store
    assert sorted(store) == ["AT&T", "New York", "New York City", "York", "the"]
    assert sorted(store.entities()) == ["AT&T", "New York (state)", "New York City", "The (article)", "York"]
    assert store.info == {"sources": ["names.tsv"], "rows": 6}


@given(PAIRS, st.sampled_from(["exact", "casefold"]))
def test_as_plain_dicts(pairs, case):
    counts = AliasCounts(case, Limits(max_words=None))
    plain: dict = {}
    for (name, entity), weight in pairs.items():
        if (number := counts.add_name(name)) is None:
            continue
        counts.add_link(number, entity, weight)
        counts.add_total(number, total=weight, linked=weight, occurring=2 * weight)
        key = " ".join((name.casefold() if case == "casefold" else name).split())
        key = key.replace(" -", "-").replace("- ", "-")
        plain.setdefault(key, {}).setdefault(entity, 0)
        plain[key][entity] += weight
    store = counts.build()
    assert sorted(store) == sorted(plain)
    for key, entities in plain.items():
        total = sum(entities.values())
        expected = sorted(((-n / total, entity) for entity, n in entities.items()))
        assert store.candidates(key) == [(entity, pytest.approx(-prior)) for prior, entity in expected]
        assert store.link_probability(key) == 0.5


def test_file_bytes_and_pickle(store, tmp_path):
    path = tmp_path / "names"
    store.save(path)
    mapped = AliasStore.open(path)
    for other in (mapped, AliasStore(mapped.to_bytes()), pickle.loads(pickle.dumps(mapped))):
        assert other.to_bytes() == store.to_bytes()
        assert {name: other.candidates(name) for name in other} == {name: store.candidates(name) for name in store}
    mapped.save(path)  # over the file that it is mapped from
    assert mapped.candidates("York") == AliasStore.open(path).candidates("York") == store.candidates("York")
    assert sorted(os.listdir(tmp_path)) == ["names", "names.tsv"]


def test_order_of_the_input_does_not_matter():
    def make(names):
        counts = AliasCounts("exact")
        for name in names:
            number = counts.add_name(name)
            for entity in sorted(names, key=lambda x: x[::-1] if names[0] == "b" else x):
                counts.add_link(number, entity)
            counts.add_total(number, total=3, linked=1, occurring=2)
        return counts.build().to_bytes()

    assert make(["b", "ba", "ab"]) == make(["ab", "b", "ba"])


def test_the_file_does_not_depend_on_hashes(tmp_path):
    code = (
        "import sys; from spacy_luke.aliases.counts import AliasCounts; c = AliasCounts('casefold')\n"
        "for i in range(300):\n"
        "    n = c.add_name(f'Name {i % 100}'); c.add_link(n, f'E{i % 7}'); c.add_total(n, total=3, linked=1, "
        "occurring=2)\n"
        "c.build().save(sys.argv[1])"
    )
    for seed in "12":
        subprocess.run(
            [sys.executable, "-c", code, seed], cwd=tmp_path, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        )
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_the_first_lines_can_be_read(store):
    first, second = store.to_bytes().split(b"\n")[:2]
    assert first + b"\n" == STORE_MAGIC
    header = json.loads(second)
    assert (header["names"], header["candidates"], header["case"]) == (5, 6, "exact")
    assert all(start % 64 == 0 for start, _, _ in header["sections"].values())
    assert is_sealed(header)


def test_limits():
    counts = AliasCounts("exact", Limits(min_count=2, min_link_probability=0.1, max_candidates=2, max_words=3))
    rows = {"many": [5, 4, 3, 1], "rare": [9], "once": [1], "a b-c": [9], "a b c": [2], " ": [1]}
    for name, weights in rows.items():
        for i, weight in enumerate(weights):
            if (number := counts.add_name(name)) is not None:
                counts.add_link(number, f"E{i}", weight)
                occurring = 1000 if name == "rare" else 10
                counts.add_total(number, total=weight, linked=weight, occurring=occurring)
    store = counts.build()
    assert sorted(store) == ["a b c", "many"]
    assert store.candidates("many") == [("E0", pytest.approx(5 / 13)), ("E1", pytest.approx(4 / 13))]
    left = counts.left_out
    assert (left.too_long, left.blank, left.rare_candidates, left.rarely_linked, left.extra_candidates) == (
        1,
        1,
        2,
        1,
        1,
    )
    assert len(left.lines()) == 5


def test_no_limits_of_nonsense():
    for wrong in ({"min_link_probability": 2}, {"max_candidates": 0}, {"max_words": 0}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            Limits(**wrong)
    with pytest.raises(ValueError, match="case must be one of"):
        AliasCounts("lower")


def test_redirects_are_followed():
    counts = AliasCounts("exact")
    number = counts.add_name("x")
    for entity in ("A", "B", "C", "P", "Q"):
        counts.add_link(number, entity)
    counts.add_total(number, total=5, linked=5, occurring=5)
    counts.rename({"A": "B", "B": "C", "P": "Q", "Q": "P"})
    assert counts.build().candidates("x") == [
        ("C", pytest.approx(0.6)),
        ("P", pytest.approx(0.2)),
        ("Q", pytest.approx(0.2)),
    ]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], "not a whole store of names: expected"),
        (lambda data: data[: len(STORE_MAGIC) + 20], "damaged store of names"),
        (lambda data: data + b"x", "not a whole store"),
        (lambda data: b"PK" + data, "no store of names: it begins with b'PK"),
        (lambda data: data.replace(b"mentions 2", b"mentions 3", 1), "version 3, but this spacy_luke reads version 2"),
        (lambda data: data.replace(b"mentions 2", b"mentions 1", 1), "version 1, which has no digests.* add-digests"),
        (lambda data: data.replace(b'"case": "exact"', b'"case": "EXACT"', 1), "damaged store of names .case must be"),
        (lambda data: data.replace(b'"names": 5', b'"names": 6', 1), "its second line is not as it was written"),
        (lambda data: data.replace(b'"byteorder": "little"', b'"byteorder": "middle"', 1), "middle-endian machine"),
        (lambda data: data.replace(b"We love Marisa", b"We love Marika", 1), "the digest of its part 'names' is not"),
    ],
)
def test_damaged_files(store, tmp_path, damage, message):
    path = tmp_path / "names"
    path.write_bytes(damage(store.to_bytes()))
    with pytest.raises(ValueError, match=message):
        AliasStore.open(path)


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        AliasStore.open(tmp_path / "names")
    (tmp_path / "names").touch()
    with pytest.raises(ValueError, match="is empty"):
        AliasStore.open(tmp_path / "names")


def test_failed_save_leaves_the_old_file(store, tmp_path, monkeypatch):
    store.save(tmp_path / "names")
    before = (tmp_path / "names").read_bytes()

    def no_space(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", no_space)
        with pytest.raises(OSError, match="No space left"):
            store.save(tmp_path / "names")
    assert (tmp_path / "names").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["names", "names.tsv"]
