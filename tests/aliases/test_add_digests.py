"""Stores of names of version 1: refused where nobody vouches for them, checked, and written anew."""

import pytest

from spacy_luke.aliases.add_digests import add_digests, find_unchecked
from spacy_luke.aliases.build import build_store
from spacy_luke.aliases.store import AliasStore
from spacy_luke.kb.knowledge_base import EntityKB
from tests.aliases.version_1 import as_version_1
from tests.kb.kbs import small_kb
from tests.sealing import reseal

TABLE = "name\tentity\tcount\toccurrences\nYork\tYork\t3\t40\nYork\tNew York\t1\t40\nOld York\tYork\t9\t9\n"


@pytest.fixture
def store(tmp_path):
    (tmp_path / "names.tsv").write_text(TABLE, encoding="utf8")
    return build_store([tmp_path / "names.tsv"]).store


def test_a_file_of_version_1(store, tmp_path):
    path = tmp_path / "mentions"
    path.write_bytes(as_version_1(store.to_bytes()))
    with pytest.raises(
        ValueError, match=r"mentions is a store of names of version 1, which has no digests.*add-digests"
    ):
        AliasStore.open(path)
    with pytest.raises(ValueError, match="the bytes is a store of names of version 1"):
        AliasStore(path.read_bytes())
    assert list(find_unchecked(tmp_path)) == list(find_unchecked(path)) == [path]
    add_digests(path)
    assert path.read_bytes() == store.to_bytes()
    assert not list(find_unchecked(tmp_path))


def test_damaged_ones_stay_as_they_are(store, tmp_path):
    """Whatever the flipped byte does to the process that reads it."""
    path, good = tmp_path / "mentions", as_version_1(store.to_bytes())
    start = good.index(b"We love Marisa")
    path.write_bytes(good[: start + 24] + bytes([255] * 40) + good[start + 64 :])
    before = path.read_bytes()
    with pytest.raises(ValueError, match="mentions is a damaged store of names"):
        add_digests(path)
    assert path.read_bytes() == before


def test_a_knowledge_base_vouches_for_its_names(tmp_path):
    """Those of earlier versions are read: their manifests have the digests of whole files."""
    kb = small_kb(tmp_path)
    found = kb.candidates("Clinton")
    names = kb.path / "0" / "names"
    names.write_bytes(as_version_1(names.read_bytes()))
    reseal(kb.path)
    assert not list(find_unchecked(tmp_path))
    assert EntityKB.open(kb.path).candidates("Clinton") == found
    data = bytearray(names.read_bytes())
    data[-1] ^= 1
    names.write_bytes(data)
    with pytest.raises(ValueError, match="names is damaged, or belongs to another knowledge base"):
        EntityKB.open(kb.path)
