"""Several tries as one: the same texts, whatever the size of the parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.aliases.trie import build_trie, map_trie, new_trie

TEXTS = st.sets(st.text("abAé \U0001f600", min_size=1, max_size=5), min_size=1)


@given(TEXTS, st.integers(1, 4), st.text("abAé \U0001f600", max_size=6))
def test_as_one_trie(tmp_path_factory, texts, most, other):
    file = tmp_path_factory.mktemp("trie") / "trie"
    one, parts = new_trie(texts), []
    many = build_trie(sorted(texts), file, most=most, done=lambda part: parts.append(list(part.iterkeys())))
    assert [len(part) for part in parts[:-1]] == [most] * (len(parts) - 1)
    assert sorted(text for part in parts for text in part) == sorted(texts)
    data = memoryview(file.read_bytes())
    for trie in (many, map_trie(data)):
        assert len(trie) == len(texts)
        assert sorted(trie[text] for text in texts) == list(range(len(texts)))
        for text in texts:
            assert text in trie
            assert trie.restore_key(trie[text]) == text
            assert trie.get(text) == trie[text] == many[text]
        assert (other in trie, trie.get(other) is None) == (other in texts, other not in texts)
        for prefix in (other, other[:1], ""):
            assert sorted(trie.iterkeys(prefix)) == sorted(one.iterkeys(prefix))
        found = list(trie.iter_prefixes_with_ids(other))
        assert [text for text, _ in found] == [text for text, _ in one.iter_prefixes_with_ids(other)]
        assert [number for _, number in found] == [trie[text] for text, _ in found]
        assert trie.tobytes() == file.read_bytes()


def test_few_texts_are_a_plain_trie(tmp_path):
    for texts in ([], ["a", "b"]):
        build_trie(texts, tmp_path / "trie", most=2)
        assert (tmp_path / "trie").read_bytes() == new_trie(texts).tobytes()


def test_a_text_that_is_not_there(tmp_path):
    trie = build_trie(["a", "b", "c"], tmp_path / "trie", most=1)
    with pytest.raises(KeyError):
        trie["bb"]


@pytest.mark.parametrize("end", [b"", b"[]", b"[[64, 1]]", b"{", bytes(8), b'[[64, 99, "a"]]\x10\0\0\0\0\0\0\0'])
def test_damaged(tmp_path, end):
    build_trie(["a", "b", "c"], tmp_path / "trie", most=1)
    data = (tmp_path / "trie").read_bytes()[:64] + end
    with pytest.raises((RuntimeError, TypeError, IndexError)):  # what opening a store tells as damage
        map_trie(memoryview(data))[""]
