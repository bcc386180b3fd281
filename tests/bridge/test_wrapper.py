"""The shim between torch and Thinc: building, saving, stepping."""

import json
import multiprocessing
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from spacy.util import registry
from thinc.api import Adam, Model, chain
from torch import nn

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.bridge.wrapper import TorchShim, optional_tensor, shims_of, to_tensor


class Part(nn.Module):
    """A module with a float `dropout`, as attention has."""

    def __init__(self, width: int):
        super().__init__()
        self.dropout = 0.1
        self.linear = nn.Linear(width, width)


class Net(nn.Module):
    def __init__(self, width: int, rows: int):
        super().__init__()
        self.table = nn.Embedding(rows, width)
        self.part = Part(width)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("scale", torch.ones(2))

    def forward(self, rows):
        return self.part.linear(self.drop(self.table(rows)))


def make_shim(*, created: bool = True, trainable: bool = True, seed: int = 0) -> TorchShim:
    shim = TorchShim(lambda settings: Net(settings["width"], settings["rows"]), trainable=trainable)
    if created:
        torch.manual_seed(seed)
        shim.create({"width": 3, "rows": 5})
    return shim


def run(shim: TorchShim, *, is_train: bool) -> torch.Tensor:
    with shim.running(is_train=is_train) as module:
        return module(torch.tensor([0, 3, 3]))


# ---- building


def test_without_weights():
    shim = make_shim(created=False)
    assert not shim.ready
    assert shim.named_parameters() == []
    assert shim.stored() == ({}, {})
    with pytest.raises(ValueError, match=r"no weights yet: expected nlp.initialize\(\)"):
        _ = shim.module
    shim.finish_update(Adam(0.1))
    shim.finish_update(make_adamw(0.1))


def test_created_in_eval_mode():
    shim = make_shim()
    assert shim.ready
    assert not any(part.training for part in shim.module.modules())
    assert shim.settings == {"width": 3, "rows": 5}
    assert shim.device == torch.device("cpu")
    assert {name for name, _ in shim.named_parameters()} == {"table.weight", "part.linear.weight", "part.linear.bias"}


def test_frozen():
    shim = make_shim(trainable=False)
    assert shim.named_parameters() == []
    assert not run(shim, is_train=True).requires_grad


def test_fill_demands_every_name_and_shape():
    shim = make_shim()
    state = {name: torch.full_like(x, 0.5) for name, x in shim.module.state_dict().items()}
    shim.fill(state)
    assert all(torch.equal(x, state[name]) for name, x in shim.module.state_dict().items())
    missing = {name: x for name, x in state.items() if name != "table.weight"}
    for wrong, message in (
        (missing, "Missing key.*table.weight"),
        ({**state, "other": torch.ones(1)}, "Unexpected key.*other"),
        ({**state, "table.weight": torch.ones(3, 5)}, "size mismatch for table.weight"),
    ):
        with pytest.raises(RuntimeError, match=f"(?s){message}"):
            shim.fill(wrong)


# ---- modes


@pytest.mark.parametrize("is_train", [True, False])
def test_left_in_eval_mode(is_train):
    shim = make_shim()
    with shim.running(is_train=is_train) as module:
        assert all(part.training == is_train for part in module.modules())
    assert not any(part.training for part in shim.module.modules())


def fail_inside(shim: TorchShim) -> None:
    with shim.running(is_train=True):
        raise KeyError("inside")


def test_left_in_eval_mode_after_an_error():
    shim = make_shim()
    with pytest.raises(KeyError, match="inside"):
        fail_inside(shim)
    assert not any(part.training for part in shim.module.modules())


def test_dropout_rate():
    shim = make_shim()
    for rate in (0.0, 0.5, 0, 0.25):  # a whole number too
        shim.set_dropout(rate)
        assert (shim.module.drop.p, shim.module.part.dropout) == (rate, rate)
    assert torch.equal(run(shim, is_train=False), run(shim, is_train=False))


# ---- steps


def prepared(shim: TorchShim, step: int) -> None:
    run(shim, is_train=True).pow(2).sum().backward()
    assert all(p.grad is not None for _, p in shim.named_parameters()), step


def test_thincs_adam_steps_parameters():
    """Adam.v1, spaCy's default, steps torch parameters just as it steps arrays."""
    optimizer = registry.optimizers.get("Adam.v1")(0.01, L2=0.1, grad_clip=1.0, use_averages=False)
    plain = Adam(0.01, L2=0.1, grad_clip=1.0, use_averages=False)
    shim = make_shim()
    shim.set_dropout(0.0)
    arrays = {name: p.detach().numpy().copy() for name, p in shim.named_parameters()}
    before = {name: x.copy() for name, x in arrays.items()}
    for step in range(3):
        prepared(shim, step)
        for name, p in shim.named_parameters():
            arrays[name], _ = plain((1, name), arrays[name], p.grad.numpy().copy())
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


# ---- saving


def full_shim() -> TorchShim:
    shim = make_shim(seed=3)
    shim.texts = {"tokenizer": '{"a": "Größe 日本 \U0001f600"}', "entities": "[PAD]\n\x00"}
    shim.kept = {"table": torch.arange(6.0).reshape(2, 3), "half": torch.ones(2, dtype=torch.bfloat16)}
    return shim


def test_bytes_round_trip():
    shim = full_shim()
    again = make_shim(created=False).from_bytes(shim.to_bytes())
    assert again.settings == shim.settings
    assert again.texts == shim.texts
    assert again.kept.keys() == shim.kept.keys()
    assert all(torch.equal(again.kept[name], x) and again.kept[name].dtype == x.dtype for name, x in shim.kept.items())
    state = shim.module.state_dict()
    assert again.module.state_dict().keys() == state.keys()
    assert all(torch.equal(again.module.state_dict()[name], x) for name, x in state.items())
    assert not any(part.training for part in again.module.modules())
    assert torch.equal(run(again, is_train=False), run(shim, is_train=False))
    assert again.to_bytes() == shim.to_bytes()
    again.module.table.weight.data.add_(1)  # memory of its own
    assert not torch.equal(run(again, is_train=False), run(shim, is_train=False))


def test_loaded_over_another():
    """Sizes, texts and kept tensors of before are gone."""
    other = make_shim()
    other.create({"width": 7, "rows": 2})
    other.texts, other.kept = {"old": "x"}, {"old": torch.ones(1)}
    shim = full_shim()
    other.from_bytes(shim.to_bytes())
    assert (other.settings, other.texts, set(other.kept)) == (shim.settings, shim.texts, set(shim.kept))


def test_frozen_stays_frozen_when_loaded():
    again = make_shim(created=False, trainable=False).from_bytes(make_shim(trainable=False).to_bytes())
    assert again.ready
    assert again.named_parameters() == []


def test_bytes_without_weights():
    again = make_shim(created=False).from_bytes(make_shim(created=False).to_bytes())
    assert not again.ready


def test_other_version():
    tensors, stored = make_shim().stored()
    data = save(tensors, {"shim": json.dumps({**stored, "version": 99})})
    assert load(data).keys() == tensors.keys()
    with pytest.raises(ValueError, match="weights have format version 99; this version of spacy_luke reads 1"):
        make_shim(created=False).from_bytes(data)


def test_copy_is_apart():
    shim = full_shim()
    twin = shim.copy()
    shim.module.table.weight.data.add_(1)
    assert not torch.equal(run(twin, is_train=False), run(shim, is_train=False))
    assert twin.texts == shim.texts


def test_inside_a_thinc_model():
    def node(name):
        return Model(name, lambda model, x, is_train: (x, lambda d: d), shims=[make_shim(created=False)])

    model = chain(node("one"), node("two"))
    assert list(shims_of(model)) == ["one", "two"]
    for i, shim in enumerate(shims_of(model).values()):
        shim.create({"width": 2 + i, "rows": 4})
        shim.texts = {"text": str(i)}
    again = chain(node("one"), node("two")).from_bytes(model.to_bytes())
    for name, shim in shims_of(model).items():
        other = shims_of(again)[name]
        assert (other.settings, other.texts) == (shim.settings, shim.texts)
        for key, x in shim.module.state_dict().items():
            assert torch.equal(other.module.state_dict()[key], x)


# ---- the rest


def test_to_tensor():
    assert optional_tensor(None, torch.device("cpu")) is None
    assert optional_tensor(np.array([3]), torch.device("cpu")).tolist() == [3]
    got = to_tensor(np.array([1, 2], dtype=np.int64), torch.device("cpu"))
    assert got.dtype == torch.int64
    assert got.tolist() == [1, 2]


def _in_child(shim, queue) -> None:
    before = torch.get_num_threads()
    found = None if shim is None else run(shim, is_train=False).tolist()
    queue.put((before, torch.get_num_threads(), found))


def in_child(shim):
    """Torch's threads in a forked child, before and after it runs the shim's module, and what this gave."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(shim, queue), daemon=True)
    child.start()
    answer = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    return answer


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_a_forked_child_can_compute():
    """After the parent has used its threads, a child that waits for them would hang; but what other children do with
    torch is not ours to change."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        shim = make_shim()
        shim.create({"width": 700, "rows": 700})
        expected = run(shim, is_train=False).tolist()
        assert in_child(None) == (2, 2, None)
        assert in_child(shim) == (2, 1, expected)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


CHILD = """
    import os
    import torch
    from spacy_luke.bridge.wrapper import TorchShim

    torch.set_num_threads(3)
    child = os.fork()
    if child == 0:
        before = torch.get_num_threads()
        shim = TorchShim(lambda settings: torch.nn.Linear(2, 2))
        shim.create({})
        with shim.running(is_train=False) as module:
            module(torch.ones(1, 2))
        os._exit(10 * before + torch.get_num_threads())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_whose_parent_used_no_module_keeps_its_threads():
    """As the worker of a web server that loads a pipeline of its own."""
    command = [sys.executable, "-c", textwrap.dedent(CHILD)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert (done.stdout.split(), done.returncode) == (["33"], 0), done.stderr
