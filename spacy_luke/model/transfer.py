"""Between the host and the device: all that is needed at once goes over in one copy.

A GPU is waited for when its values are read, and each copy has a price of its own, whatever its size. On a CPU nothing
is copied.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

_ALIGNED = 16  # bytes; where a tensor begins in what is sent
Tree = TypeVar("Tree")


def to_device(tree: Tree, device: torch.device) -> Tree:
    """The same tuples and dataclasses with all their tensors on the device.

    Those on the host are sent as bytes of one buffer, to a GPU from pinned memory and without waiting, and are views of
    it there: they must not be changed in place.
    """
    if device.type == "cpu":
        return tree
    here = {id(x): x for x in _tensors(tree) if x.device.type == "cpu"}
    if not here:
        return tree
    sent = dict(zip(here, _send(list(here.values()), device), strict=True))
    return cast(Tree, _replaced(tree, sent))


def to_host(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same on the CPU, without gradients: the device is waited for once."""
    return begin_to_host(tensors)()


def begin_to_host(tensors: Sequence[Tensor]) -> Callable[[], list[Tensor]]:
    """`to_host` in two steps: what is returned waits until the tensors have come, and not for what the device is asked
    to compute in between."""
    given = [x.detach() for x in tensors]
    if all(x.device.type == "cpu" for x in given):
        return lambda: given
    widest_first = sorted(range(len(given)), key=lambda i: -given[i].element_size())
    flat = [given[i].contiguous().reshape(-1).view(torch.uint8) for i in widest_first]
    shapes = [(x.dtype, x.shape) for x in given]
    arrive = _begin_copy(torch.cat(flat))

    def finish() -> list[Tensor]:
        parts = arrive().split([len(x) for x in flat])
        found = dict(zip(widest_first, parts, strict=True))
        return [found[i].view(dtype).reshape(shape) for i, (dtype, shape) in enumerate(shapes)]

    return finish


def _begin_copy(buffer: Tensor) -> Callable[[], Tensor]:
    if buffer.device.type != "cuda":
        return buffer.cpu
    pinned = torch.empty(buffer.shape, dtype=buffer.dtype, device="cpu", pin_memory=True)
    pinned.copy_(buffer, non_blocking=True)
    done = torch.cuda.Event()
    done.record()

    def arrive() -> Tensor:
        done.synchronize()
        return pinned.clone()  # pinned memory is scarce, and numbers may be kept

    return arrive


def _send(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    edges = [0]
    for x in tensors:
        edges.append(edges[-1] + -(-x.numel() * x.element_size() // _ALIGNED) * _ALIGNED)
    buffer = torch.empty(edges[-1], dtype=torch.uint8, device="cpu", pin_memory=device.type == "cuda")
    for x, part in zip(tensors, _parts(buffer, edges, tensors), strict=True):
        part.copy_(x)
    return list(_parts(buffer.to(device, non_blocking=True), edges, tensors))


def _parts(buffer: Tensor, edges: Sequence[int], tensors: Sequence[Tensor]) -> Iterator[Tensor]:
    """What lies in the buffer, in the tensors' types and shapes."""
    for start, x in zip(edges, tensors):
        yield buffer[start : start + x.numel() * x.element_size()].view(x.dtype).view(x.shape)


def _tensors(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, tuple):
        for part in tree:
            yield from _tensors(part)
    elif is_dataclass(tree):
        for field in fields(tree):
            yield from _tensors(getattr(tree, field.name))


def _replaced(tree: Any, sent: dict[int, Tensor]) -> Any:
    if isinstance(tree, Tensor):
        return sent.get(id(tree), tree)
    if isinstance(tree, tuple):
        return tuple(_replaced(part, sent) for part in tree)
    if is_dataclass(tree) and not isinstance(tree, type):
        return replace(tree, **{field.name: _replaced(getattr(tree, field.name), sent) for field in fields(tree)})
    return tree
