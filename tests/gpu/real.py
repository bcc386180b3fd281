"""The first GPU of this machine: what goes over to it, and what waits for it, is counted as `pretended` counts it.

waits: those that torch itself tells (`torch.cuda.set_sync_debug_mode`), with the line of Python that asked for them.
transfers: tensors that go from the host to the GPU; single numbers do not count.

While it is entered spaCy and Thinc are on the GPU too, as after `require_gpu()`.
"""

import warnings
from collections import Counter
from pathlib import Path

import torch
from thinc.api import require_cpu, require_gpu
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
DEVICE = torch.device("cuda", 0)


class RealGPU(TorchDispatchMode):
    counts_less = True  # not what is waited for by an event, nor what CuPy waits for
    rounding = 1e-6  # of a loss that is the small difference of larger numbers

    def __init__(self):
        super().__init__()
        self.waits = Counter()
        self.transfers = Counter()

    def __enter__(self):
        require_gpu()
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.filterwarnings("ignore", message=".*prototype feature")
        warnings.filterwarnings("always", message="called a synchronizing")
        self._show, warnings.showwarning = warnings.showwarning, self._note
        torch.cuda.set_sync_debug_mode("warn")
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        torch.cuda.set_sync_debug_mode("default")
        self._warnings.__exit__(*error)
        require_cpu()

    def forget(self):
        torch.cuda.synchronize()
        self.waits.clear()
        self.transfers.clear()

    def _note(self, message, category, filename, line, *more):
        if "called a synchronizing" in str(message):
            self.waits[f"{Path(filename).name}:{line}"] += 1
        else:
            self._show(message, category, filename, line, *more)

    def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if func in (aten._to_copy.default, aten.copy_.default):
            x = args[0] if func is aten._to_copy.default else args[1]
            if found.is_cuda and not x.is_cuda and x.dim() and x.numel():
                self.transfers[str(tuple(x.shape))] += 1
        return found


def module_to_gpu(module):
    return module.to(DEVICE)


def to_gpu(nlp):
    """Move the models of all components, as spaCy's are when they are loaded on a GPU."""
    for _, component in nlp.pipeline:
        if hasattr(component, "model"):
            component.model.to_gpu(0)
    return nlp
