"""The sparse entity stream equals a plain dense one; batches change nothing."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.bridge.wrapper import TorchShim
from spacy_luke.model.ernie import (
    Aggregator,
    ErnieConfig,
    ErnieEncoder,
    Knowledge,
    default_layer_kinds,
    place_slots,
    without_knowledge,
)
from spacy_luke.model.ernie_heads import EntityDenoiser, PooledHead, mean_cross_entropy, pretraining_losses
from spacy_luke.model.luke import Windows, activate
from tests.model.noise import add_noise, make_windows

LENGTHS = (9, 4, 4, 7, 1, 12, 4, 30)
COUNTS = (5, 0, 3, 3, 0, 1, 0, 29)  # none, some, and every piece but [CLS]
KINDS = ("sim", "mix", "norm", "sim", "norm")
SIZE = 12


def make_ernie(*, seed=0, **settings) -> ErnieEncoder:
    sizes = {"vocab_size": 50, "hidden_size": 24, "num_layers": 5, "num_heads": 4, "intermediate_size": 40}
    sizes |= {"max_positions": 40, "entity_size": SIZE, "entity_heads": 3, "layer_kinds": KINDS, **settings}
    return add_noise(ErnieEncoder(ErnieConfig(**sizes)), seed=seed)


def make_knowledge(lengths=LENGTHS, counts=COUNTS, *, seed=3, size=SIZE) -> Knowledge:
    """Entities at any pieces but [CLS], in no order."""
    generator = torch.Generator().manual_seed(seed)
    places = [1 + torch.randperm(n - 1, generator=generator)[:count] for n, count in zip(lengths, counts)]
    assert [len(x) for x in places] == list(counts)
    return Knowledge(torch.randn(sum(counts), size, generator=generator), torch.cat(places), list(counts))


def pick(windows: Windows, knowledge: Knowledge, order) -> tuple:
    def parts(x, sizes):
        return torch.cat([x.split(list(sizes))[i] for i in order])

    lengths, counts = windows.lengths, knowledge.counts
    return (
        Windows(parts(windows.pieces_N, lengths), [lengths[i] for i in order]),
        Knowledge(parts(knowledge.vectors_EH, counts), parts(knowledge.at_E, counts), [counts[i] for i in order]),
    )


def dense_attention(attention, x_LD, mask_L):
    heads = attention.num_heads
    q, k, v = (
        f(x_LD).unflatten(-1, (heads, -1)).transpose(0, 1) for f in (attention.query, attention.key, attention.value)
    )
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + (1 - mask_L) * -10000.0
    return attention.output((scores.softmax(-1) @ v).transpose(0, 1).flatten(1))


def dense_window(encoder, pieces_L, vectors_EH, at_E):
    """The original's computation of one window, written out: an entity row for each piece, and a mask.

    RETURNS: words (L, D) and rows of the entity stream (L, H).
    """
    config = encoder.config
    every_L, mask_L = torch.ones(len(pieces_L)), torch.zeros(len(pieces_L))
    e_LH = torch.zeros(len(pieces_L), config.entity_size)
    mask_L[0] = 1
    mask_L[at_E] = 1
    e_LH[at_E] = vectors_EH
    h_LD = encoder.words(Windows(pieces_L, [len(pieces_L)]))
    for layer, kind in zip(encoder.layers, config.layer_kinds, strict=True):
        h_LD = layer.attention_norm(h_LD + dense_attention(layer.attention, h_LD, every_L))
        if kind == "sim":
            u_LF = activate(layer.up(h_LD), config.activation)
            h_LD = layer.output_norm(h_LD + layer.down(u_LF))
            continue
        if kind == "norm":
            e_LH = layer.entity_attention_norm(e_LH + dense_attention(layer.entity_attention, e_LH, mask_L))
        e_LH = e_LH * mask_L[:, None]
        u_LF = activate(layer.up(h_LD) + layer.entity_up(e_LH), config.activation)
        if config.fusion == "paper":
            h_LD, e_LH = (activate(f(u_LF), config.activation) for f in (layer.down, layer.entity_down))
        else:
            h_LD = layer.output_norm(h_LD + layer.down(u_LF))
            e_LH = layer.entity_output_norm(e_LH + layer.entity_down(u_LF))
    return h_LD, e_LH


def dense(encoder, windows, knowledge):
    words, entities = [], []
    for i in range(len(windows.lengths)):
        window, known = pick(windows, knowledge, [i])
        h, e = dense_window(encoder, window.pieces_N, known.vectors_EH, known.at_E)
        words.append(h)
        entities.append(e[known.at_E])
    return torch.cat(words), torch.cat(entities)


def assert_close(got, expected, *, atol=3e-6):
    for g, e in zip(got, expected, strict=True):
        torch.testing.assert_close(g.detach(), e.detach(), atol=atol, rtol=1e-5)


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


@torch.no_grad()
def test_entity_denoiser():
    config = make_ernie().config
    states, candidates = torch.randn(5, 24), torch.randn(7, SIZE)
    paper = add_noise(EntityDenoiser(config, transform=False))
    assert_close([paper(states, candidates)], [paper.dense(states) @ candidates.T])
    code = add_noise(EntityDenoiser(config))
    assert_close([code(states, candidates)], [code.norm(F.gelu(code.dense(states))) @ candidates.T])
    assert set(code.state_dict()) - set(paper.state_dict()) == {"norm.weight", "norm.bias"}


def test_losses_with_nothing_to_predict():
    """The original's mean would be no number."""
    logits = torch.randn(4, 3, requires_grad=True)
    loss = mean_cross_entropy(logits, torch.full((4,), -1))
    loss.backward()
    assert loss.item() == 0
    assert not logits.grad.any()
    none = torch.empty(0, dtype=torch.long)
    gold = torch.tensor([0, -1, 2, -1])
    words, sentences, entities = pretraining_losses((logits, logits, torch.empty(0, 5)), (gold, gold, none))
    expected = F.cross_entropy(logits[[0, 2]], gold[[0, 2]])
    assert words.item() == pytest.approx(expected.item())
    assert sentences.item() == words.item()
    assert entities.item() == 0


def test_pooled_head():
    head = add_noise(PooledHead(6, 3, bias=False))
    x = torch.randn(2, 6)
    assert torch.equal(head(x), x @ head.classifier.weight.T)
    assert set(head.state_dict()) == {"classifier.weight"}
    head.train()
    assert not torch.equal(head(torch.ones(50, 6)), head(torch.ones(50, 6)))
