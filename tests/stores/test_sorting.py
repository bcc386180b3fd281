"""Sorted runs give what sorting everything in memory gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.stores import sorting
from spacy_luke.stores.sorting import SortedLines, SortedSums

KEY = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\n"), max_size=3)


@given(st.lists(KEY), st.integers(1, 4))
def test_lines(tmp_path_factory, keys, most):
    lines = SortedLines(tmp_path_factory.mktemp("runs") / "lines", most=most)
    for key in keys:
        lines.add(key + "\n")
    assert list(lines) == sorted(key + "\n" for key in keys)


@given(st.lists(KEY), st.integers(1, 6))
def test_lines_by_their_characters(tmp_path_factory, keys, room):
    """In runs of so many characters, of which few are open at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MOST_RUNS", 2)
        folder = tmp_path_factory.mktemp("runs") / "lines"
        lines = SortedLines(folder, room=room)
        for key in keys:
            lines.add(key + "\n")
            assert len(list(folder.iterdir())) < 2
    expected = sorted(key + "\n" for key in keys)
    assert list(lines) == expected == list(lines), "it is read as often as one likes"


@given(st.lists(st.tuples(KEY.map(lambda key: key + "\t0"), st.integers(1, 3))), st.integers(1, 4))
def test_sums(tmp_path_factory, pairs, most):
    sums, plain = SortedSums(tmp_path_factory.mktemp("runs") / "sums", most=most), {}
    for key, weight in pairs:
        sums.add(key, weight)
        plain[key] = plain.get(key, 0) + weight
    assert dict(sums) == plain
    assert [key for key, _ in sums] == sorted(plain, key=lambda key: key + "\t") or most > len(plain)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from([0.1, 0.2, 0.3]))))
def test_sums_of_many_runs(tmp_path_factory, pairs):
    """Few files are open at once, and sums are the same to the bit."""
    folder = tmp_path_factory.mktemp("runs")
    plain = SortedSums(folder / "plain", most=1)
    with pytest.MonkeyPatch.context() as patch:
        for key, weight in pairs:
            plain.add(key, weight)
        patch.setattr(sorting, "MOST_RUNS", 2)
        sums = SortedSums(folder / "sums", most=1)
        for key, weight in pairs:
            sums.add(key, weight)
            assert len(list((folder / "sums").iterdir())) < 2
    assert list(sums) == list(plain)


def test_folder_must_be_new(tmp_path):
    with pytest.raises(FileExistsError):
        SortedLines(tmp_path)
