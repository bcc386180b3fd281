"""Packed fused attention equals a plain loop over queries, heads and keys."""

import functools

import pytest
import torch
from torch import Tensor

from spacy_luke.model.attention import Attention
from spacy_luke.model.attention_cpu import FEW, XEON_PLAIN_KEYS
from spacy_luke.model.packing import entity_rows, pack, pack_pairs
from tests.model.attentions import BATCHES, CPU, D, H, expected, make, make_sizes
from tests.model.noise import COUNTS, LENGTHS


@functools.cache
def expected_in_groups(name: str, group: int, aware: bool) -> tuple[Tensor, Tensor]:
    """Entities that see their group, and those that see themselves alone."""
    lengths, counts = BATCHES[name][0], [group * n for n in BATCHES[name][1]]
    inputs = make_sizes(lengths, counts, aware)
    together, alone = (expected(*inputs, lengths, counts, one_way=True, group=n)[1] for n in (group, 1))
    return together, alone


def wasteful(monkeypatch, waste: float) -> None:
    monkeypatch.setattr("spacy_luke.model.packing.tolerated_waste", lambda device: waste)


def hardly_drop(attention: Attention, gradients: object) -> None:
    """The computation with dropout, at a rate at which nothing falls."""
    if gradients == "dropout":
        attention.train().dropout = 1e-15


def test_kernels_of_short_and_long_windows_learn_the_same(monkeypatch):
    """With gradients short windows are computed plainly, and long ones by the fused kernel."""
    fused = torch.nn.functional.scaled_dot_product_attention
    calls = []
    monkeypatch.setattr(
        torch.nn.functional, "scaled_dot_product_attention", lambda *x, **y: calls.append(1) or fused(*x, **y)
    )
    found = []
    for keys in (0, 64):
        monkeypatch.setitem(XEON_PLAIN_KEYS, torch.float32, keys)
        attention, words, entities, lengths, counts = make("ragged", True)
        attention, words = attention.float(), words.float().requires_grad_()
        calls.clear()
        out = attention(words, entities.float(), pack_pairs(lengths, counts, device=CPU))
        (out[0].square().sum() + out[1].square().sum()).backward()
        found.append((out[0].detach(), out[1].detach(), words.grad, attention.w2e_query.weight.grad))
        assert bool(calls) == (keys == 0)
    for fused_numbers, plain_numbers in zip(*found, strict=True):
        torch.testing.assert_close(plain_numbers, fused_numbers, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("gradients", [True, False, "dropout"])  # other kernels may run where there are none
@pytest.mark.parametrize("waste", [0.0, 0.3, 99.0])
@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("name", BATCHES)
def test_full_equals_loop(monkeypatch, name, aware, waste, gradients):
    wasteful(monkeypatch, waste)
    attention, words, entities, lengths, counts = make(name, aware)
    hardly_drop(attention, gradients)
    with torch.set_grad_enabled(bool(gradients)):
        got = attention(words, entities, pack_pairs(lengths, counts, device=CPU))
    wanted = expected(attention, words, entities, lengths, counts, one_way=False)
    for g, w in zip(got, wanted, strict=True):
        torch.testing.assert_close(g.detach(), w, atol=1e-12, rtol=0)
    with torch.set_grad_enabled(bool(gradients)):
        last = attention.entities_last(words, entities, pack_pairs(lengths, counts, device=CPU))
    torch.testing.assert_close(last.detach(), wanted[1], atol=1e-12, rtol=0)


@pytest.mark.parametrize("gradients", [True, False, "dropout"])
@pytest.mark.parametrize("waste", [0.0, 0.3, 99.0])
@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("name", BATCHES)
def test_one_way_equals_loop(monkeypatch, name, aware, waste, gradients):
    wasteful(monkeypatch, waste)
    attention, words, entities, lengths, counts = make(name, aware)
    hardly_drop(attention, gradients)
    packing = pack(lengths, device=CPU)
    with torch.set_grad_enabled(bool(gradients)):
        got_words, keys, values = attention.words_only(words, packing)
        rows = entity_rows(packing, counts)
        got_entities = attention.entities_only(entities, keys, values, rows)
    wanted = expected(attention, words, entities, lengths, counts, one_way=True)
    torch.testing.assert_close(got_words.detach(), wanted[0], atol=1e-12, rtol=0)
    torch.testing.assert_close(got_entities.detach(), wanted[1], atol=1e-12, rtol=0)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("waste", [0.0, 0.3, 99.0])
@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("group", [2, 3])
@pytest.mark.parametrize("name", BATCHES)
def test_groups_equal_loop(monkeypatch, name, group, aware, waste, gradients):
    """Entities that see the words and each other, by twos and threes; some windows have many groups, some none."""
    wasteful(monkeypatch, waste)
    lengths, counts = BATCHES[name][0], [group * n for n in BATCHES[name][1]]
    attention, words, entities = make_sizes(lengths, counts, aware)
    packing = pack(lengths, device=CPU)
    with torch.set_grad_enabled(gradients):
        _, keys, values = attention.words_only(words, packing)
        rows = entity_rows(packing, counts)
        got = attention.entities_only(entities, keys, values, rows, group_size=group)
    wanted, alone = expected_in_groups(name, group, aware)
    torch.testing.assert_close(got.detach(), wanted, atol=1e-12, rtol=0)
    assert not sum(counts) or (wanted - alone).abs().max() > 1e-3  # a twin that knew no groups would be seen


@pytest.mark.parametrize("waste", [0.0, 99.0])
def test_gradients_of_groups(monkeypatch, waste):
    """Through the queries, and the keys and values of words and of the other members, by finite differences."""
    wasteful(monkeypatch, waste)
    lengths, counts = [3, 2], [4, 2]
    attention, words, entities = make_sizes(lengths, counts, True)
    packing = pack(lengths, device=CPU)
    rows = entity_rows(packing, counts)

    def run(words: Tensor, entities: Tensor) -> Tensor:
        _, keys, values = attention.words_only(words, packing)
        return attention.entities_only(entities, keys, values, rows, group_size=2)

    torch.autograd.gradcheck(run, (words.requires_grad_(), entities.requires_grad_()), fast_mode=True)


def test_loop_is_sensitive():
    """The twin tells the two modes and the four queries apart, so that the tests above can fail."""
    attention, words, entities, lengths, counts = make("ragged", True)
    wanted = expected(attention, words, entities, lengths, counts, one_way=False)
    other = expected(attention, words, entities, lengths, counts, one_way=True)
    assert (wanted[0] - other[0]).abs().max() > 1e-3
    assert (wanted[1] - other[1]).abs().max() > 1e-3
    attention.w2e_query, attention.e2w_query = attention.e2w_query, attention.w2e_query
    other = expected(attention, words, entities, lengths, counts, one_way=False)
    assert min((a - b).abs().max() for a, b in zip(wanted, other)) > 1e-3


def test_few_and_many_entities_are_exercised():
    """Few are folded into the words' keys; the batches above have both."""
    most = {max(counts) for _, counts in BATCHES.values() if any(counts)}
    assert {n * H * FEW <= D for n in most} == {True, False}


@pytest.mark.parametrize("waste", [0.0, 99.0])
def test_masks_are_exercised(monkeypatch, waste):
    """On a CPU nothing is padded; with waste allowed, the tests above run masked groups."""
    wasteful(monkeypatch, waste)
    for packing in (pack(LENGTHS, device=CPU), pack_pairs(LENGTHS, COUNTS, device=CPU)):
        masked = [group.real_BL is not None for group in packing.groups]
        assert masked == ([True] if waste else [False] * len(masked))


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("waste", [0.0, 99.0])
@pytest.mark.parametrize("aware", [True, False])
def test_large_scores_stay_finite(monkeypatch, aware, waste, group):
    """Scores of hundreds overflow nothing, in either mode."""
    wasteful(monkeypatch, waste)
    lengths, counts = LENGTHS, [group * n for n in COUNTS]
    attention, words, entities = make_sizes(lengths, counts, aware)
    words, entities = 100 * words, 100 * entities
    packing = pack(lengths, device=CPU)
    with torch.no_grad():
        _, keys, values = attention.words_only(words, packing)
        rows = entity_rows(packing, counts)
        one_way = attention.entities_only(entities, keys, values, rows, group_size=group)
        full = attention(words, entities, pack_pairs(lengths, counts, device=CPU))
    for got, mode in ((one_way, True), (full[1], False)):
        wanted = expected(attention, words, entities, lengths, counts, one_way=mode, group=group)[1]
        torch.testing.assert_close(got, wanted, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize(("runs", "error"), [(400, 0.3), pytest.param(4000, 0.1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", ["full", "one_way"])
def test_dropout_only_in_training(mode, runs, error):
    attention, words, entities, lengths, counts = make("ragged", True)
    packing = pack(lengths, device=CPU)
    pairs = pack_pairs(lengths, counts, device=CPU)

    def run() -> Tensor:
        if mode == "full":
            return attention(words, entities, pairs)[1]
        _, keys, values = attention.words_only(words, packing)
        return attention.entities_only(entities, keys, values, entity_rows(packing, counts))

    torch.manual_seed(0)
    attention.dropout = 0.5
    still = run()
    assert torch.equal(still, run())
    attention.train()
    assert not torch.allclose(run(), run())
    mean = torch.stack([run() for _ in range(runs)]).mean(0)  # weights stay what they are on average
    torch.testing.assert_close(mean, still, atol=error, rtol=0)
    attention.dropout = 0.0
    torch.testing.assert_close(run(), still)
