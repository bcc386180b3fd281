"""The Thinc model of typing and relations against the torch modules that it runs, and the reference implementations."""

import numpy as np
import pytest
import torch
from spacy.util import registry

from spacy_luke.architectures import entity_classifier as entities
from spacy_luke.architectures.entity_classifier import build_entity_classifier, create_entity_head
from spacy_luke.architectures.run_head import MAX_MENTION
from spacy_luke.batch.entities import EntityItem, make_entity_batch
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.encoders.luke_kind import build_luke_encoder
from spacy_luke.encoders.sharing import SharedEncoder
from spacy_luke.model.config import LukeConfig
from spacy_luke.model.losses import cross_entropy
from spacy_luke.model.luke import Mentions, Windows

CONFIG = LukeConfig(
    30,
    4,
    hidden_size=16,
    num_layers=2,
    num_heads=2,
    intermediate_size=20,
    entity_size=4,
    token_types=2,
    max_positions=80,
)
MODES = [(attention, features) for attention in ("full", "one_way") for features in ("entity", "all", "words")]
LABELS = 5


def make_model(attention="one_way", features="all", *, states=2, bias=True):
    encoder = build_luke_encoder(train_precision="float32")
    model = build_entity_classifier(encoder, attention=attention, features=features, bias=bias)
    shim = encoder.shims[0]
    shim.create({"config": CONFIG.to_dict()})
    create_entity_head(model, LABELS, states=states)
    generator = torch.Generator().manual_seed(1)
    for module in (shim.module, model.shims[0].module):
        for name, p in module.named_parameters():
            torch.nn.init.normal_(p, mean=float(name.endswith("norm.weight")), std=0.2, generator=generator)
    for part in (shim, model.shims[0]):
        part.set_dropout(0.0)
    return model


def make_items(states=2, *, types=False, lengths=(9, 6, 6, 50), units=(3, 0, 40, 2)):
    """Windows with very different numbers of pairs, or of mentions."""
    chosen, items = np.random.default_rng(3), []
    for i, (n, count) in enumerate(zip(lengths, units)):
        first = chosen.integers(1, n - 1, states * count)
        items.append(
            EntityItem(
                i,
                np.concatenate([[0], chosen.integers(3, 30, n - 2), [2]]),
                chosen.integers(0, 4, states * count),
                first,
                np.minimum(first + chosen.integers(0, 60, states * count), n - 2),
                np.arange(states * count).reshape(-1, states),
                group=states,
                gold=chosen.integers(-1, LABELS, count),
                types=(np.arange(n) > n // 2).astype(np.int64) if types else None,
            )
        )
    return items


def logits_by_hand(model, item):
    """By the torch modules, a window by itself, a unit by itself where words do not see entities."""
    encoder, head = model.layers[0].shims[0].module, model.shims[0].module
    types = None if item.types is None else torch.from_numpy(item.types)
    windows = Windows(torch.from_numpy(item.pieces), [len(item.pieces)], types)
    first, last = torch.from_numpy(item.first_E), torch.from_numpy(item.last_E)
    # A head reads the whole mention's ends; its entity token has the positions of its first pieces.
    ends = torch.minimum(last, first + MAX_MENTION - 1)
    entity_types = None if types is None else types[first]
    words, rows = encoder.encode_words(windows), torch.from_numpy(item.rows_E)
    results = []
    if model.attrs["attention"] == "full" and model.attrs["features"] != "words":
        mentions = Mentions(rows, first, ends, [len(first)], entity_types)
        words_ND, entities_ED = encoder(windows, mentions)
        return head(words_ND, first, last, entities_ED, torch.from_numpy(item.units_UK))
    for unit in item.units_UK:
        own = torch.from_numpy(unit)
        mentions = Mentions(
            rows[own], first[own], ends[own], [len(own)], None if entity_types is None else entity_types[own]
        )
        states = encoder.encode_entities(words, mentions, group_size=len(own))
        order = torch.arange(len(own))[None]
        results.append(head(words.states_ND, first[own], last[own], states, order))
    return torch.cat(results) if results else torch.empty(0, LABELS)


@pytest.mark.product
@pytest.mark.parametrize("types", [False, True])
@pytest.mark.parametrize("states", [1, 2])
@pytest.mark.parametrize(("attention", "features"), MODES)
def test_prediction_equals_the_modules(attention, features, states, types):
    model, items = make_model(attention, features, states=states), make_items(states, types=types)
    with torch.no_grad():
        expected = torch.cat([logits_by_hand(model, item) for item in items])
        for order in ([0, 1, 2, 3], [3, 2, 0, 1]):
            batch = make_entity_batch([items[i] for i in order])
            got = model.predict(batch)
            rows = [expected[batch_rows(items, i)] for i in order]
            torch.testing.assert_close(got, torch.cat(rows), atol=1e-5, rtol=1e-5)
    assert got.dtype == torch.float32


def batch_rows(items, i):
    start = sum(len(x.units_UK) for x in items[:i])
    return slice(start, start + len(items[i].units_UK))


@pytest.mark.parametrize("size", [1, 2, 7, 16, 10_000])
@pytest.mark.parametrize("states", [1, 2])
def test_entity_tokens_in_parts(monkeypatch, size, states):
    """Encoded some at a time where there are no gradients: groups stay whole, windows may be divided."""
    model, items = make_model(states=states), make_items(states)
    expected = model.predict(make_entity_batch(items))
    monkeypatch.setattr(entities, "TOKENS_AT_ONCE", max(size, states))
    torch.testing.assert_close(model.predict(make_entity_batch(items)), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("attention", "features"), MODES)
def test_gradients_equal_autograd(attention, features):
    model, items = make_model(attention, features), make_items()
    head, encoder = model.shims[0].module, model.layers[0].shims[0].module
    gold = torch.from_numpy(np.concatenate([item.gold for item in items]))
    total = torch.cat([logits_by_hand(model, item) for item in items if len(item.units_UK)])
    torch.nn.functional.cross_entropy(total, gold, ignore_index=-1, reduction="sum").backward()
    parameters = [*head.named_parameters(), *encoder.named_parameters()]
    expected = {name: p.grad.clone() for name, p in parameters if p.grad is not None}
    for part in (head, encoder):
        part.zero_grad(set_to_none=True)
    logits, backprop = model.begin_update(make_entity_batch(items))
    backprop(cross_entropy(logits, gold)[1])
    actual = {name: p.grad for name, p in parameters if p.grad is not None}
    assert set(actual) >= {name for name, x in expected.items() if x.abs().max() > 1e-6}
    for name, x in actual.items():
        torch.testing.assert_close(x, expected.get(name, torch.zeros_like(x)), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_an_encoder_that_does_not_learn(attention):
    """Its gradients are not computed, its dropout is off, and its words may be those of another component."""
    model, items = make_model(attention), make_items()
    shim = model.layers[0].shims[0]
    shim.sharing = SharedEncoder(shim, "luke_encoder", {"shared_pieces": 1000})
    shim.sharing.learning = False
    shim.set_dropout(0.5)
    with torch.no_grad():
        expected = torch.cat([logits_by_hand(model, item) for item in items])
    for _ in range(2):
        logits, backprop = model.begin_update(make_entity_batch(items))
        torch.testing.assert_close(logits.detach(), expected, atol=1e-5, rtol=1e-5)
        backprop(torch.ones_like(logits))
    assert all(p.grad is None for p in shim.module.parameters())
    assert all(p.grad is not None for p in model.shims[0].module.parameters())
    assert (shim.sharing.cache.reused > 0) == (attention == "one_way")


def test_left_in_eval_mode():
    model = make_model()
    _, backprop = model.begin_update(make_entity_batch(make_items()))
    backprop(torch.ones(45, LABELS))
    for shim in (model.layers[0].shims[0], model.shims[0]):
        assert not any(part.training for part in shim.module.modules())
        assert shim.named_parameters()[-1][1].grad is not None
        shim.finish_update(make_adamw(learn_rate=0.1))


def test_prior_and_seed():
    model = make_model()
    weights = []
    for seed in (0, 0, 1):
        create_entity_head(model, 3, states=2, seed=seed, prior_L=np.array([0.5, -1.0, 2.0]))
        module = model.shims[0].module
        assert module.classifier.bias.tolist() == [0.5, -1.0, 2.0]
        weights.append(module.classifier.weight.clone())
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    model = make_model(bias=False)
    create_entity_head(model, 3, states=2, prior_L=np.zeros(3))
    assert model.shims[0].module.classifier.bias is None


def test_saved_and_loaded():
    model, batch = make_model(), make_entity_batch(make_items())
    expected = model.predict(batch)
    again = make_model()
    create_entity_head(again, 2, states=2)
    again.from_bytes(model.to_bytes())
    assert torch.equal(again.predict(batch), expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attention": "both"}, "attention must be one of .* but it is 'both'"),
        ({"features": "none"}, "features must be one of .* but it is 'none'"),
    ],
)
def test_wrong_settings(settings, message):
    build = registry.architectures.get("spacy-luke.EntityClassifier.v1")
    with pytest.raises(ValueError, match=message):
        build(build_luke_encoder(), **settings)
