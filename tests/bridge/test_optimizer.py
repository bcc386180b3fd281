"""AdamW inside Thinc: the same steps as torch's own, with groups, clipping, schedules and resuming."""

import copy
import io
import itertools
import math
import warnings

import numpy as np
import pytest
import torch
from spacy.util import registry
from thinc.api import Adam, Config, Linear, warmup_linear

from spacy_luke.bridge.optimizer import AdamW, make_adamw
from tests.bridge.stepping import assert_same, make_parameters, our_steps, plain_decay, set_gradients, values


def reference_steps(named, rates, *, steps, settings_of, clip=0.0, scale=1.0):
    """torch's AdamW with one group for each parameter. settings_of: name -> (multiple of the rate, weight decay)."""
    groups = [{"params": [p], "weight_decay": settings_of(name)[1]} for name, p in named]
    optimizer = torch.optim.AdamW(groups, lr=1.0, betas=(0.9, 0.98), eps=1e-6)
    for step in range(steps):
        set_gradients(named, step, scale=scale)
        norm = math.sqrt(sum(float(p.grad.double().pow(2).sum()) for _, p in named))
        for (name, p), group in zip(named, optimizer.param_groups):
            group["lr"] = rates[step] * settings_of(name)[0]
            if clip and norm > clip:
                p.grad *= clip / norm
        optimizer.step()
    return values(named)


def test_biases_and_norms_do_not_decay():
    got = our_steps(make_adamw(0.01, weight_decay=0.1), make_parameters(), steps=3)
    assert_same(got, reference_steps(make_parameters(), [0.01] * 3, steps=3, settings_of=plain_decay))
    optimizer, named = make_adamw(0.01, weight_decay=0.5), make_parameters()
    before = values(named)
    for _, p in named:
        p.grad = torch.zeros_like(p)
    optimizer.step("ner", named)
    for name, x in values(named).items():
        decays = torch.equal(x, before[name] * (1 - 0.01 * 0.5)) and bool(x.any())
        assert decays == (plain_decay(name)[1] > 0), name
        if not decays:
            assert torch.equal(x, before[name])


@pytest.mark.parametrize("clip", [0.5, 1e4])
def test_clips_by_the_global_norm(clip):
    """One factor for all parameters of a component; a norm below the limit is left alone."""
    got = our_steps(make_adamw(0.01, grad_clip=clip, weight_decay=0.1), make_parameters(), steps=3)
    wanted = reference_steps(make_parameters(), [0.01] * 3, steps=3, settings_of=plain_decay, clip=clip)
    assert_same(got, wanted, atol=1e-6)


def test_clipping_is_seen_by_one_step():
    """AdamW hides a constant factor, so look at the gradients that reach it."""
    named = make_parameters()
    optimizer = make_adamw(0.01, grad_clip=0.5)
    set_gradients(named, 0)
    norm = math.sqrt(sum(float(p.grad.pow(2).sum()) for _, p in named))
    expected = [0.1 * p.grad * 0.5 / norm for _, p in named]  # the first moment after one step, by 1 - beta1
    optimizer.step("ner", named)
    state = optimizer.steppers["ner"].state
    for (name, p), wanted in zip(named, expected):
        torch.testing.assert_close(state[p]["exp_avg"], wanted, atol=1e-7, rtol=1e-4, msg=name)


def test_rates_of_groups():
    """The first pattern that is found counts."""
    rates = {"^head": 5.0, r"entities\.table": 0.0, r"entities": 0.5}

    def settings_of(name):
        multiple = 5.0 if name.startswith("head") else 1.0
        if "entities" in name:
            multiple = 0.0 if "table" in name else 0.5
        return multiple, plain_decay(name)[1]

    got = our_steps(make_adamw(0.01, weight_decay=0.1, group_rates=rates), make_parameters(), steps=3)
    assert_same(got, reference_steps(make_parameters(), [0.01] * 3, steps=3, settings_of=settings_of))


def test_decay_of_layers():
    """The head learns at the full rate, and so does the top layer; the embeddings below the lowest."""

    def settings_of(name):
        depth = {"layers.2": 0, "layers.1": 1, "layers.0": 2, "encoder.words": 3, "encoder.entities": 3}
        return 0.5 ** next((n for part, n in depth.items() if part in name), 0), plain_decay(name)[1]

    got = our_steps(make_adamw(0.01, weight_decay=0.1, layer_decay=0.5), make_parameters(), steps=2)
    assert_same(got, reference_steps(make_parameters(), [0.01] * 2, steps=2, settings_of=settings_of))


def test_layer_decay_and_group_rates_multiply():
    optimizer = make_adamw(1.0, layer_decay=0.5, group_rates={"attention": 3.0})
    assert optimizer.multiple("encoder.layers.0.attention.query.weight", 2) == 1.5
    assert optimizer.multiple("encoder.layers.1.up.weight", 2) == 1.0
    assert optimizer.multiple("encoder.words.piece.weight", 2) == 0.25
    assert optimizer.multiple("head.classifier.weight", 2) == 1.0


def test_group_rates_of_thinc_parameters():
    """spaCy's components call theirs W and b; layer_decay is for encoders of this package."""
    steps = {}
    for name in ("W", "bias_of_a_torch_module.layers.0"):
        optimizer = make_adamw(0.01, weight_decay=0.0, layer_decay=0.5, group_rates={"^.$": 3.0})
        weights, _ = optimizer((1, name), np.zeros((2, 2), "f"), np.ones((2, 2), "f"))
        steps[name] = -float(weights[0, 0])
    first, second = steps.values()
    assert first == pytest.approx(3 * second, rel=1e-4)


def schedule():
    return warmup_linear(0.01, warmup_steps=2, total_steps=8)


def test_schedule_sets_the_rate():
    rates = list(itertools.islice(schedule(), 6))
    assert len(set(rates)) > 3
    got = our_steps(make_adamw(schedule(), weight_decay=0.1), make_parameters(), steps=6)
    assert_same(got, reference_steps(make_parameters(), rates, steps=6, settings_of=plain_decay))


def test_a_schedule_that_is_left_at_nothing():
    """A program that never steps it, as after nlp.resume_training(), is told once; one that steps it is not."""
    for stepped in (True, False):
        optimizer, named = make_adamw(warmup_linear(0.1, 2, 10)), make_parameters()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for step in range(4):
                set_gradients(named, step)
                optimizer.step("ner", named)
                if stepped:
                    optimizer.step_schedules()
        assert [str(x.message)[:26] for x in said] == ([] if stepped else ["The learning rate is still"])


def test_list_as_schedule_keeps_its_last_rate():
    got = our_steps(make_adamw([0.01, 0.02], weight_decay=0.1), make_parameters(), steps=4)
    wanted = reference_steps(make_parameters(), [0.01, 0.02, 0.02, 0.02], steps=4, settings_of=plain_decay)
    assert_same(got, wanted)


SETTINGS = {"weight_decay": 0.1, "grad_clip": 1.0, "group_rates": {"^head": 2.0}, "layer_decay": 0.9}


def saved(state):
    """Through a file that holds no pickled code."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("through_file", [True, False])
def test_resumed_equals_uninterrupted_bit_for_bit(through_file):
    uninterrupted = our_steps(make_adamw(schedule(), **SETTINGS), make_parameters(), steps=6)
    named, optimizer = make_parameters(), make_adamw(schedule(), **SETTINGS)
    middle = our_steps(optimizer, named, steps=3)
    state = saved(optimizer.state_dict()) if through_file else copy.deepcopy(optimizer.state_dict())
    fresh, again = make_parameters(seed=9), make_adamw(schedule(), **SETTINGS)
    with torch.no_grad():
        for name, p in fresh:
            p.copy_(middle[name])
    again.load_state_dict(state)
    resumed = our_steps(again, fresh, steps=3, first=3)
    assert all(torch.equal(x, resumed[name]) for name, x in uninterrupted.items())


def test_forgetting_the_moments_is_seen():
    """Resuming without the state differs, so that the test above can fail."""
    uninterrupted = our_steps(make_adamw(schedule(), **SETTINGS), make_parameters(), steps=4)
    named = make_parameters()
    our_steps(make_adamw(schedule(), **SETTINGS), named, steps=3)
    other = our_steps(make_adamw(schedule(), **SETTINGS), named, steps=1, first=3)
    assert any(not torch.allclose(x, other[name]) for name, x in uninterrupted.items())


def test_parameters_without_gradients_and_frozen_ones_stay():
    named, optimizer = make_parameters(), make_adamw(0.01)
    before = values(named)
    optimizer.step("ner", named)  # no gradients: nothing happens
    assert not optimizer.steppers
    set_gradients(named, 0)
    frozen, lone = named[0][1], named[1][1]
    frozen.requires_grad_(False)
    lone.grad = None
    optimizer.step("ner", named)
    after = values(named)
    moved = {name for name in after if not torch.equal(after[name], before[name])}
    assert moved == {name for name, _ in named[2:]}


def test_a_step_is_seen_in_the_versions():
    """What depends on the parameters, such as held word states, can tell that they have changed."""
    named = make_parameters()
    before = [p._version for _, p in named]
    set_gradients(named, 0)
    make_adamw().step("luke", named)
    assert all(p._version > version for (_, p), version in zip(named, before, strict=True))


def test_owners_are_apart():
    """Two components step with moments of their own, as if each had its optimizer."""
    optimizer, named, other = make_adamw(0.01), make_parameters(), make_parameters(seed=3)
    for step in range(3):
        set_gradients(named, step)
        optimizer.step("ner", named)
        set_gradients(other, 50 + step)
        optimizer.step("typer", other)
    alone = our_steps(make_adamw(0.01), make_parameters(), steps=3)
    assert all(torch.equal(x, alone[name]) for name, x in values(named).items())
    assert sorted(optimizer.state_dict()["steppers"]) == ["ner", "typer"]


def test_other_components_step_by_thincs_adam():
    """A Thinc layer beside ours learns by the same settings, as Thinc applies them."""
    results = []
    for optimizer in (
        make_adamw(schedule(), weight_decay=0.1, grad_clip=1.0),
        Adam(schedule(), beta1=0.9, beta2=0.98, eps=1e-6, L2=0.1, grad_clip=1.0, use_averages=False),
    ):
        layer = Linear(3, 2).initialize()
        layer.set_param("W", np.arange(6, dtype="f").reshape(3, 2) / 5)
        for step in range(4):
            x = np.random.default_rng(step).normal(size=(5, 2)).astype("f")
            y, backprop = layer.begin_update(x)
            backprop(y - 1)
            layer.finish_update(optimizer)
            optimizer.step_schedules()
        results.append((layer.get_param("W"), layer.get_param("b")))
    for got, wanted in zip(*results):
        np.testing.assert_array_equal(got, wanted)
    assert not np.allclose(results[0][1], 0)


@pytest.mark.parametrize("stepped", [False, True])
def test_a_rate_that_stays_at_0_is_said_for_other_components_too(stepped, recwarn):
    """As spaCy's textcat has it, added to a trained pipeline and updated with the config's optimizer."""
    optimizer = make_adamw(schedule())
    layer = Linear(3, 2).initialize()
    for _ in range(2):
        y, backprop = layer.begin_update(np.ones((5, 2), "f"))
        backprop(y - 1)
        layer.finish_update(optimizer)
        if stepped:
            optimizer.step_schedules()
    assert [("still 0 at the second" in str(one.message)) for one in recwarn] == [True] * (not stepped)


def test_registered_with_the_papers_defaults():
    optimizer = registry.resolve({"optimizer": {"@optimizers": "spacy-luke.AdamW.v1"}})["optimizer"]
    assert isinstance(optimizer, AdamW)
    got = (optimizer.learn_rate, optimizer.b1, optimizer.b2, optimizer.eps, optimizer.L2, optimizer.grad_clip)
    assert got == (1e-5, 0.9, 0.98, 1e-6, 0.01, 0.0)
    assert optimizer.averages is None
    config = {
        "@optimizers": "spacy-luke.AdamW.v1",
        "learn_rate": {"@schedules": "warmup_linear.v1", "initial_rate": 1.0, "warmup_steps": 2, "total_steps": 4},
        "group_rates": {"^head": 5.0},
    }
    optimizer = registry.resolve({"optimizer": config})["optimizer"]
    assert optimizer.learn_rate == 0.0
    optimizer.step_schedules()
    assert optimizer.learn_rate == 0.5
    assert optimizer.multiple("head.classifier.weight", 0) == 5.0


def test_quoted_patterns():
    """In a spaCy config quotation marks belong to the key, and would match nothing."""
    config = Config().from_str('[rates]\n"^head" = 5.0\n')
    with pytest.raises(ValueError, match="without quotation marks"):
        make_adamw(0.01, group_rates=config["rates"])
    config = Config().from_str("[rates]\n^head = 5.0\n")
    assert make_adamw(0.01, group_rates=config["rates"]).group_rate("head.classifier.weight") == 5.0
