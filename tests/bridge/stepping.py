"""A small encoder and head with gradients made by hand, and steps of our optimizer on them."""

import torch
from torch import nn

from spacy_luke.model.config import LukeConfig
from spacy_luke.model.fresh import initialize
from spacy_luke.model.luke import LukeEncoder


def make_parameters(seed=0):
    """A small encoder and head, with the names that components give."""
    config = LukeConfig(20, 4, hidden_size=8, num_layers=3, num_heads=2, intermediate_size=12, entity_size=4)
    encoder, head = LukeEncoder(config), nn.Linear(8, 3)
    for module in (encoder, head):
        initialize(module, std=0.2, generator=torch.Generator().manual_seed(seed))
    named = [(f"encoder.{n}", p) for n, p in encoder.named_parameters()]
    return named + [(f"head.classifier.{n}", p) for n, p in head.named_parameters()]


def set_gradients(named, step, *, scale=1.0):
    generator = torch.Generator().manual_seed(100 + step)
    for _, p in named:
        p.grad = scale * torch.randn(p.shape, generator=generator)


def values(named):
    return {name: p.detach().clone() for name, p in named}


def our_steps(optimizer, named, *, steps, first=0, scale=1.0):
    for step in range(first, first + steps):
        set_gradients(named, step, scale=scale)
        optimizer.step("ner", named)
        assert all(p.grad is None for _, p in named)
        optimizer.step_schedules()
    return values(named)


def assert_same(got, expected, *, atol=1e-7):
    for name, x in expected.items():
        torch.testing.assert_close(got[name], x, atol=atol, rtol=1e-5, msg=lambda text, name=name: f"{name}: {text}")


def plain_decay(name):
    return 1.0, 0.0 if name.endswith("bias") or ".norm." in name or "_norm." in name else 0.1
