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
from thinc.api import Adam, Model, chain

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.bridge.wrapper import TorchShim, shims_of, to_tensor
from tests.bridge.nets import make_shim, run

# ---- building


def test_without_weights():
    shim = make_shim(created=False)
    assert not shim.ready
    assert shim.named_parameters() == []
    assert shim.stored() == ({}, {})
    with pytest.raises(ValueError, match=r"The model has no weights yet: expected nlp.initialize\(\)"):
        _ = shim.module
    shim.finish_update(Adam(0.1))
    shim.finish_update(make_adamw(0.1))


def test_created_in_eval_mode():
    shim = make_shim()
    assert shim.ready
    assert not any(part.training for part in shim.module.modules())
    assert shim.settings == {"width": 3, "rows": 5}
    assert shim.device == torch.device("cpu")
    names = {"table.weight", "part.linear.weight", "part.linear.bias", "shift"}
    assert {name for name, _ in shim.named_parameters()} == names


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


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_whose_parent_used_no_module_keeps_its_threads():
    """As the worker of a web server that loads a pipeline of its own."""
    command = [sys.executable, "-c", textwrap.dedent(CHILD)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert (done.stdout.split(), done.returncode) == (["33"], 0), done.stderr
