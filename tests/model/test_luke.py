"""Batches change nothing: packed windows equal single ones, in states and in gradients, in both modes."""

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.model.config import LukeConfig
from spacy_luke.model.fresh import initialize
from spacy_luke.model.linear import activate
from spacy_luke.model.luke import LukeEncoder, Mentions
from tests.model.noise import COUNTS, LENGTHS, make_encoder, make_mentions, make_windows, pick

MODES = ["full", "one_way"]
EACH = range(len(LENGTHS))


def run(encoder, windows, mentions, mode):
    if mode == "full":
        return encoder(windows, mentions)
    words = encoder.encode_words(windows)
    return words.states_ND, encoder.encode_entities(words, mentions)


def run_one_by_one(encoder, windows, mentions, mode):
    parts = [run(encoder, *pick(windows, mentions, [i]), mode) for i in EACH]
    return tuple(torch.cat(x) for x in zip(*parts))


def assert_close(got, expected, *, atol=2e-6):
    for g, e in zip(got, expected, strict=True):
        torch.testing.assert_close(g.detach(), e.detach(), atol=atol, rtol=1e-5)


@pytest.fixture(params=[0.0, 0.3, 99.0], ids=["unpadded", "some_padding", "one_call"])
def waste(request, monkeypatch):
    monkeypatch.setattr("spacy_luke.model.packing.tolerated_waste", lambda device: request.param)
    return request.param


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_packed_equals_one_by_one(waste, mode, aware, gradients):
    encoder, windows, mentions = make_encoder(entity_aware=aware), make_windows(), make_mentions()
    with torch.set_grad_enabled(gradients):
        got, wanted = run(encoder, windows, mentions, mode), run_one_by_one(encoder, windows, mentions, mode)
    assert_close(got, wanted)


@pytest.mark.parametrize("mode", MODES)
@torch.no_grad()
def test_order_of_windows_is_irrelevant(waste, mode):
    encoder, windows, mentions = make_encoder(), make_windows(), make_mentions()
    order = [3, 6, 0, 5, 1, 4, 2]
    words, entities = run(encoder, windows, mentions, mode)
    words = torch.cat([words.split(LENGTHS)[i] for i in order])
    entities = torch.cat([entities.split(COUNTS)[i] for i in order])
    assert_close(run(encoder, *pick(windows, mentions, order), mode), (words, entities))


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_gradients_packed_equal_one_by_one(waste, mode, aware):
    """The same sum of states, and so the same gradient for every parameter that takes part."""
    encoder, windows, mentions = make_encoder(entity_aware=aware), make_windows(), make_mentions()
    generator = torch.Generator().manual_seed(5)
    weights = [torch.randn(n, encoder.config.hidden_size, generator=generator) for n in (sum(LENGTHS), sum(COUNTS))]
    gradients = []
    for function in (run, run_one_by_one):
        encoder.zero_grad(set_to_none=True)
        sum((x * w).sum() for x, w in zip(function(encoder, windows, mentions, mode), weights)).backward()
        gradients.append({name: p.grad for name, p in encoder.named_parameters()})
    for name, packed in gradients[0].items():
        if packed is None:
            assert gradients[1][name] is None
            assert mode == "one_way"
            assert "w2e_query" in name  # the one matrix that has no use where words do not see entities
            continue
        scale = float(packed.abs().max())
        assert scale > 0 or name.endswith("key.bias"), name
        torch.testing.assert_close(packed, gradients[1][name], atol=1e-5 * scale + 1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_finite_differences(mode):
    """Along a random direction, in double precision except for the sums of positions."""
    encoder = make_encoder(num_layers=2).double()
    windows, mentions = make_windows(LENGTHS[:3]), make_mentions(LENGTHS[:3], COUNTS[:3])
    generator = torch.Generator().manual_seed(6)

    def loss():
        return sum(x.double().pow(3).sum() for x in run(encoder, windows, mentions, mode))

    loss().backward()
    moved = [(n, p) for n, p in encoder.named_parameters() if p.grad is not None and n != "entities.position.weight"]
    for name, p in moved:
        direction = torch.randn(p.shape, generator=generator, dtype=p.dtype)
        step, values = 1e-5, []
        for sign in (1, -2):
            p.data.add_(sign * step * direction)
            values.append(float(loss().detach()))
        p.data.add_(step * direction)
        wanted = (values[0] - values[1]) / (2 * step)
        assert float((p.grad * direction).sum()) == pytest.approx(wanted, rel=1e-4, abs=1e-3), name


def subset(mentions, keep):
    sizes = [sum(keep[a:b]) for a, b in zip(torch.tensor((0, *COUNTS)).cumsum(0), torch.tensor(COUNTS).cumsum(0))]
    kept = torch.tensor(keep)
    return Mentions(mentions.entities_E[kept], mentions.first_E[kept], mentions.last_E[kept], sizes), kept


@pytest.mark.parametrize("aware", [True, False])
@torch.no_grad()
def test_one_way_spans_do_not_see_each_other(waste, aware):
    encoder, windows, mentions = make_encoder(entity_aware=aware), make_windows(), make_mentions()
    words = encoder.encode_words(windows)
    everything = encoder.encode_entities(words, mentions)
    generator = torch.Generator().manual_seed(7)
    for share in (0.2, 0.5, 0.8):
        keep = (torch.rand(len(everything), generator=generator) < share).tolist()
        fewer, kept = subset(mentions, keep)
        assert_close([encoder.encode_entities(words, fewer)], [everything[kept]])
    states = words.states_ND.clone()
    assert torch.equal(states, encoder.encode_words(windows).states_ND)  # nor do they change the words


@torch.no_grad()
def test_full_mode_spans_see_each_other():
    encoder, windows, mentions = make_encoder(), make_windows(), make_mentions()
    _, everything = encoder(windows, mentions)
    fewer, kept = subset(mentions, [i % 2 == 0 for i in range(len(everything))])
    assert (encoder(windows, fewer)[1] - everything[kept]).abs().max() > 1e-2


@pytest.mark.parametrize("mode", MODES)
@torch.no_grad()
def test_no_mentions_at_all(waste, mode):
    encoder, windows = make_encoder(), make_windows()
    mentions = make_mentions(counts=[0] * len(LENGTHS))
    words, entities = run(encoder, windows, mentions, mode)
    assert entities.shape == (0, encoder.config.hidden_size)
    assert_close([words], [encoder.encode_words(windows).states_ND])


@torch.no_grad()
def test_other_windows_do_not_leak():
    """A window's states stay the same when all other windows' pieces and mentions change."""
    encoder = make_encoder()
    for mode in MODES:
        words, entities = run(encoder, make_windows(), make_mentions(), mode)
        windows, mentions = make_windows(seed=11), make_mentions(seed=12)
        windows.pieces_N[: LENGTHS[0]] = make_windows().pieces_N[: LENGTHS[0]]
        for name in ("entities_E", "first_E", "last_E"):
            getattr(mentions, name)[: COUNTS[0]] = getattr(make_mentions(), name)[: COUNTS[0]]
        other_words, other_entities = run(encoder, windows, mentions, mode)
        assert_close(
            [other_words[: LENGTHS[0]], other_entities[: COUNTS[0]]], [words[: LENGTHS[0]], entities[: COUNTS[0]]]
        )
        assert (other_words[LENGTHS[0] :] - words[LENGTHS[0] :]).abs().max() > 1e-2


@torch.no_grad()
def test_mean_positions_equal_plain_means():
    encoder = make_encoder(max_positions=514)
    spans = [(a, b) for a in range(0, 514, 17) for b in range(a, min(a + 40, 514), 3)]
    first, last = torch.tensor(spans).unbind(1)
    table = encoder.entities.position.weight
    expected = torch.stack([table[a : b + 1].double().mean(0) for a, b in spans])
    got = encoder.entities.mean_positions(first, last)
    torch.testing.assert_close(got.double(), expected, atol=2e-6, rtol=0)


@torch.no_grad()
def test_embeddings_equal_plain_ones():
    """Word and entity embeddings written out, with token types."""
    encoder = make_encoder(token_types=2)
    windows, mentions = make_windows(types=2), make_mentions(types=2)
    w, e = encoder.words, encoder.entities
    rows = []
    for pieces, types in zip(windows.pieces_N.split(LENGTHS), windows.types_N.split(LENGTHS)):
        for i, (piece, kind) in enumerate(zip(pieces, types)):
            rows.append(w.norm(w.piece.weight[piece] + w.position.weight[i + 2] + w.token_type.weight[kind]))
    assert_close([w(windows)], [torch.stack(rows)])
    rows = []
    for row, a, b, kind in zip(mentions.entities_E, mentions.first_E, mentions.last_E, mentions.types_E):
        place = e.position.weight[a : b + 1].mean(0)
        rows.append(e.norm(e.dense.weight @ e.table.weight[row] + place + e.token_type.weight[kind]))
    assert_close([e(mentions)], [torch.stack(rows)])


@pytest.mark.parametrize("mode", MODES)
@torch.no_grad()
def test_feed_forward_in_parts_equals_whole(monkeypatch, mode):
    encoder, windows, mentions = make_encoder(), make_windows(), make_mentions()
    whole = run(encoder, windows, mentions, mode)
    calls = []
    layer = encoder.layers[0]
    inner = layer._feed_forward
    monkeypatch.setattr(layer, "_feed_forward", lambda x: calls.append(len(x)) or inner(x))
    for rows in (1, 7, sum(LENGTHS) - 1):
        monkeypatch.setattr("spacy_luke.model.layer.FEED_FORWARD_ROWS", rows)
        calls.clear()
        assert_close(run(encoder, windows, mentions, mode), whole)
        assert max(calls) <= rows
        assert sum(calls) == sum(LENGTHS) + sum(COUNTS)


@pytest.mark.parametrize("mode", MODES)
def test_dropout_only_in_training(mode):
    encoder, windows, mentions = make_encoder(dropout=0.5), make_windows(), make_mentions()
    torch.manual_seed(0)
    assert torch.equal(run(encoder, windows, mentions, mode)[1], run(encoder, windows, mentions, mode)[1])
    encoder.train()
    assert not torch.allclose(run(encoder, windows, mentions, mode)[1], run(encoder, windows, mentions, mode)[1])


def test_activations():
    x = torch.linspace(-4, 4, 101)
    torch.testing.assert_close(activate(x, "gelu"), x * 0.5 * (1 + torch.erf(x / 2**0.5)))
    tanh = 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))
    torch.testing.assert_close(activate(x, "gelu_new"), tanh)
    assert torch.equal(activate(x, "relu"), F.relu(x))


def test_fresh_parameters():
    states = []
    for _ in range(2):
        encoder = LukeEncoder(make_encoder(hidden_size=48, vocab_size=400).config)
        initialize(encoder, std=0.02, generator=torch.Generator().manual_seed(1))
        states.append(encoder.state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    for name, x in states[0].items():
        if name.endswith("bias"):
            assert not x.any(), name
        elif "norm" in name:
            assert torch.equal(x, torch.ones_like(x)), name
        elif x.numel() > 1000:
            assert float(x.std()) == pytest.approx(0.02, rel=0.1), name
            assert abs(float(x.mean())) < 0.002, name


def test_config_round_trip_and_errors():
    config = LukeConfig(vocab_size=7, entity_vocab_size=3, max_positions=40, position_offset=0, entity_aware=False)
    assert LukeConfig.from_dict(config.to_dict()) == config
    assert config.max_window == 40
    assert LukeConfig(vocab_size=7, entity_vocab_size=3).max_window == 512
    with pytest.raises(ValueError, match="hidden_size must be a multiple of num_heads, but 10 % 4"):
        LukeConfig(vocab_size=7, entity_vocab_size=3, hidden_size=10, num_heads=4)
    with pytest.raises(ValueError, match=r"activation must be one of .* but it is 'swish'"):
        LukeConfig(vocab_size=7, entity_vocab_size=3, activation="swish")
    with pytest.raises(ValueError, match=r"Unknown encoder settings \['colour'\]"):
        LukeConfig.from_dict({**config.to_dict(), "colour": 1})


def test_parameter_names():
    """The names that saved pipelines and the tables of checkpoint names rest on."""
    names = set(make_encoder(num_layers=1).state_dict())
    layer = {f"attention.{q}" for q in ("query", "w2e_query", "e2w_query", "e2e_query", "key", "value", "output")}
    layer |= {"attention_norm", "up", "down", "output_norm"}
    expected = {f"layers.0.{module}.{part}" for module in layer for part in ("weight", "bias")}
    expected |= {f"{side}.norm.{part}" for side in ("words", "entities") for part in ("weight", "bias")}
    expected |= {f"{side}.{table}.weight" for side in ("words", "entities") for table in ("position", "token_type")}
    assert names == expected | {"words.piece.weight", "entities.table.weight", "entities.dense.weight"}
    plain = set(make_encoder(num_layers=1, entity_size=24, entity_aware=False).state_dict())
    assert names - plain == {"entities.dense.weight"} | {x for x in names if "2" in x}
