"""Matches against a plain search of all names at all words."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.aliases.counts import AliasCounts
from spacy_luke.aliases.match import Filter, count_names, join_words, match_names, split_key
from spacy_luke.aliases.trie import new_trie
from spacy_luke.text.forms import key_of

WORD = st.sampled_from(["a", "b", "B", "ab", "-", "'s", "ß", "東", " ", "\n\n"])


def make_store(names, case="exact", links=1, occurring=1):
    counts = AliasCounts(case)
    for name in names:
        if (number := counts.add_name(name)) is not None:
            counts.add_link(number, name.upper())
            counts.add_total(number, total=links, linked=links, occurring=occurring)
    return counts.build()


def spans(store, words, **settings):
    overlaps = settings.pop("overlaps", False)
    text = join_words(((word, True) for word in words), case=store.case)
    found = match_names(store, text, names=Filter(**settings), overlaps=overlaps)
    return [(text.number_W[match.start], text.number_W[match.end - 1] + 1) for match in found]


def naive_spans(names, words, case, max_words, overlaps):
    """Every run of words whose joined text has the key of a name; then the longest from the left."""
    keys = {key_of(name, case=case) for name in names} - {""}
    solid = [i for i, word in enumerate(words) if word.strip()]
    found = []
    for a in range(len(solid)):
        for b in range(a, min(len(solid), a + max_words)):
            run = words[solid[a] : solid[b] + 1]
            if "\n\n" not in run and key_of(" ".join(run), case=case) in keys:
                found.append((solid[a], solid[b] + 1))
    if overlaps:
        return found
    kept: list = []
    for start in solid:
        here = [span for span in found if span[0] == start]
        if here and (not kept or start >= kept[-1][1]):
            kept.append(here[-1])
    return kept


@given(
    st.lists(st.lists(WORD, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=8),
    st.lists(WORD, max_size=15),
    st.sampled_from(["exact", "casefold"]),
    st.integers(1, 4),
    st.booleans(),
)
def test_as_a_plain_search(names, words, case, max_words, overlaps):
    store = make_store([name for name in names if name.strip()] or ["x"], case)
    found = spans(store, words, max_words=max_words, overlaps=overlaps)
    assert found == naive_spans([name for name in names if name.strip()] or ["x"], words, case, max_words, overlaps)


def test_longest_from_the_left():
    store = make_store(["New York", "York City Hall", "City", "City Hall"])
    words = "in New York City Hall".split()
    assert spans(store, words) == [(1, 3), (3, 5)]
    assert spans(store, words, overlaps=True) == [(1, 3), (2, 5), (3, 4), (3, 5)]
    assert spans(store, words, max_words=1) == [(3, 4)]


@pytest.mark.parametrize("words", [["Yorkshire"], ["New", "Yorkshire"], ["New-York"], ["new", "york"], []])
def test_nothing_to_find(words):
    assert spans(make_store(["York", "New York"]), words) == []


def test_a_name_within_a_word_of_the_doc_is_none():
    """Words are those of the Doc: a tokenizer that keeps "York-based" whole hides York."""
    assert spans(make_store(["York"]), ["York-based"]) == []
    assert spans(make_store(["York"]), ["York", "-based"]) == [(0, 1)]


def test_blanks_and_paragraphs():
    store = make_store(["New York"])
    assert spans(store, ["New", "  ", "York"]) == [(0, 3)]
    assert spans(store, ["New", "\n", "York"]) == [(0, 3)]
    assert spans(store, ["New", "\n\n", "York"]) == []
    assert spans(store, ["\n\n", "New", "York", "\n"]) == [(1, 3)]


def test_words_joined_without_blanks():
    store = make_store(["NewYork", "AT&T", "New York"])
    text = join_words([("New", False), ("York", False), ("AT", False), ("&", True), ("T", True)], case="exact")
    assert text.text == "NewYorkAT&T"
    assert [(x.start, x.end) for x in match_names(store, text)] == [(0, 2), (2, 5)]


def test_shorter_name_where_the_longer_is_not_linked_enough():
    counts = AliasCounts("exact")
    for name, occurring in (("Big", 10), ("Big Bang", 1000)):
        number = counts.add_name(name)
        counts.add_link(number, name)
        counts.add_total(number, total=1, linked=1, occurring=occurring)
    store = counts.build()
    assert spans(store, ["Big", "Bang"]) == [(0, 2)]
    assert spans(store, ["Big", "Bang"], min_link_probability=0.05) == [(0, 1)]
    assert spans(store, ["Big", "Bang"], min_link_probability=0.1) == [(0, 1)], "0.1 is not a float32"
    assert spans(store, ["Big", "Bang"], min_link_probability=0.11) == []


@given(st.lists(WORD, max_size=20))
def test_counts_are_of_all_places(words):
    names = ["a", "a b", "b", "ab", "a-b", "東"]
    trie, counts = new_trie(sorted(names)), array("Q", [0] * len(names))
    text = split_key(key_of(" ".join(words), case="exact"))
    count_names(trie, text, counts, longest=3)
    runs = [
        text.text[text.start_W[i] : text.end_W[j]]
        for i in range(len(text.start_W))
        for j in range(i, len(text.start_W))
    ]
    assert {name: counts[trie[name]] for name in names} == {name: runs.count(name) for name in names}
