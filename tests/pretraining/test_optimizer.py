"""The optimizer of pretraining beside the original's formula, written out; groups, schedules, frozen parameters."""

import copy

import pytest
import torch
from torch import nn

from spacy_luke.bridge.bert_adam import BertAdam
from spacy_luke.pretraining.optimizer import OptimizerSettings, clip_gradients, make_stepper


def make_model(seed=0):
    torch.manual_seed(seed)
    model = nn.ModuleDict({"dense": nn.Linear(5, 4), "norm": nn.LayerNorm(4), "unused": nn.Linear(2, 2)})
    return model


def step_gradients(model, seed):
    torch.manual_seed(seed)
    model["norm"](model["dense"](torch.randn(3, 5))).pow(3).sum().backward()


def reference(model, *, steps, rate, decay, eps=1e-6, b1=0.9, b2=0.999):
    """BertAdam of the original's optimization.py for one parameter after another, without its clipping."""
    mean = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    square = copy.deepcopy(mean)
    for step in range(steps):
        model.zero_grad()
        step_gradients(model, step)
        with torch.no_grad():
            for name, p in model.named_parameters():
                if p.grad is None:
                    continue
                mean[name] = b1 * mean[name] + (1 - b1) * p.grad
                square[name] = b2 * square[name] + (1 - b2) * p.grad**2
                update = mean[name] / (square[name].sqrt() + eps)
                if not (name.endswith("bias") or name.endswith("norm.weight")):
                    update = update + decay * p
                p -= rate * update


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_as_the_original(decay):
    ours, theirs = make_model(), make_model()
    settings = OptimizerSettings(learn_rate=0.01, weight_decay=decay)
    stepper = make_stepper(ours, settings)
    assert isinstance(stepper, BertAdam)
    for step in range(8):
        stepper.zero_grad()
        step_gradients(ours, step)
        stepper.step()
    reference(theirs, steps=8, rate=0.01, decay=decay)
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters()):
        assert torch.allclose(a, b, atol=1e-6), name


def test_first_step_is_not_corrected():
    """Without correction the first step is 0.1 / sqrt(0.001) = 3.2 rates, with it 1."""
    for corrected, expected in ((False, 0.1 / 0.001**0.5), (True, 1.0)):
        model = nn.Linear(1, 1, bias=False)
        before = model.weight.item()
        settings = OptimizerSettings(learn_rate=0.01, weight_decay=0.0, eps=1e-12, bias_correction=corrected)
        stepper = make_stepper(model, settings)
        model(torch.ones(1, 1)).sum().backward()
        stepper.step()
        assert (before - model.weight.item()) / 0.01 == pytest.approx(expected, rel=1e-3)


def test_sparse_gradients():
    """Rows that are always there move as those of a dense gradient, and the others not at all."""
    ours, theirs = (nn.Embedding(6, 3, sparse=sparse) for sparse in (True, False))
    theirs.weight.data.copy_(ours.weight.data)
    before, rows = ours.weight.detach().clone(), torch.tensor([4, 1, 4])
    steppers = [make_stepper(x, OptimizerSettings(learn_rate=0.1, weight_decay=0.0)) for x in (ours, theirs)]
    for step in range(4):
        norms = []
        for table, stepper in zip((ours, theirs), steppers):
            stepper.zero_grad()
            (table(rows) * (step + 1)).pow(2).sum().backward()
            norms.append(float(clip_gradients(table, 0.5)))
            stepper.step()
        assert norms[0] == pytest.approx(norms[1], rel=1e-5)
    assert torch.allclose(ours.weight, theirs.weight, atol=1e-6)
    assert torch.equal(ours.weight[[0, 2, 3, 5]], before[[0, 2, 3, 5]])
    assert not torch.equal(ours.weight[4], before[4])


def test_decay_of_sparse_gradients():
    table = nn.Embedding(4, 2, sparse=True)
    before = table.weight.detach().clone()
    stepper = make_stepper(table, OptimizerSettings(learn_rate=0.1, weight_decay=0.5))
    (table(torch.tensor([2])) * 0.0).sum().backward()
    stepper.step()
    assert torch.allclose(table.weight[2], before[2] * 0.95)
    assert torch.equal(table.weight[[0, 1, 3]], before[[0, 1, 3]])


def test_groups():
    settings = OptimizerSettings(group_rates={"^dense": 0.5, "norm": 3.0}, frozen=["^unused"])
    model = make_model()
    stepper = make_stepper(model, settings)
    found = {id(p): (g["multiple"], g["weight_decay"]) for g in stepper.param_groups for p in g["params"]}
    assert {name: found.get(id(p)) for name, p in model.named_parameters()} == {
        "dense.weight": (0.5, 0.01),
        "dense.bias": (0.5, 0.0),
        "norm.weight": (3.0, 0.0),
        "norm.bias": (3.0, 0.0),
        "unused.weight": None,
        "unused.bias": None,
    }
    assert not model["unused"].weight.requires_grad


def test_a_pattern_that_finds_nothing():
    with pytest.raises(ValueError, match=r"No parameter has a name that \['head'\] finds; names are like dense.weight"):
        make_stepper(make_model(), OptimizerSettings(group_rates={"head": 2.0}))


def test_rates():
    constant = OptimizerSettings(learn_rate=1.0, warmup_steps=4)
    assert [constant.rate(step, 10) for step in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    linear = OptimizerSettings(learn_rate=1.0, warmup_steps=2, schedule="linear")
    assert [linear.rate(step, 6) for step in range(6)] == [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]


@pytest.mark.parametrize(
    "wrong", [{"schedule": "cosine"}, {"learn_rate": 0.0}, {"warmup_steps": -1}, {"grad_clip": -1.0}]
)
def test_impossible_settings(wrong):
    with pytest.raises(ValueError, match=r"schedule must be one of|Expected learn_rate above 0"):
        OptimizerSettings(**wrong)


def test_states_of_older_versions():
    """Moments had other names, and there was no count of steps."""
    models = [make_model(), make_model()]
    ours, theirs = (make_stepper(model, OptimizerSettings(learn_rate=0.01)) for model in models)
    step_gradients(models[0], 0)
    ours.step()
    models[1].load_state_dict(models[0].state_dict())
    state = copy.deepcopy(ours.state_dict())
    old = {key: {"mean": x["exp_avg"], "square": x["exp_avg_sq"]} for key, x in state["state"].items()}
    groups = [{k: x for k, x in group.items() if k != "fused"} for group in state["param_groups"]]
    theirs.load_state_dict({"state": old, "param_groups": groups})
    for model, stepper in zip(models, (ours, theirs)):
        stepper.zero_grad()
        step_gradients(model, 1)
        stepper.step()
    assert all(torch.equal(a, b) for a, b in zip(models[0].parameters(), models[1].parameters()))


def test_no_step_where_it_is_not_to_be_made():
    table = nn.Embedding(6, 3, sparse=True)
    before = table.weight.detach().clone()
    stepper = make_stepper(table, OptimizerSettings(learn_rate=0.1))
    for wanted in (False, True):
        stepper.found_inf = torch.tensor(float(not wanted))
        table(torch.tensor([1])).sum().backward()
        stepper.step()
        stepper.zero_grad()
        assert torch.equal(before, table.weight) != wanted
