"""Heads and the choice of spans against plain Python."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.model.span_heads import LENGTHS, EntityHead, SpanHead, SpanProposer, choose_best, plan_choice
from tests.model.noise import add_noise

FIRST, LAST = torch.tensor([0, 2, 2, 5]), torch.tensor([0, 2, 6, 9])


@pytest.mark.parametrize("features", ["all", "words", "entity"])
@torch.no_grad()
def test_span_features(features):
    head = add_noise(SpanHead(6, 4, features=features))
    generator = torch.Generator().manual_seed(1)
    words, entities = torch.randn(10, 6, generator=generator), torch.randn(4, 6, generator=generator)
    weight, bias = head.classifier.weight, head.classifier.bias
    for i, row in enumerate(head(words, FIRST, LAST, entities)):
        parts = {"all": [words[FIRST[i]], words[LAST[i]], entities[i]], "entity": [entities[i]]}
        parts["words"] = parts["all"][:2]
        torch.testing.assert_close(row, weight @ torch.cat(parts[features]) + bias)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("features", ["all", "words", "entity"])
@pytest.mark.parametrize("units", [[[0], [3], [1]], [[0, 1], [1, 0], [3, 3]], [[2, 0, 1]], []])
@torch.no_grad()
def test_entity_features(units, features, bias):
    """The features of a unit are those of its entity tokens one after another, in the unit's order, not the text's."""
    states = len(units[0]) if units else 2
    head = add_noise(EntityHead(6, 4, states=states, features=features, bias=bias))
    generator = torch.Generator().manual_seed(1)
    words, entities = torch.randn(10, 6, generator=generator), torch.randn(4, 6, generator=generator)
    table = torch.tensor(units, dtype=torch.long).reshape(-1, states)
    got = head(words, FIRST, LAST, None if features == "words" else entities, table)
    assert got.shape == (len(units), 4)
    assert (head.classifier.bias is not None) == bias
    for unit, row in zip(units, got, strict=True):
        parts = []
        for i in unit:
            parts += [] if features == "entity" else [words[FIRST[i]], words[LAST[i]]]
            parts += [] if features == "words" else [entities[i]]
        wanted = head.classifier.weight @ torch.cat(parts)
        torch.testing.assert_close(row, wanted + head.classifier.bias if bias else wanted)


@pytest.mark.parametrize("head", [SpanHead, lambda *sizes, **settings: EntityHead(*sizes, states=1, **settings)])
def test_unknown_features(head):
    with pytest.raises(ValueError, match=r"features must be one of .* but it is 'some'"):
        head(6, 4, features="some")


@torch.no_grad()
def test_proposer_equals_plain_sum():
    proposer = add_noise(SpanProposer(6, size=5))
    words = torch.randn(10, 6, generator=torch.Generator().manual_seed(2))
    lengths = torch.tensor([1, LENGTHS, LENGTHS + 1, 400])
    for i, score in enumerate(proposer(words, FIRST, LAST, lengths)):
        row = min(int(lengths[i]), LENGTHS) - 1
        hidden = proposer.first(words[FIRST[i]]) + proposer.last.weight @ words[LAST[i]] + proposer.length.weight[row]
        torch.testing.assert_close(score, (proposer.score.weight @ hidden.clamp(min=0) + proposer.score.bias)[0])


@given(
    st.lists(st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 3.0]), max_size=7), min_size=1, max_size=5),
    st.lists(st.sampled_from([0, 1, 2, 3, 100, 2**63 - 1]), min_size=5, max_size=5),
)
def test_choose_best_equals_sorting(scores, budgets):
    """Many equal scores; windows without spans; budgets of none, some and more than there are."""
    budgets = budgets[: len(scores)]
    expected, start = [], 0
    for own, budget in zip(scores, budgets):
        best = sorted(range(len(own)), key=lambda i: (-own[i], i))[:budget]
        expected += [start + i for i in sorted(best)]
        start += len(own)
    flat = torch.tensor([x for own in scores for x in own])
    assert choose_best(flat, plan_choice([len(own) for own in scores], budgets)).tolist() == expected
