"""The processes of one training or pretraining, as `torchrun` starts them: which this one is, and what they tell one
another.

Of a pretraining the model is copied to every process (DistributedDataParallel) or divided among them (`fully_shard`,
FSDP2). The gradients of all are averaged; since a step's loss is divided by what all processes together are asked, each
multiplies its part by their number. Of a training of components gradients are sums (`sum_tensors`).
"""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from types import ModuleType
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

_PARALLEL = ("ddp", "fsdp")
_PATIENCE = timedelta(hours=6)  # that a process waits for the others, such as while the main one writes or evaluates
_BUCKET = 1 << 24  # numbers that go over at once
_PASSES = ("words_only", "entities_last", "aggregate")  # of layers, beside their `forward`
KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


@dataclass(frozen=True)
class Processes:
    """rank: of this process, of `size`; parallel: "ddp" or "fsdp", of no account where size is 1. some_unused: whether
    the model has parameters that no loss reaches."""

    rank: int = 0
    size: int = 1
    parallel: str = "ddp"
    some_unused: bool = False

    @property
    def is_main(self) -> bool:
        """Whether this one writes files and reports."""
        return self.rank == 0

    @property
    def is_sharded(self) -> bool:
        return self.size > 1 and self.parallel == "fsdp"

    def gpu(self, gpu_id: int) -> int:
        """The GPU of this process, of many processes its own; -1: none."""
        return gpu_id if gpu_id < 0 or self.size == 1 else torch.cuda.current_device()

    def place(self, model: nn.Module, *, gpu_id: int) -> None:
        """Move the model to a GPU, of many processes to this one's own; -1: it stays on the CPU."""
        if gpu_id >= 0:
            model.cuda(self.gpu(gpu_id))

    def seed(self, seed: int) -> None:
        """Of many processes each draws other numbers, for dropout."""
        if self.size > 1:
            torch.manual_seed(seed + self.rank)

    def wrap(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> nn.Module:
        """What is called in place of the model for training, and shares the gradients. dtype: of the passes; parts of a
        model go over in it, and gradients in float32, in which each process keeps its part."""
        if self.size == 1:
            return model
        if self.is_sharded:
            try:
                from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
            except ImportError as error:
                raise ImportError(
                    f'training.parallel = "fsdp" needs torch 2.6 or later, but this is {torch.__version__}. '
                    'Upgrade torch, or set "ddp".'
                ) from error
            # Keys and values that a layer gives out are views; nothing changes them in place.
            warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
            low = None if dtype == torch.float32 else dtype
            policy = MixedPrecisionPolicy(param_dtype=low, reduce_dtype=torch.float32)
            for layer in model.get_submodule("encoder.layers").children():
                fully_shard(layer, mp_policy=policy)
                for name in _PASSES:
                    if hasattr(layer, name):
                        register_fsdp_forward_method(layer, name)
            fully_shard(model, mp_policy=policy)
            if low is not None:
                _join_types(model)
            return model
        device = next(model.parameters()).device
        devices = None if device.type == "cpu" else [device]
        return DistributedDataParallel(model, device_ids=devices, find_unused_parameters=self.some_unused)

    def accumulating(self, model: nn.Module, *, is_last: bool) -> AbstractContextManager[None]:
        """Around a forward and backward pass: gradients are shared after the last one of a step only."""
        if isinstance(model, DistributedDataParallel):
            return nullcontext() if is_last else model.no_sync()
        if self.is_sharded:
            model.set_requires_gradient_sync(is_last)  # type: ignore[operator]
        return nullcontext()

    def sum(self, values: Mapping[KeyT, float]) -> dict[KeyT, float]:
        """Sums over all processes, in float64."""
        if self.size == 1 or not values:
            return dict(values)
        total = torch.tensor(list(values.values()), dtype=torch.float64, device=_device())
        dist.all_reduce(total)
        return dict(zip(values, total.tolist(), strict=True))

    def totals(self, counts: Mapping[KeyT, float], device: torch.device) -> Mapping[KeyT, float | Tensor]:
        """Sums over all processes as float32 on the device, which is not waited for; numbers where there is one
        process."""
        if self.size == 1:
            return counts
        total = torch.tensor(list(counts.values()), dtype=torch.float32).to(device, non_blocking=True)
        dist.all_reduce(total)
        return dict(zip(counts, total.unbind(), strict=True))

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes, in the order of their ranks."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def sum_tensors(self, tensors: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor | None]:
        """The sums over all processes, each time in the order given; None where no process has any.

        like: a tensor of the same shape, type and device for each; the same in all processes.
        """
        if self.size == 1:
            return list(tensors)
        there = torch.tensor([x is not None for x in tensors], dtype=torch.uint8, device=_device())
        if len(there):
            dist.all_reduce(there, op=dist.ReduceOp.MAX)
        found: list[Tensor | None] = [None] * len(tensors)
        wanted = [i for i, any_has in enumerate(there.tolist()) if any_has]
        for places in _buckets(wanted, like):
            parts = [x if x is not None else torch.zeros_like(like[i]) for i in places for x in [tensors[i]]]
            flat = torch.cat([x.reshape(-1) for x in parts])
            dist.all_reduce(flat)
            for i, part in zip(places, flat.split([x.numel() for x in parts]), strict=True):
                found[i] = part.view(like[i].shape)
        return found

    def first(self, value: ValueT) -> ValueT:
        """The main process's value, in all."""
        if self.size == 1:
            return value
        values = [value if self.is_main else None]
        dist.broadcast_object_list(values, src=0)
        return cast(ValueT, values[0])

    def copy_first(self, tensors: Sequence[Tensor]) -> None:
        """Give all processes the main one's values, in place."""
        if self.size > 1:
            with torch.no_grad():
                for x in tensors:
                    dist.broadcast(x, src=0)

    def tensors(self, model: nn.Module) -> dict[str, Tensor]:
        """The model's whole state on the CPU; of a divided one in the main process only, but all must call it."""
        if not self.is_sharded:
            return {name: x.detach().cpu() for name, x in model.state_dict().items()}
        states, options = _states()
        whole = states.get_model_state_dict(model, options=options)
        return {name: x for name, x in whole.items() if isinstance(x, Tensor)}

    def load_tensors(self, model: nn.Module, tensors: dict[str, Tensor]) -> None:
        """Into the model; of parameters that are one, `tensors` may have the first name alone."""
        if self.is_sharded:
            states, options = _states()
            states.set_model_state_dict(model, dict(tensors), options=options)
            return
        with torch.no_grad():
            for name, x in model.state_dict().items():
                if name in tensors:
                    x.copy_(tensors[name])

    def load_optimizer(self, stepper: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        """A whole state; of parameters that are divided each process takes its part."""
        if self.is_sharded:
            from torch.distributed.tensor import DTensor, distribute_tensor

            parameters = [p for group in stepper.param_groups for p in group["params"]]
            for number, moments in state["state"].items():
                p = parameters[number]
                mesh, places = (p.device_mesh, p.placements) if isinstance(p, DTensor) else (None, None)
                stepper.state[p] = {
                    name: distribute_tensor(x.to(p.device), mesh, places) if mesh and x.shape == p.shape else x
                    for name, x in moments.items()
                }
        else:
            stepper.load_state_dict(state)

    def wait(self) -> None:
        if self.size > 1:
            dist.barrier()


def _join_types(model: nn.Module) -> None:
    """On a CPU autocast gives norms float32 where their parameters are low; of a GPU it makes them alike."""
    for module in model.modules():
        if isinstance(module, nn.LayerNorm) and module.weight.device.type == "cpu":
            module.register_forward_pre_hook(lambda norm, given: (given[0].to(norm.weight.dtype), *given[1:]))


def _buckets(places: Sequence[int], like: Sequence[Tensor]) -> Iterator[list[int]]:
    """Places of one type of numbers and one device, up to BUCKET numbers."""
    held: list[int] = []
    for i in places:
        x = like[i]
        if held and (
            (x.dtype, x.device) != (like[held[0]].dtype, like[held[0]].device)
            or sum(like[k].numel() for k in held) + x.numel() > _BUCKET
        ):
            yield held
            held = []
        held.append(i)
    if held:
        yield held


def _states() -> tuple[ModuleType, Any]:
    """What reads and writes the whole state of a divided model, and its options. It is imported here since that takes
    longer than all of this package, and every command of spaCy's imports the package's."""
    from torch.distributed.checkpoint import state_dict

    return state_dict, state_dict.StateDictOptions(full_state_dict=True, cpu_offload=True)


@contextmanager
def join_processes(parallel: str = "ddp", *, gpu: bool = False, some_unused: bool = False) -> Iterator[Processes]:
    """This process among those that `torchrun` has started, alone where there are none; gpu: each takes one of its
    own. some_unused: see `Processes`."""
    if parallel not in _PARALLEL:
        raise ValueError(f"parallel must be one of {_PARALLEL}, but it is {parallel!r}.")
    rank, size = (_from_environment(name) for name in ("RANK", "WORLD_SIZE"))
    if rank is None or size is None or size == 1:
        yield Processes(parallel=parallel)
        return
    if gpu:
        torch.cuda.set_device(_from_environment("LOCAL_RANK") or 0)
    dist.init_process_group("nccl" if gpu else "gloo", timeout=_PATIENCE)
    try:
        yield Processes(rank, size, parallel, some_unused)
    finally:
        dist.destroy_process_group()


def _from_environment(name: str) -> int | None:
    return int(os.environ[name]) if name in os.environ else None


def _device() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
