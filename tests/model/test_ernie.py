"""The sparse entity stream equals a plain dense one; batches change nothing."""

from dataclasses import replace

import pytest
import torch

from spacy_luke.bridge.wrapper import TorchShim
from spacy_luke.model.ernie import (
    Aggregator,
    ErnieConfig,
    Knowledge,
    default_layer_kinds,
    place_slots,
    without_knowledge,
)
from tests.model.ernies import COUNTS, KINDS, LENGTHS, SIZE, assert_close, dense, make_ernie, make_knowledge, pick
from tests.model.noise import make_windows


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("fusion", ["code", "paper"])
@pytest.mark.parametrize("activation", ["gelu", "relu", "gelu_new"])
def test_sparse_equals_dense(fusion, activation, gradients):
    encoder = make_ernie(fusion=fusion, activation=activation)
    windows, knowledge = make_windows(LENGTHS), make_knowledge()
    with torch.set_grad_enabled(gradients):
        got, expected = encoder(windows, knowledge), dense(encoder, windows, knowledge)
    scale = max(float(x.detach().abs().max()) for x in expected)
    assert_close(got, expected, atol=3e-6 * max(scale, 1))


@pytest.mark.parametrize("waste", [0.0, 0.3, 99.0])
@pytest.mark.parametrize("gradients", [True, False])
def test_batches_equal_one_by_one(monkeypatch, waste, gradients):
    monkeypatch.setattr("spacy_luke.model.packing.tolerated_waste", lambda device: waste)
    monkeypatch.setattr("spacy_luke.model.ernie.SLOT_WASTE", waste)
    encoder, windows, knowledge = make_ernie(), make_windows(LENGTHS), make_knowledge()
    with torch.set_grad_enabled(gradients):
        got = encoder(windows, knowledge)
        parts = [encoder(*pick(windows, knowledge, [i])) for i in range(len(LENGTHS))]
    assert_close(got, [torch.cat(x) for x in zip(*parts)])
    order = [3, 6, 0, 7, 5, 1, 4, 2]
    mixed = encoder(*pick(windows, knowledge, order))
    assert_close(
        mixed, [torch.cat([x.split(n)[i] for i in order]) for x, n in zip(got, (LENGTHS, COUNTS), strict=True)]
    )


@torch.no_grad()
def test_order_of_entities_is_irrelevant():
    encoder, windows, knowledge = make_ernie(), make_windows([30]), make_knowledge([30], [20])
    words, entities = encoder(windows, knowledge)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(1))
    changed = replace(knowledge, vectors_EH=knowledge.vectors_EH[order], at_E=knowledge.at_E[order])
    assert_close(encoder(windows, changed), (words, entities[order]))


@torch.no_grad()
def test_no_entities():
    """[CLS] still takes part, with a zero vector."""
    encoder, windows = make_ernie(), make_windows(LENGTHS)
    none = without_knowledge(windows, entity_size=SIZE)
    words, entities = encoder(windows, none)
    assert entities.shape == (0, SIZE)
    assert_close((words, entities), dense(encoder, windows, none))
    assert torch.equal(encoder.word_states(windows), words)
    aggregator = next(layer for layer in encoder.layers if isinstance(layer, Aggregator))
    aggregator.entity_down.bias[0] += 1.0  # the next fusion reads [CLS]'s slot, which this fusion wrote
    assert not torch.allclose(encoder.word_states(windows), words, atol=1e-3)


@torch.no_grad()
def test_entities_reach_the_words_of_their_window_only():
    encoder, windows, knowledge = make_ernie(), make_windows(LENGTHS), make_knowledge()
    words, _ = encoder(windows, knowledge)
    changed = knowledge.vectors_EH.clone()
    changed[: COUNTS[0]] += 1
    other, _ = encoder(windows, replace(knowledge, vectors_EH=changed))
    assert torch.equal(other[LENGTHS[0] :], words[LENGTHS[0] :])
    assert (other[: LENGTHS[0]] - words[: LENGTHS[0]]).abs().amax(1).min() > 1e-3


@pytest.mark.parametrize("fusion", ["code", "paper"])
def test_gradients_equal_dense_ones(fusion):
    encoder, windows, knowledge = make_ernie(fusion=fusion), make_windows(LENGTHS), make_knowledge()
    gradients = []
    for function in (lambda *x: encoder(*x), lambda *x: dense(encoder, *x)):
        encoder.zero_grad(set_to_none=True)
        known = replace(knowledge, vectors_EH=knowledge.vectors_EH.clone().requires_grad_())
        generator = torch.Generator().manual_seed(5)
        words, entities = function(windows, known)
        loss = sum((x * torch.randn(x.shape, generator=generator)).sum() for x in (words, entities))
        pooled = encoder.pool(words, LENGTHS)
        (loss + (pooled * torch.randn(pooled.shape, generator=generator)).sum()).backward()
        gradients.append({**{n: p.grad for n, p in encoder.named_parameters()}, "vectors": known.vectors_EH.grad})
    for name, sparse in gradients[0].items():
        assert sparse is not None, name
        scale = float(sparse.abs().max())
        assert scale > 0 or name.endswith("key.bias"), name
        torch.testing.assert_close(sparse, gradients[1][name], atol=2e-5 * scale + 1e-5, rtol=1e-4, msg=name)


def test_last_entity_output_has_no_gradient_from_words():
    """As in the original, which leaves these parameters out of its optimizer."""
    encoder, windows, knowledge = make_ernie(), make_windows(LENGTHS), make_knowledge()
    encoder(windows, knowledge)[0].sum().backward()
    without = {name for name, p in encoder.named_parameters() if p.grad is None and not name.startswith("pooler")}
    assert without == {
        f"layers.4.{module}.{part}" for module in ("entity_down", "entity_output_norm") for part in ("weight", "bias")
    }


@torch.no_grad()
def test_fusion_in_parts_equals_whole(monkeypatch):
    encoder, windows, knowledge = make_ernie(), make_windows(LENGTHS), make_knowledge()
    whole = encoder(windows, knowledge)
    for rows in (1, 7, sum(LENGTHS) - 1):
        monkeypatch.setattr("spacy_luke.model.ernie.FEED_FORWARD_ROWS", rows)
        assert len(place_slots(windows, knowledge).parts) == -(-sum(LENGTHS) // rows)
        assert_close(encoder(windows, knowledge), whole)


@torch.no_grad()
def test_pool_reads_the_first_piece():
    encoder, words = make_ernie(), torch.randn(sum(LENGTHS), 24)
    firsts = torch.stack([part[0] for part in words.split(LENGTHS)])
    assert_close([encoder.pool(words, LENGTHS)], [torch.tanh(encoder.pooler(firsts))])


def test_dropout_is_set_everywhere():
    """Both kinds, by the shim's setting; none in evaluation."""
    shim = TorchShim(lambda settings: make_ernie(**settings))
    shim.create({"dropout": 0.5, "attention_dropout": 0.5})
    windows, knowledge = make_windows(LENGTHS), make_knowledge()
    with torch.no_grad():
        plain = shim.module(windows, knowledge)
        for rate, same in ((0.5, False), (0.0, True)):
            shim.set_dropout(rate)
            with shim.running(is_train=True) as encoder:
                states = encoder(windows, knowledge)
            for got, expected in zip(states, plain, strict=True):
                assert torch.allclose(got, expected, atol=1e-5) == same
        assert torch.equal(shim.module(windows, knowledge)[1], plain[1])


@pytest.mark.parametrize("gradients", [True, False])
def test_bfloat16(gradients):
    """Under autocast, and as a whole: near the float32 states."""
    encoder, windows, knowledge = make_ernie(), make_windows(LENGTHS), make_knowledge()
    with torch.set_grad_enabled(gradients):
        exact = encoder(windows, knowledge)
        with torch.autocast("cpu", torch.bfloat16):
            mixed = encoder(windows, knowledge)
        low = encoder.bfloat16()(windows, knowledge)
    for states in (mixed, low):
        for got, expected in zip(states, exact, strict=True):
            assert float((got.float() - expected).detach().abs().mean()) < 0.1


@pytest.mark.parametrize(
    ("knowledge", "message"),
    [
        (
            Knowledge(torch.zeros(1, SIZE), torch.tensor([0]), [0, 1]),
            "at a piece from 1 to 3 of window 1, but it is at 0",
        ),
        (
            Knowledge(torch.zeros(1, SIZE), torch.tensor([9]), [1, 0]),
            "at a piece from 1 to 8 of window 0, but it is at 9",
        ),
        (Knowledge(torch.zeros(2, SIZE), torch.tensor([2, 2]), [0, 2]), "piece 2 of window 1 has more"),
        (Knowledge(torch.zeros(1, SIZE), torch.tensor([2]), [1]), "entities of 2 windows, but counts are given for 1"),
        (Knowledge(torch.zeros(1, SIZE), torch.tensor([2]), [1, 1]), "with 2 entities in all, and 1 places"),
        (
            Knowledge(torch.zeros(1, 7), torch.tensor([2]), [1, 0]),
            r"vectors of 12 numbers, but they have the shape \(1, 7",
        ),
    ],
)
def test_bad_knowledge(knowledge, message):
    with pytest.raises(ValueError, match=message):
        make_ernie()(make_windows([9, 4]), knowledge)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": 10}, "hidden_size must be a multiple of num_heads, but 10 % 12"),
        ({"entity_heads": 7}, "entity_size must be a multiple of entity_heads, but 100 % 7"),
        ({"layer_kinds": ("sim", "mid")}, "that of layer 1 is 'mid'"),
        ({"layer_kinds": ("sim",) * 13}, "at most the 12 layers that there are, but it names 13"),
        ({"fusion": "none"}, "fusion must be one of"),
        ({"activation": "swish"}, "activation must be one of"),
    ],
)
def test_bad_settings(change, message):
    with pytest.raises(ValueError, match=message):
        ErnieConfig(vocab_size=9, **change)


def test_config_round_trip():
    config = ErnieConfig(vocab_size=9, layer_kinds=["mix", "norm"], num_layers=3, fusion="paper")
    assert config.layer_kinds == ("mix", "norm", "sim")
    assert ErnieConfig.from_dict(config.to_dict()) == config
    assert config.max_window == 512
    with pytest.raises(ValueError, match=r"Unknown encoder settings \['colour'\]"):
        ErnieConfig.from_dict({**config.to_dict(), "colour": 1})


@pytest.mark.parametrize(
    ("layers", "sizes"),
    [(12, (5, 1, 6)), (6, (2, 1, 3)), (24, (11, 1, 12)), (3, (1, 1, 1)), (2, (0, 1, 1)), (1, (0, 1, 0))],
)
def test_default_layer_kinds(layers, sizes):
    kinds = default_layer_kinds(layers)
    assert tuple(kinds.count(kind) for kind in ("sim", "mix", "norm")) == sizes
    assert list(kinds) == sorted(kinds, key=("sim", "mix", "norm").index)


def test_parameter_names():
    """The names that saved pipelines and the tables of checkpoint names rest on."""
    names = set(make_ernie().state_dict())
    both = {f"attention.{q}" for q in ("query", "key", "value", "output")}
    plain = {*both, "attention_norm", "up", "down", "output_norm"}
    mix = {*plain, "entity_up", "entity_down", "entity_output_norm"}
    norm = {*mix, "entity_attention_norm", *(f"entity_{x}" for x in both)}
    expected = {f"words.{x}.weight" for x in ("piece", "position", "token_type", "norm")} | {"words.norm.bias"}
    for i, kind in enumerate(KINDS):
        modules = {"sim": plain, "mix": mix, "norm": norm}[kind]
        expected |= {f"layers.{i}.{module}.{part}" for module in modules for part in ("weight", "bias")}
    assert names == expected | {"pooler.weight", "pooler.bias"}
    paper = set(make_ernie(fusion="paper").state_dict())
    assert {x for x in names - paper if ".output_norm" not in x and ".entity_output_norm" not in x} == set()
    assert paper < names
