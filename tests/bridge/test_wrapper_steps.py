"""Steps of the parameters that a shim owns, by Thinc's optimizers and ours."""

import numpy as np
import pytest
import torch
from spacy.util import registry
from thinc.api import Adam

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.bridge.wrapper import TorchShim
from tests.bridge.nets import make_shim, run


def prepared(shim: TorchShim, step: int) -> None:
    run(shim, is_train=True).pow(2).sum().backward()
    assert all(p.grad is not None for _, p in shim.named_parameters()), step


def test_thincs_adam_steps_parameters():
    """Adam.v1, spaCy's default, steps torch parameters just as it steps arrays; a number alone as an array of one."""
    optimizer = registry.optimizers.get("Adam.v1")(0.01, L2=0.1, grad_clip=1.0, use_averages=False)
    plain = Adam(0.01, L2=0.1, grad_clip=1.0, use_averages=False)
    shim = make_shim()
    shim.set_dropout(0.0)
    arrays = {name: np.atleast_1d(p.detach().numpy().copy()) for name, p in shim.named_parameters()}
    before = {name: x.copy() for name, x in arrays.items()}
    for step in range(3):
        prepared(shim, step)
        for name, p in shim.named_parameters():
            arrays[name], _ = plain((1, name), arrays[name], np.atleast_1d(p.grad.numpy().copy()))
        shim.finish_update(optimizer)
        assert all(p.grad is None for _, p in shim.named_parameters())
        for name, p in shim.named_parameters():
            np.testing.assert_array_equal(p.detach().numpy(), arrays[name])
    assert all(not np.allclose(arrays[name], x) for name, x in before.items())


def test_adamw_steps_parameters():
    shim, optimizer = make_shim(), make_adamw(0.01)
    twin = make_shim()
    reference = torch.optim.AdamW(
        [{"params": [p], "weight_decay": 0.0 if n.endswith("bias") else 0.01} for n, p in twin.named_parameters()],
        lr=0.01,
        betas=(0.9, 0.98),
        eps=1e-6,
    )
    for step in range(3):
        for own in (shim, twin):
            own.set_dropout(0.0)
            prepared(own, step)
        shim.finish_update(optimizer)
        reference.step()
        reference.zero_grad()
    for (name, got), (_, wanted) in zip(shim.named_parameters(), twin.named_parameters()):
        assert got.grad is None
        torch.testing.assert_close(got, wanted, msg=name)


@pytest.mark.parametrize("make", [lambda: Adam(0.01), lambda: make_adamw(0.01)])
def test_frozen_parameters_stay(make):
    shim = make_shim()
    shim.module.table.weight.requires_grad_(False)
    before = shim.module.table.weight.clone()
    run(shim, is_train=True).sum().backward()
    shim.finish_update(make())
    assert torch.equal(shim.module.table.weight, before)


def test_other_parameters_for_a_while():
    """An optimizer's averages, as spaCy's evaluation uses them; given back also after an error."""
    shim, optimizer = make_shim(), Adam(0.1)
    shim.set_dropout(0.0)
    start = {name: p.detach().clone() for name, p in shim.named_parameters()}
    for step in range(3):
        prepared(shim, step)
        shim.finish_update(optimizer)
    now = {name: p.detach().clone() for name, p in shim.named_parameters()}
    assert optimizer.averages
    for fails in (False, True):
        try:
            with shim.use_params(optimizer.averages):
                for name, p in shim.named_parameters():
                    np.testing.assert_array_equal(p.detach().numpy(), optimizer.averages[shim.id, name])
                    assert not torch.equal(p, now[name])
                    assert not torch.equal(p, start[name])
                if fails:
                    raise KeyError("inside")
        except KeyError:
            assert fails
        assert all(torch.equal(p, now[name]) for name, p in shim.named_parameters())
    with shim.use_params({}):
        assert all(torch.equal(p, now[name]) for name, p in shim.named_parameters())
