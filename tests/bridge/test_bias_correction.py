"""AdamW without bias correction, as the codes of the papers have it, for torch's parameters and for Thinc's."""

import io
import itertools
import math

import numpy as np
import pytest
import torch
from thinc.api import Linear

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.bridge.schedules import make_linear
from tests.bridge.stepping import assert_same, make_parameters, our_steps, plain_decay, set_gradients, values


def transformers_adamw(named, rates, *, betas, eps, clip):
    """transformers.AdamW with correct_bias=False, which the originals train with, as its source has it (4.x,
    optimization.py); then torch's clipping of the norm of all. Decay comes after the step here."""
    mean, square = ({name: torch.zeros_like(p) for name, p in named} for _ in range(2))
    for step, rate in enumerate(rates):
        set_gradients(named, step)
        torch.nn.utils.clip_grad_norm_([p for _, p in named], clip)
        with torch.no_grad():
            for name, p in named:
                mean[name].mul_(betas[0]).add_(p.grad, alpha=1.0 - betas[0])
                square[name].mul_(betas[1]).addcmul_(p.grad, p.grad, value=1.0 - betas[1])
                p.addcdiv_(mean[name], square[name].sqrt().add_(eps), value=-rate)
                if decay := plain_decay(name)[1]:
                    p.add_(p, alpha=-rate * decay)
    return values(named)


@pytest.mark.slow
def test_without_bias_correction_as_transformers_once_had_it():
    """The 120 steps of AIDA's fine-tuning: far from corrected ones, and as the original's to the last digits."""
    rates = list(itertools.islice(make_linear(2e-5, 0.1, total_steps=120), 120))
    settings = {"beta2": 0.999, "weight_decay": 0.1, "grad_clip": 1.0}
    wanted = transformers_adamw(make_parameters(), rates, betas=(0.9, 0.999), eps=1e-6, clip=1.0)
    plain, corrected = (
        our_steps(
            make_adamw(make_linear(2e-5, 0.1, total_steps=120), bias_correction=corrects, **settings),
            make_parameters(),
            steps=120,
        )
        for corrects in (False, True)
    )
    start = values(make_parameters())
    assert_same(plain, wanted, atol=3e-8)
    moved, wanted_moved, too_little = (
        float(torch.cat([(x[name] - start[name]).flatten() for name in start]).norm())
        for x in (plain, wanted, corrected)
    )
    assert moved == pytest.approx(wanted_moved, rel=1e-4)
    assert wanted_moved > 2 * too_little


def test_spacys_components_are_not_corrected_either():
    """A weight whose gradient is always 1: the first step is 0.1 / sqrt(1 - 0.98) rates, and not one."""
    layer = Linear(1, 1).initialize()
    layer.set_param("W", np.zeros((1, 1), "f"))
    layer.set_param("b", np.zeros(1, "f"))
    optimizer = make_adamw(0.01, weight_decay=0.0, eps=1e-12, bias_correction=False)
    for step in range(1, 4):
        before = float(layer.get_param("b")[0])
        layer.inc_grad("W", np.ones((1, 1), "f"))
        layer.inc_grad("b", np.ones(1, "f"))
        layer.finish_update(optimizer)
        expected = 0.01 * (1 - 0.9**step) / math.sqrt(1 - 0.98**step)
        assert before - float(layer.get_param("b")[0]) == pytest.approx(expected, rel=1e-4)


def test_resumes_without_bias_correction():
    whole = our_steps(make_adamw(0.01, bias_correction=False), make_parameters(), steps=5)
    optimizer, named = make_adamw(0.01, bias_correction=False), make_parameters()
    our_steps(optimizer, named, steps=3)
    saved = io.BytesIO()
    torch.save(optimizer.state_dict(), saved)
    resumed = make_adamw(0.01, bias_correction=False)
    resumed.load_state_dict(torch.load(io.BytesIO(saved.getvalue()), weights_only=True))
    rest = our_steps(resumed, named, steps=2, first=3)
    assert all(torch.equal(x, whole[name]) for name, x in rest.items())
