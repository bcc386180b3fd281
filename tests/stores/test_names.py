import numpy as np
import pytest

from spacy_luke.stores import names as module
from spacy_luke.stores.names import NameIndex, NameList, hash_names


def test_name_list():
    names = NameList([b"a", b"", "é".encode(), b"a"])
    assert list(names) == [b"a", b"", "é".encode(), b"a"]
    assert (names[2], len(names)) == ("é".encode(), 4)
    assert names.starts().tolist() == [0, 2, 3, 6, 8]
    assert sorted(NameIndex.of(names).repeated()) == [(3, 0)]
    first = names.hashes()
    names.append(b"b")
    assert names.hashes().tolist() == [*first.tolist(), *hash_names([b"b"]).tolist()]


def test_digests_are_the_same_everywhere():
    assert hash_names([b"Q1", b"Q2"]).tolist() == [3757363940432925973, 10714050888791298100]


@pytest.mark.parametrize("digests", [1, 2, 3])
def test_names_of_one_digest_are_told_apart(monkeypatch, digests):
    monkeypatch.setattr(
        module, "hash_names", lambda names: np.array([len(name) % digests for name in names], np.uint64)
    )
    words = [b"a", b"bb", b"c", b"dd", b"eee", b"f", b"a", b"eee", b"gg"]
    index = NameIndex.of(NameList(words))
    asked = [*words, b"x", b"yy", b"zzz", b""]
    assert index.find(asked).tolist() == [words.index(name) if name in words else -1 for name in asked]
    assert sorted(index.repeated()) == [(6, 0), (7, 4)]


def test_no_names():
    assert NameIndex.of(NameList()).find([b"a"]).tolist() == [-1]
