"""Which mentions of a name are of one thing: the pair of name and context decides."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.facts import clusters
from spacy_luke.facts.clusters import Unlinked, cluster, order_of

FEATURES = [*"abcdefgh", "@x", "@y", "=Q1", "=Q2"]


def one(number, context, *, key="ada", label="PER", known=""):
    document = f"d{number}"
    return Unlinked(key, label, known, order_of(document), document, 0, 0, sorted(context))


def nodes(found, similarity=0.3):
    return [node for _, node in cluster(found, similarity)]


def weigh(features):
    return sum(3 if x[0] in "@=" else 1 for x in features)


def plain(found, similarity):
    """Each with the first of the things that are most like it, compared with all."""
    things, numbers = [], []
    for x in found:
        own = weigh(x.context) or 1
        like = [weigh(set(x.context) & thing) / own for thing in things]
        best = max(range(len(things)), key=lambda i: like[i], default=None)
        if best is None or like[best] < similarity:
            best = len(things)
            things.append(set())
        things[best] |= set(x.context)
        numbers.append(best)
    return numbers


@given(st.lists(st.lists(st.sampled_from(FEATURES), unique=True, min_size=1), max_size=12), st.sampled_from([0.2, 0.5]))
def test_as_a_plain_loop(contexts, similarity):
    found = [one(i, x) for i, x in enumerate(contexts)]
    named = {}
    assert [named.setdefault(x, len(named)) for x in nodes(found, similarity)] == plain(found, similarity)


def test_contexts():
    poet, banker = "abc", "fgh"
    found = nodes([one(0, poet), one(1, banker), one(2, "abd"), one(3, "ghe"), one(4, "z")])
    assert found[0] == found[2]
    assert found[1] == found[3]
    assert len(set(found)) == 3
    assert len(set(nodes([one(0, poet), one(1, poet, label="ORG")]))) == 2
    assert len(set(nodes([one(0, poet), one(1, poet, key="bob")]))) == 2


def test_longer_names_need_less():
    contexts = ["abcdefgh", "a@x@y"]
    assert len(set(nodes([one(i, x) for i, x in enumerate(contexts)]))) == 2
    assert len(set(nodes([one(i, x, key="ada byron") for i, x in enumerate(contexts)]))) == 1
    bare = [one(i, "", key="ada byron") for i in range(3)]
    assert len(set(nodes(bare))) == 1
    assert len(set(nodes([one(i, "") for i in range(3)]))) == 3


def test_no_similarity_is_names_alone():
    assert len(set(nodes([one(i, "abcdefgh"[i]) for i in range(5)], similarity=0.0))) == 1


def test_later_ones_change_nothing():
    drawn = random.Random(0)
    found = [one(i, drawn.sample(FEATURES, 3)) for i in range(60)]
    assert nodes(found)[:20] == nodes(found[:20])
    assert len(set(nodes(found))) > 2


def test_what_an_earlier_graph_knows():
    found = [one(7, "abc", known="nil:1"), one(8, "xyz", known="nil:1"), one(9, "fgh", known="nil:2"), one(1, "abd")]
    assert nodes(found) == ["nil:1", "nil:1", "nil:2", "nil:1"]


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(clusters, "MOST_FEATURES", 4)
    monkeypatch.setattr(clusters, "MOST_THINGS", 2)
    found = nodes([one(0, "abcd"), one(1, "abef"), one(2, "cd"), one(3, "gh"), one(4, "xy"), one(5, "abef")])
    assert found[0] == found[1]
    assert found[2] != found[0], "what was seen first of it is forgotten"
    assert found[5] != found[0], "it was seen before two others"


@pytest.mark.parametrize(("first", "second"), [("a:9", "a:10"), ("a:10", "b:9"), ("2024-1-31", "2024-2-1"), ("", "0")])
def test_order(first, second):
    assert order_of(first) < order_of(second)
