"""Entities of all families: packed as one by one, in states and gradients, with and without gradients."""

import pytest
import torch

from spacy_luke.model.families import FAMILIES, build_encoder
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
MODES = ["full", "one_way", "together", "last"]


def make(family, **settings):
    return add_noise(build_encoder(FAMILIES[family].config(**SIZES | settings)))


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
