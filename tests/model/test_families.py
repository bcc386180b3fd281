"""Entities of all families: as a plain twin computes them, and packed as one by one, in states and gradients."""

from dataclasses import replace

import pytest
import torch

from spacy_luke.bridge.wrapper import TorchShim
from spacy_luke.model.families import FAMILIES, build_encoder
from spacy_luke.model.recompute import recomputing
from spacy_luke.pretraining.luke.task import LukePretraining
from tests.model.family_twin import run_twin
from tests.model.noise import COUNTS, LENGTHS, add_noise, make_mentions, make_windows, pick

SIZES = {
    "vocab_size": 50,
    "entity_vocab_size": 9,
    "hidden_size": 24,
    "num_layers": 3,
    "num_heads": 4,
    "intermediate_size": 40,
    "entity_size": 8,
    "max_positions": 40,
}
FURTHER = [name for name in FAMILIES if name != "luke"]
TWINS = [*("mpnet", "electra", "distilbert"), "luke"]  # the others have twins of their own
MODES = ["full", "one_way", "together", "last"]


def make(family, **settings):
    further = {"embedding_size": 16} if family == "electra" else {}
    return add_noise(build_encoder(FAMILIES[family].config(**SIZES | further | settings)))


def run(encoder, windows, mentions, mode):
    """Word states, but for "last", and entity states."""
    if mode == "full":
        return encoder(windows, mentions)
    if mode == "last":
        return (encoder.entity_states(windows, mentions),)
    words = encoder.encode_words(windows)
    return words.states_ND, encoder.encode_entities(words, mentions, group_size=None if mode == "together" else 1)


def run_one_by_one(encoder, windows, mentions, mode):
    parts = [run(encoder, *pick(windows, mentions, [i]), mode) for i in range(len(LENGTHS))]
    return tuple(torch.cat(x) for x in zip(*parts))


@pytest.fixture(params=[0.0, 0.3, 99.0], ids=["unpadded", "some_padding", "one_call"])
def waste(request, monkeypatch):
    monkeypatch.setattr("spacy_luke.model.packing.tolerated_waste", lambda device: request.param)


@pytest.mark.product
@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("family", FURTHER)
def test_packed_equals_one_by_one(waste, family, mode, aware):
    """Also without gradients, where a CPU does it otherwise; and the same gradient for every parameter."""
    encoder, windows, mentions = make(family, entity_aware=aware), make_windows(), make_mentions()
    generator = torch.Generator().manual_seed(5)
    rows = [sum(LENGTHS), sum(COUNTS)] if mode != "last" else [sum(COUNTS)]
    weights = [torch.randn(n, encoder.config.hidden_size, generator=generator) for n in rows]
    found = []
    for function in (run, run_one_by_one):
        encoder.zero_grad(set_to_none=True)
        states = function(encoder, windows, mentions, mode)
        sum((x * w).sum() for x, w in zip(states, weights, strict=True)).backward()
        found.append((states, {name: p.grad for name, p in encoder.named_parameters()}))
    with torch.no_grad():
        without = run(encoder, windows, mentions, mode)
    for packed, single, quick in zip(found[0][0], found[1][0], without, strict=True):
        torch.testing.assert_close(packed, single, atol=5e-6, rtol=1e-5)
        torch.testing.assert_close(quick, single, atol=5e-6, rtol=1e-5)
    for name, packed in found[0][1].items():
        if packed is None:
            assert found[1][1][name] is None
            assert "w2e_query" in name, name
            continue
        scale = float(packed.abs().max())
        unasked = mode == "last" and name.startswith(f"layers.{SIZES['num_layers'] - 1}.attention.")
        assert scale > 0 or name.endswith("key.bias") or (unasked and "query" in name), name
        torch.testing.assert_close(packed, found[1][1][name], atol=1e-5 * scale + 1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("mode", ["full", "one_way", "together", "pairs"])
@pytest.mark.parametrize("family", TWINS)
def test_entities_are_those_of_a_plain_twin(family, mode, aware):
    """Padding, explicit masks and loops over pieces: the same states, and the same gradient for every parameter."""
    counts = (4, 0, 2, 2, 2, 0, 6) if mode == "pairs" else COUNTS
    encoder = make(family, entity_aware=aware, num_layers=2)
    windows, mentions = make_windows(types=encoder.config.token_types), make_mentions(counts=counts)
    mentions = replace(mentions, types_E=mentions.entities_E % max(encoder.config.token_types, 1))
    generator = torch.Generator().manual_seed(5)
    weights = [torch.randn(n, encoder.config.hidden_size, generator=generator) for n in (sum(LENGTHS), sum(counts))]
    found = []
    for function in (run_mode, run_twin_mode):
        encoder.zero_grad(set_to_none=True)
        states = function(encoder, windows, mentions, mode)
        sum((x * w).sum() for x, w in zip(states, weights, strict=True)).backward()
        found.append((states, {name: p.grad for name, p in encoder.named_parameters()}))
    with torch.no_grad():
        without = run_mode(encoder, windows, mentions, mode)
    for ours, twin, quick in zip(found[0][0], found[1][0], without, strict=True):
        torch.testing.assert_close(ours, twin, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(quick, twin, atol=1e-5, rtol=1e-5)
    for name, ours in found[0][1].items():
        twin = found[1][1][name]
        if ours is None:
            assert mode != "full"
            assert "w2e_query" in name
            continue
        scale = float(twin.abs().max())
        torch.testing.assert_close(ours, twin, atol=2e-5 * scale + 2e-5, rtol=1e-3, msg=f"{name}: {scale}")


def run_mode(encoder, windows, mentions, mode):
    if mode == "full":
        return encoder(windows, mentions)
    words = encoder.encode_words(windows)
    group = {"one_way": 1, "pairs": 2, "together": None}[mode]
    return words.states_ND, encoder.encode_entities(words, mentions, group_size=group)


def run_twin_mode(encoder, windows, mentions, mode):
    if mode == "pairs":
        return run_twin(encoder, windows, mentions, "one_way", group=2)
    return run_twin(encoder, windows, mentions, mode)


@pytest.mark.parametrize("family", TWINS)
def test_the_twin_finds_what_is_swapped(family):
    """A test of the test: the twin disagrees as soon as two matrices change places."""
    encoder = make(family, num_layers=2)
    windows, mentions = make_windows(types=encoder.config.token_types), make_mentions()
    pairs = [("w2e_query", "e2w_query"), ("e2w_query", "e2e_query"), ("query", "w2e_query"), ("key", "value")]
    with torch.no_grad():
        wanted = run_twin(encoder, windows, mentions, "full")
        for one, other in pairs:
            attention = encoder.layers[0].attention
            swap(attention, one, other)
            found = encoder(windows, mentions)
            assert max((a - b).abs().max() for a, b in zip(found, wanted)) > 1e-3, (one, other)
            swap(attention, one, other)


def swap(attention, one, other):
    first, second = getattr(attention, one), getattr(attention, other)
    setattr(attention, one, second)
    setattr(attention, other, first)


def test_masked_words_need_a_table_as_wide_as_the_layers():
    """ELECTRA's may be narrower: pretraining says so before it begins."""
    config = make("electra").config
    with pytest.raises(ValueError, match=r"as wide as the layers \(24\), but its rows have 16 numbers"):
        LukePretraining(config, mask_rows=(3,))
    LukePretraining(config, mask_rows=(3,), words=False)


@pytest.mark.parametrize("mode", ["full", "one_way"])
@pytest.mark.parametrize("family", FURTHER)
def test_layers_that_are_computed_again_give_the_same_gradients(family, mode):
    encoder, windows, mentions, found = make(family).double(), make_windows(), make_mentions(), []
    for wanted in (False, True):
        encoder.zero_grad(set_to_none=True)
        with recomputing(wanted):
            sum(x.square().sum() for x in run(encoder, windows, mentions, mode)).backward()
        found.append({name: p.grad for name, p in encoder.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    for name, own in found[0].items():
        torch.testing.assert_close(found[1][name], own, msg=name)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("family", FURTHER)
def test_no_dropout_is_none_anywhere(family, mode):
    """`nlp.update(drop=0)` reaches every rate that the checkpoint named: training passes are those of predictions."""
    encoder, windows, mentions = make(family, dropout=0.5, attention_dropout=0.5), make_windows(), make_mentions()
    shim = TorchShim(lambda settings: encoder)
    shim.create({})
    shim.set_dropout(0.0)
    expected = run(encoder.eval(), windows, mentions, mode)
    for found, states in zip(run(encoder.train(), windows, mentions, mode), expected, strict=True):
        assert torch.allclose(found, states, atol=1e-4)


@pytest.mark.parametrize("group", [1, None])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_entities_without_the_states_of_words(family, group):
    """The same entity states, and the same gradient for every parameter."""
    windows, mentions, found = make_windows(), make_mentions(), []
    for states in (True, False):
        encoder = make(family)
        words = encoder.encode_words(windows, states=states)
        entities_ED = encoder.encode_entities(words, mentions, group_size=group)
        entities_ED.square().sum().backward()
        found.append((len(words.states_ND), entities_ED, [p.grad for p in encoder.parameters()]))
    (with_states, one, its), (without, other, others) = found
    assert with_states == sum(LENGTHS)
    assert without == 0
    assert torch.equal(one, other)
    assert [x is None for x in its] == [x is None for x in others]
    assert all(a is None or torch.equal(a, b) for a, b in zip(its, others, strict=True))
