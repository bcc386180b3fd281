"""A GPU that is pretended in torch, for machines that have none: what code does to one is seen, not how fast it is.

Tensors that are moved to DEVICE say that they are there, and are computed on the CPU by the same kernels. So results
are those of the CPU, while `device.type == "cpu"` is false. As on a GPU, an operation that is given tensors of both
sides raises. Counted are, with the place in the package that asked for them:

waits: the host needs a value of the device, so that all that was queued must be done first: `.item()`, `.cpu()`, and
    operations whose result has a size that only the values tell (`nonzero`, `unique`, indexing by a boolean mask).
transfers: tensors that go from the host to the device; single numbers, which are arguments of a kernel, do not count.

    with PretendedGPU() as gpu:
        to_gpu(nlp)
        nlp(text)
    print(gpu.waits, gpu.transfers)

Neither memory nor streams are pretended. Private parts of torch are used: `_setup_privateuseone_for_python_backend`.
"""

import sys
import types
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map_only

import spacy_luke

PACKAGE = Path(spacy_luke.__file__).parent
NAME = "pretended"

if torch.cuda.is_available():  # a backend that is registered is the one whose gradients torch computes
    pytest.skip("there is a GPU: no other one can be pretended beside it", allow_module_level=True)
if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
    pytest.skip(f"torch {torch.__version__} cannot pretend a GPU: 2.13 can", allow_module_level=True)
backend_registration._setup_privateuseone_for_python_backend(NAME)
if not hasattr(torch, NAME):
    torch._register_device_module(NAME, types.ModuleType(NAME))
getattr(torch, NAME).get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]  # autocast asks for it

DEVICE = torch.device(NAME, 0)
aten = torch.ops.aten
READS = {aten._local_scalar_dense.default, aten.equal.default}
SIZED_BY_VALUES = {
    aten.nonzero.default,
    aten._unique2.default,
    aten.unique_dim.default,
    aten.unique_consecutive.default,
    aten.masked_select.default,
    aten.bincount.default,
    aten.repeat_interleave.Tensor,
}
INDEXING = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}


class GPUTensor(torch.Tensor):
    """A tensor of DEVICE; `values` are its values, on the CPU."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, values):
        strides, offset = values.stride(), values.storage_offset()
        x = torch.Tensor._make_wrapper_subclass(
            cls, values.shape, strides=strides, storage_offset=offset, dtype=values.dtype, device=DEVICE
        )
        x.values_ = values
        return x

    def __repr__(self):
        return f"GPUTensor({self.values_!r})"

    def tolist(self):
        """torch has none for tensors of a subclass."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func, kinds, args=(), kwargs=None):
        return PretendedGPU.now.run(func, args, kwargs or {})


class PretendedGPU(TorchDispatchMode):
    """While it is entered, DEVICE is there."""

    now = None
    counts_less = False
    rounding = 0.0  # its kernels are the CPU's

    def __init__(self):
        super().__init__()
        self.waits = Counter()
        self.transfers = Counter()

    def __enter__(self):
        PretendedGPU.now = self
        # Tensors of a subclass cannot be made in inference mode, so it is less strict here.
        self._inference_mode, torch.inference_mode = torch.inference_mode, torch.no_grad
        return super().__enter__()

    def __exit__(self, *error):
        torch.inference_mode = self._inference_mode
        super().__exit__(*error)

    def forget(self):
        self.waits.clear()
        self.transfers.clear()

    def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
        return self.run(func, args, kwargs or {})

    def run(self, func, args, kwargs):
        tensors = [x for x in tree_iter((args, kwargs)) if isinstance(x, torch.Tensor)]
        here = [isinstance(x, GPUTensor) for x in tensors]
        target = kwargs.get("device")
        if func is aten._to_copy.default:
            goes_there = here[0] if target is None else torch.device(target).type == NAME
            self._count_copy(from_gpu=here[0], to_gpu=goes_there, x=tensors[0])
        elif func is aten.copy_.default:
            goes_there = here[0]
            self._count_copy(from_gpu=here[1], to_gpu=here[0], x=tensors[1])
        else:
            goes_there = any(here) or (target is not None and torch.device(target).type == NAME)
            self._check(func, tensors, here)
            self._count_wait(func, args, any(here))
        if goes_there and target is not None:
            kwargs = {**kwargs, "device": "cpu"}
        inner_args, inner_kwargs = tree_map_only(GPUTensor, lambda x: x.values_, (args, kwargs))
        out = func(*inner_args, **inner_kwargs)
        if isinstance(out, torch.Tensor):  # what is changed in place stays the tensor that it is
            for given, inner in zip(args, inner_args):
                if out is inner:
                    return given
        return tree_map_only(torch.Tensor, GPUTensor, out) if goes_there else out

    def _check(self, func, tensors, here):
        if any(here) and not all(there or not x.dim() for x, there in zip(tensors, here)):
            raise RuntimeError(
                f"Expected all tensors on one device, but {func} was given some of {NAME}:0 and some of the CPU, at "
                f"{place()}."
            )

    def _count_copy(self, *, from_gpu, to_gpu, x):
        if from_gpu and not to_gpu:
            self.waits[f"to the CPU, {place()}"] += 1
        if to_gpu and not from_gpu and x.dim() and x.numel():
            self.transfers[place()] += 1

    def _count_wait(self, func, args, some_here):
        if not some_here:
            return
        by_mask = func in INDEXING and any(x is not None and x.dtype in (torch.bool, torch.uint8) for x in args[1])
        if func in READS or func in SIZED_BY_VALUES or by_mask:
            self.waits[f"{func}, {place()}"] += 1


def place():
    """The innermost line of the package that is running; none in a backward pass."""
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            return f"{path.relative_to(PACKAGE)}:{frame.f_lineno}"
        frame = frame.f_back
    return "outside of the package"


def module_to_gpu(module):
    """Move parameters and buffers; a parameter that has two names stays one."""
    moved = {}
    for part in module.modules():
        for name, p in part._parameters.items():
            if p is not None:
                if id(p) not in moved:
                    moved[id(p)] = torch.nn.Parameter(GPUTensor(p.detach().clone()), requires_grad=p.requires_grad)
                part._parameters[name] = moved[id(p)]
        for name, x in part._buffers.items():
            if x is not None:
                part._buffers[name] = GPUTensor(x.clone())
    return module


def to_gpu(nlp):
    """Move the modules of all components of this package."""
    shims = {
        shim
        for _, component in nlp.pipeline
        for node in getattr(getattr(component, "model", None), "walk", list)()
        for shim in node.shims
    }
    for shim in shims:
        module_to_gpu(shim.module)
        shim._parameters = tuple(shim.module.parameters())
    for shim in shims:
        if getattr(shim, "sharing", None) is not None:
            shim.sharing.cache.clear()
    return nlp
