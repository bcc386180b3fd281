"""What goes over to a device is the same there, and goes at once."""

from dataclasses import dataclass

import pytest
import torch

from spacy_luke.model.transfer import begin_to_host, to_device, to_host
from tests.gpu.pretended import DEVICE, PretendedGPU

CPU = torch.device("cpu")
TYPES = [torch.int64, torch.float32, torch.bool, torch.float16, torch.uint8, torch.float64, torch.bfloat16]


@dataclass(frozen=True)
class Inner:
    rows: torch.Tensor
    name: str
    lengths: list[int]


@dataclass(frozen=True)
class Outer:
    inner: Inner
    pair: tuple[torch.Tensor, torch.Tensor | None]
    number: int


def make_tensors():
    generator = torch.Generator().manual_seed(0)
    shapes = [(3,), (2, 5), (7,), (), (0,), (1, 1, 3), (4, 0), (5, 3)]
    return [(torch.randn(s, generator=generator) * 9).to(TYPES[i % len(TYPES)]) for i, s in enumerate(shapes)]


def test_one_transfer_there_and_one_wait_back():
    tensors = make_tensors()
    tensors.append(tensors[1].t())  # not contiguous
    with PretendedGPU() as gpu:
        there = to_device(tuple(tensors), DEVICE)
        assert (gpu.waits.total(), gpu.transfers.total()) == (0, 1)
        assert all(x.device == DEVICE for x in there)
        back = to_host(there)
        assert (gpu.waits.total(), gpu.transfers.total()) == (1, 1)
        assert [x.dtype for x in back] == [x.dtype for x in tensors]
        assert all(torch.equal(x, y) for x, y in zip(back, tensors, strict=True))
        assert to_device(there, DEVICE)[0] is there[0]
        assert gpu.transfers.total() == 1


def test_trees():
    rows = torch.arange(4)
    tree = Outer(Inner(rows, "name", [4]), (rows, None), 3)
    assert to_device(tree, CPU) is tree
    with PretendedGPU() as gpu:
        there = to_device(tree, DEVICE)
        assert gpu.transfers.total() == 1
        assert (there.inner.name, there.inner.lengths, there.number, there.pair[1]) == ("name", [4], 3, None)
        assert there.pair[0] is there.inner.rows  # sent once
        assert there.inner.rows.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("empty", [(), (torch.empty(0),)])
def test_nothing_to_send(empty):
    with PretendedGPU() as gpu:
        assert len(to_device(empty, DEVICE)) == len(empty)
        assert gpu.waits.total() == 0


def test_on_the_cpu_nothing_is_copied():
    tensors = make_tensors()
    assert all(x.data_ptr() == y.data_ptr() for x, y in zip(to_host(tensors), tensors, strict=True))
    assert not to_host([torch.ones(2, requires_grad=True)])[0].requires_grad


def test_nothing_is_waited_for_before_it_is_asked_for():
    expected = make_tensors()
    with PretendedGPU() as gpu:
        there = to_device(tuple(expected), DEVICE)
        finish = begin_to_host(there)
        assert gpu.waits.total() == 0
        found = finish()
        assert gpu.waits.total() == 1
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert torch.equal(one, other)
