"""Thinc models of an encoder and a span classifier against the torch modules they run."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from spacy.util import registry

from spacy_luke.architectures.span_classifier import build_span_classifier, create_span_head
from spacy_luke.batch.batches import SpanItem, make_batch
from spacy_luke.batch.windows import Spans
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.encoders.luke_kind import build_luke_encoder
from spacy_luke.model.config import LukeConfig
from spacy_luke.model.losses import cross_entropy
from spacy_luke.model.luke import Mentions, Windows
from spacy_luke.model.span_heads import SpanProposer, choose_best, plan_choice
from tests.model.noise import add_noise

CONFIG = LukeConfig(30, 3, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=20, entity_size=4)
LENGTHS, COUNTS, LABELS, MASK = (9, 6, 6), (5, 1, 4), 4, 1
MODES = {
    "full": {"attention": "full"},
    "every_span": {"attention": "one_way", "spans_per_word": None},
    "proposed": {"attention": "one_way", "proposer_size": 6},
    "words": {"attention": "one_way", "features": "words", "spans_per_word": None},
    "full_words": {"attention": "full", "features": "words"},
    "entity": {"attention": "full", "features": "entity"},
}


def make_model(mode="full", *, drop=0.0, **encoder_settings):
    settings = {"train_precision": "float32", "predict_precision": "float32", **encoder_settings}
    model = build_span_classifier(build_luke_encoder(**settings), **MODES[mode])
    encoder = model.layers[0].shims[0]
    encoder.create({"config": CONFIG.to_dict(), "mask_row": MASK})
    add_noise(encoder.module, seed=1)
    create_span_head(model, LABELS)
    add_noise(model.shims[0].module, seed=2)
    for shim in (encoder, model.shims[0]):
        shim.set_dropout(drop)
    return model


def make_items(*, budget=2, gold=True):
    chosen = np.random.default_rng(3)
    items = []
    for k, (length, count) in enumerate(zip(LENGTHS, COUNTS)):
        pieces = np.concatenate([[0], chosen.integers(3, 30, length - 2), [2]])
        words = np.sort(chosen.integers(0, length - 2, (count, 2)), axis=1)
        spans = Spans(words[:, 0], words[:, 1] + 1, np.zeros(count, np.int64), words[:, 0] + 1, words[:, 1] + 1)
        classes = chosen.integers(-1, LABELS, count) if gold else None
        items.append(SpanItem(k, pieces, spans, 0, count, budget, classes))
    return items


def parameters_of(model):
    shims = {"encoder": model.layers[0].shims[0], "head": model.shims[0]}
    return {f"{part}.{name}": p for part, shim in shims.items() for name, p in shim.named_parameters()}


def logits_by_hand(model, item):
    """Logits of all spans of one window, by the torch modules."""
    encoder, head = model.layers[0].shims[0].module, model.shims[0].module
    windows = Windows(torch.from_numpy(item.pieces), [len(item.pieces)])
    first, last = torch.from_numpy(item.spans.first_E), torch.from_numpy(item.spans.last_E)
    mentions = Mentions(torch.full_like(first, MASK), first, last, [len(first)])
    if model.attrs["features"] == "words":  # the original's no_entity_feature: there is no entity
        return head(encoder.encode_words(windows).states_ND, first, last, torch.empty(0)), None
    if model.attrs["attention"] == "full":
        words, entities = encoder(windows, mentions)
        return head(words, first, last, entities), None
    states = encoder.encode_words(windows)
    logits = head(states.states_ND, first, last, encoder.encode_entities(states, mentions))
    proposals = None
    if head.proposer is not None:
        lengths = torch.from_numpy(item.spans.end_E - item.spans.start_E)
        proposals = head.proposer(states.states_ND, first, last, lengths)
    return logits, proposals


@pytest.mark.parametrize("mode", MODES)
def test_prediction_equals_the_modules(mode):
    model, items = make_model(mode, drop=0.5), make_items(gold=False)
    scores = model.predict(make_batch(items))
    with torch.inference_mode():
        by_hand = [logits_by_hand(model, item) for item in items]
    logits = torch.cat([x for x, _ in by_hand])
    if mode == "proposed":
        proposals = torch.cat([x for _, x in by_hand])
        torch.testing.assert_close(scores.proposals_E, proposals, atol=1e-6, rtol=1e-5)
        kept = choose_best(proposals, plan_choice(COUNTS, [2, 2, 2]))
        assert len(kept) == 5
    else:
        assert scores.proposals_E is None
        kept = torch.arange(sum(COUNTS))
    assert scores.kept_K.tolist() == kept.tolist()
    torch.testing.assert_close(scores.logits_KL, logits[kept], atol=1e-5, rtol=1e-5)
    assert not scores.logits_KL.requires_grad


@pytest.mark.parametrize("chance", [0.0, 1e-6])
def test_spans_of_the_same_pieces_are_chosen_in_order(chance, monkeypatch):
    """Words may share a piece: what rounding makes of their equal proposals decides nothing."""
    model, (item, *_) = make_model("proposed"), make_items(budget=2, gold=False)
    words, same = np.arange(5), np.full(5, 3)
    item = replace(item, spans=Spans(words, words + 1, np.zeros(5, np.int64), same, same))
    exact = SpanProposer.forward
    monkeypatch.setattr(SpanProposer, "forward", lambda *args: (x := exact(*args)) + 1e-6 * torch.arange(len(x)))
    assert model.predict(make_batch([item], chance=chance)).kept_K.tolist() == [0, 1]


@pytest.mark.parametrize("mode", MODES)
def test_words_alone_read_no_entity(mode):
    """Table 6 of the paper: other entity embeddings change nothing there, and what is found elsewhere."""
    model, items = make_model(mode), make_items(gold=False)
    before = model.predict(make_batch(items)).logits_KL
    add_noise(model.layers[0].shims[0].module.entities, seed=7)
    after = model.predict(make_batch(items)).logits_KL
    assert torch.equal(before, after) == (model.attrs["features"] == "words")


@pytest.mark.parametrize("budget", [1, 2, 5])
def test_only_spans_with_a_chance_are_encoded(budget):
    """Of each window the best ones within its budget, of those whose proposal has so much probability."""
    model, items = make_model("proposed"), make_items(budget=budget, gold=False)
    with torch.inference_mode():
        by_hand = [logits_by_hand(model, item) for item in items]
    logits, proposals = (torch.cat(x) for x in zip(*by_hand))
    for chance in (1e-6, *proposals.sigmoid().sort().values[:-1].add(1e-4).tolist(), 0.9999):
        scores = model.predict(make_batch(items, chance=chance))
        best = choose_best(proposals, plan_choice(COUNTS, [budget] * len(COUNTS)))
        wanted = [i for i in best.tolist() if proposals[i].sigmoid() >= chance]
        assert scores.kept_K.tolist() == wanted
        torch.testing.assert_close(scores.logits_KL, logits[wanted], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(scores.proposals_E, proposals, atol=1e-6, rtol=1e-5)
    assert len(scores.kept_K) == 0


def test_a_chance_is_for_predictions_alone():
    """What is learned is learned of as many spans as before."""
    model, items = make_model("proposed"), make_items()
    kept = [model.begin_update(make_batch(items, chance=x))[0].kept_K.tolist() for x in (0.0, 0.99)]
    assert kept[0] == kept[1]
    assert len(kept[0]) >= 5


@pytest.mark.parametrize("mode", MODES)
def test_gradients_equal_autograd_and_one_by_one(mode):
    """Backprop of a batch; of its windows one after another; and torch's own for the same loss."""
    results = []
    for batches in ([make_items()], [[item] for item in make_items()], None):
        model = make_model(mode)
        if batches is None:
            loss = 0.0
            for item in make_items():
                logits, proposals = logits_by_hand(model, item)
                gold = torch.from_numpy(item.gold_E)
                if proposals is not None:
                    known = gold >= 0
                    target = (gold > 0).float()
                    loss = loss + F.binary_cross_entropy_with_logits(proposals[known], target[known], reduction="sum")
                    best = choose_best(proposals.detach(), plan_choice([len(gold)], [2]))
                    kept = sorted({*best.tolist(), *torch.nonzero(gold > 0).flatten().tolist()})
                    logits, gold = logits[kept], gold[kept]
                loss = loss + F.cross_entropy(logits, gold, ignore_index=-1, reduction="sum")
            loss.backward()
        else:
            for items in batches:
                batch = make_batch(items)
                scores, backprop = model.begin_update(batch)
                gold = torch.from_numpy(batch.gold_E)
                _, d_logits = cross_entropy(scores.logits_KL, gold[scores.kept_K])
                d_proposals = None
                if scores.proposals_E is not None:
                    known = (gold >= 0).float()
                    d_proposals = (scores.proposals_E.detach().sigmoid() - (gold > 0).float()) * known
                backprop(d_logits, d_proposals)
        results.append({name: p.grad for name, p in parameters_of(model).items()})
    for name, wanted in results[2].items():
        for got in results[:2]:
            if wanted is None:
                assert got[name] is None, name
                continue
            scale = float(wanted.abs().max())
            torch.testing.assert_close(got[name], wanted, atol=1e-4 * scale + 1e-5, rtol=1e-3, msg=name)


def test_gold_spans_are_kept_in_training():
    model, items = make_model("proposed"), make_items(budget=0)
    batch = make_batch(items)
    gold = np.flatnonzero(batch.gold_E > 0).tolist()
    assert gold
    scores, _ = model.begin_update(batch)
    assert scores.kept_K.tolist() == gold
    assert len(model.predict(make_batch(make_items(budget=0, gold=False))).kept_K) == 0


@pytest.mark.parametrize("mode", MODES)
def test_left_in_eval_mode(mode):
    model, items = make_model(mode, drop=0.5), make_items()
    modules = [model.layers[0].shims[0].module, model.shims[0].module]
    before = model.predict(make_batch(items)).logits_KL
    torch.manual_seed(1)
    trained = model.begin_update(make_batch(items))[0].logits_KL
    assert trained.requires_grad
    assert not any(part.training for module in modules for part in module.modules())
    again = model.predict(make_batch(items)).logits_KL
    assert torch.equal(again, before)
    assert trained.shape != before.shape or not torch.allclose(trained, before)


@pytest.mark.parametrize("mode", MODES)
def test_saved_and_loaded(mode):
    model, batch = make_model(mode), make_batch(make_items(gold=False))
    again = build_span_classifier(build_luke_encoder(), **MODES[mode]).from_bytes(model.to_bytes())
    assert torch.equal(again.predict(batch).logits_KL, model.predict(batch).logits_KL)


@pytest.mark.parametrize("trainable", [True, False])
def test_frozen_encoder(trainable):
    """Only the head learns; and all that learns has a gradient."""
    model = make_model("every_span", trainable=trainable)
    scores, backprop = model.begin_update(make_batch(make_items()))
    backprop(torch.ones_like(scores.logits_KL), None)
    before = {name: x.clone() for name, x in model.layers[0].shims[0].module.state_dict().items()}
    model.finish_update(make_adamw(0.01))
    after = model.layers[0].shims[0].module.state_dict()
    moved = any(not torch.equal(after[name], x) for name, x in before.items())
    assert moved == trainable


def test_encoder_alone():
    """Windows of piece ids to word states, and gradients back into the parameters."""
    model = make_model()
    encoder, module = model.layers[0], model.layers[0].shims[0].module
    windows = [item.pieces for item in make_items()]
    states = encoder.predict(windows)
    with torch.inference_mode():
        for got, pieces in zip(states, windows, strict=True):
            wanted = module.encode_words(Windows(torch.from_numpy(pieces), [len(pieces)])).states_ND
            np.testing.assert_allclose(got, wanted.numpy(), atol=1e-5)
    states, backprop = encoder.begin_update(windows)
    backprop([2 * x for x in states])
    got = {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}
    module.zero_grad(set_to_none=True)
    for pieces in windows:
        module.encode_words(Windows(torch.from_numpy(pieces), [len(pieces)])).states_ND.pow(2).sum().backward()
    wanted = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    assert got.keys() == wanted.keys()
    assert "layers.0.up.weight" in got
    for name, x in wanted.items():
        torch.testing.assert_close(got[name], x, atol=1e-4 * float(x.abs().max()) + 1e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize("mode", ["full", "proposed"])
@pytest.mark.parametrize("chip", [True, False])
def test_auto_precision_asks_the_chip(monkeypatch, chip, mode):
    """Where the chip is said to have bfloat16, "auto" computes as "bfloat16" does, elsewhere as "float32"."""
    monkeypatch.setattr("spacy_luke.model.precision.has_bfloat16", lambda device: chip)
    batch = make_batch(make_items(budget=100))
    outputs = {}
    for name in ("float32", "bfloat16", "auto"):
        model = make_model(mode, predict_precision=name, train_precision=name)
        outputs[name] = model.predict(batch).logits_KL
        trained, backprop = model.begin_update(batch)
        assert trained.logits_KL.dtype == outputs[name].dtype == torch.float32
        backprop(torch.ones_like(trained.logits_KL), None if mode == "full" else torch.ones_like(trained.proposals_E))
        assert all(p.dtype == torch.float32 for p in parameters_of(model).values())
        outputs[name, "train"] = trained.logits_KL.detach()
    same, other = ("bfloat16", "float32") if chip else ("float32", "bfloat16")
    for key in (lambda name: name, lambda name: (name, "train")):
        assert torch.equal(outputs[key("auto")], outputs[key(same)])
        assert not torch.equal(outputs[key("auto")], outputs[key(other)])
        torch.testing.assert_close(outputs[key("bfloat16")], outputs[key("float32")], atol=0.3, rtol=0.1)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("mode", ["full", "proposed"])
def test_predictions_follow_the_parameters(mode, precision):
    """No copy of old weights, cast or not, is left when they have changed: after a step, and after loading."""
    model, batch = make_model(mode, predict_precision=precision), make_batch(make_items(budget=100, gold=False))
    before = model.predict(batch).logits_KL
    assert torch.equal(model.predict(batch).logits_KL, before)
    stored = model.to_bytes()
    scores, backprop = model.begin_update(batch)
    backprop(torch.ones_like(scores.logits_KL), None if mode == "full" else torch.ones_like(scores.proposals_E))
    model.finish_update(make_adamw(0.05))
    after = model.predict(batch).logits_KL
    assert (after - before).abs().max() > 0.05
    fresh = make_model(mode, predict_precision=precision).from_bytes(model.to_bytes())
    assert torch.equal(fresh.predict(batch).logits_KL, after)
    assert torch.equal(model.from_bytes(stored).predict(batch).logits_KL, before)


def test_fresh_head_is_fixed_by_its_seed():
    model = make_model("proposed")
    states = []
    for seed in (4, 4, 5):
        create_span_head(model, 7, seed=seed)
        states.append(model.shims[0].module.state_dict())
    assert states[0]["classifier.weight"].shape == (7, 3 * CONFIG.hidden_size)
    assert all(torch.equal(x, states[1][name]) for name, x in states[0].items())
    assert not torch.equal(states[0]["classifier.weight"], states[2]["classifier.weight"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attention": "half"}, r"attention must be one of .* but it is 'half'"),
        ({"features": "some"}, r"features must be one of .* but it is 'some'"),
        ({"spans_per_word": 0.0}, r"spans_per_word must be above 0, .* but it is 0.0"),
        ({"spans_per_pass": 0}, r"spans_per_pass must be at least 1, but it is 0"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        build_span_classifier(build_luke_encoder(), **settings)


@pytest.mark.parametrize("name", ["train_precision", "predict_precision"])
def test_wrong_precision(name):
    with pytest.raises(ValueError, match=r"precision must be one of .* but it is 'float8'"):
        build_luke_encoder(**{name: "float8"})


def test_registered():
    config = {
        "@architectures": "spacy-luke.SpanClassifier.v1",
        "attention": "full",
        "encoder": {"@architectures": "spacy-luke.LukeEncoder.v1", "trainable": False},
    }
    model = registry.resolve({"model": config})["model"]
    assert model.attrs["spans_per_pass"] == 128
    assert model.attrs["spans_per_word"] is None
    assert not model.layers[0].shims[0].trainable
