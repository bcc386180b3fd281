"""One wrapper between torch and Thinc: a shim that owns a module, and writes it as safetensors.

Thinc's own PyTorchShim pickles, knows only float16 autocast on CUDA, and can leave a module in train mode; this one
does none of it. The forward functions of `architectures` run the modules of several shims in one autograd graph.
"""

import contextlib
import copy
import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import torch
from safetensors.torch import load, save
from thinc.api import Model, Optimizer, Shim, get_current_ops
from torch import Tensor, nn

from ..model.dropout import drop_at
from ..model.transfer import to_device
from .arrays import from_xp, to_floats
from .freed_memory import keep_freed_memory
from .optimizer import AdamW

VERSION = 1
Module = TypeVar("Module", bound=nn.Module, covariant=True)
_TEXT, _KEPT = "text.", "kept."  # name prefixes of what a shim stores beside its module's parameters

_process: int | None = None  # that used one of our modules last


def before_computing() -> None:
    """In a forked child of a process that has used one of our modules, torch is set to one thread when the child uses
    one too: it inherits a pool of threads that do not exist, and `nlp.pipe(n_process=2)` would wait for them for ever.
    Children that never do are none of our business."""
    global _process
    process = os.getpid()
    if process != _process:
        if _process is not None:
            torch.set_num_threads(1)
        _process = process


def no_weights(name: str | None = None) -> str:
    """What is said where a module is asked for that is not there; name: of the component that it belongs to."""
    what = "The model" if name is None else f"'{name}'"
    return (
        f"{what} has no weights yet: expected nlp.initialize(), spacy train or a loaded pipeline before use. "
        "Give a checkpoint in [initialize.components.NAME.weights] and initialise, or load a saved pipeline."
    )


class TorchShim(Shim, Generic[Module]):
    """A torch module that is built when its sizes are known: at initialisation, or when it is loaded.

    build: makes the module from `settings`, a dict of JSON values. absent: what is said where there is no module; None:
    that the model has no weights yet.
    texts: documents that belong to the module (tokenizer, entity vocabulary), by name.
    kept: tensors that are stored with it but never used or trained (a full entity table, for export), by name.
    known: the digest of what is stored, and the versions of the parameters that it was computed for (see `digests`).
    changed: whether the parameters were trained, or changed by hand, since they were loaded.
    """

    reads: ClassVar[tuple[int, ...]] = (VERSION,)  # versions of what is stored

    def __init__(self, build: Callable[[dict[str, Any]], Module], *, trainable: bool = True, absent: str | None = None):
        super().__init__(None)
        self.build = build
        self.absent = absent or no_weights()
        self.trainable = trainable
        self.settings: dict[str, Any] = {}
        self.texts: dict[str, str] = {}
        self.kept: dict[str, Tensor] = {}
        self.known: tuple[tuple[int, int] | None, str] | None = None
        self.changed = False
        self._parameters: tuple[nn.Parameter, ...] = ()  # the module's, not looked for at each prediction

    def __getstate__(self) -> dict[str, Any]:
        known = self.known if self.known is not None and self.known[0] in (None, self.stamp) else None
        return {**self.__dict__, "known": None if known is None else (None, known[1])}

    @property
    def can_learn(self) -> bool:
        """Whether the parameters may have gradients."""
        return self.trainable

    @property
    def ready(self) -> bool:
        return self._model is not None

    @property
    def module(self) -> Module:
        module: Module | None = self._model
        if module is None:
            raise ValueError(self.absent)
        before_computing()
        return module

    @property
    def stamp(self) -> tuple[int, int]:
        """Another one where parameters have changed since."""
        return id(self.module), sum(p._version for p in self._parameters)

    def create(self, settings: dict[str, Any]) -> Module:
        """Build the module with fresh parameters, on the current device."""
        before_computing()
        # Whatever an app has told torch of its own tensors.
        with _normal_tensors(), torch.device("cpu"):
            module = self.build(settings).float()
        self.settings = dict(settings)
        module.requires_grad_(self.can_learn)
        self._model = module.to(_current_device()).eval()
        self._parameters = tuple(module.parameters())
        self.known, self.changed = None, False
        return module

    def fill(self, tensors: dict[str, Tensor]) -> None:
        """Give every parameter its value. Raises where a name or a shape differs."""
        with _normal_tensors():
            self.module.load_state_dict(tensors, strict=True)

    @contextlib.contextmanager
    def running(self, *, is_train: bool) -> Iterator[Module]:
        """The module in train or eval mode; always left in eval mode, which predictions of other threads rely on."""
        module = self.module
        if is_train:
            keep_freed_memory(self.device)
        if module.training != is_train:
            module.train(is_train)
        try:
            yield module
        finally:
            if is_train:
                module.eval()

    def set_dropout(self, rate: float) -> None:
        drop_at(self.module, rate)

    @property
    def device(self) -> torch.device:
        return next(self.module.parameters()).device

    def to_device(self, device_type: str, device_id: int) -> None:
        if self._model is not None:
            self._model.to(torch.device("cuda", device_id) if device_type == "gpu" else torch.device("cpu"))

    def named_parameters(self) -> list[tuple[str, nn.Parameter]]:
        return [] if self._model is None else [(n, p) for n, p in self._model.named_parameters() if p.requires_grad]

    def finish_update(self, optimizer: Optimizer) -> None:
        if isinstance(optimizer, AdamW):
            optimizer.step(str(self.id), self.named_parameters())
            return
        for name, parameter in self.named_parameters():
            if parameter.grad is not None:
                _forget_other_size(optimizer, (self.id, name), parameter.numel())
                value, _ = optimizer((self.id, name), to_floats(parameter.data), to_floats(parameter.grad))
                _set_value(parameter, from_xp(value))
                parameter.grad = None

    @contextlib.contextmanager
    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        """Other values, such as an optimizer's averages, in place of the parameters for a while."""
        named = [((self.id, name), p) for name, p in self.named_parameters()]
        parameters = [(key, p) for key, p in named if key in params and params[key].size == p.numel()]
        before = [p.detach().clone() for _, p in parameters]
        try:
            for key, p in parameters:
                _set_value(p, from_xp(params[key]))
            yield
        finally:
            for (_, p), value in zip(parameters, before):
                _set_value(p, value)

    def copy(self) -> Self:
        return copy.deepcopy(self)

    def held(self) -> Self:
        """A shim of the same module, which it keeps when this one takes another."""
        held = object.__new__(type(self))
        held.__dict__.update(self.__dict__)
        return held

    def take(self, other: Self) -> None:
        """The module of another shim and what belongs to it, at one moment: whoever asks in another thread has the
        module of before or this one."""
        self.__dict__.update(other.__dict__)

    def stored(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that must be written: tensors (texts among them, as bytes) and JSON values."""
        if self._model is None:
            return {}, {}
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self._model.state_dict().items()}
        for name, text in self.texts.items():
            tensors[_TEXT + name] = torch.from_numpy(np.frombuffer(text.encode("utf8"), dtype=np.uint8).copy())
        for name, tensor in self.kept.items():
            tensors[_KEPT + name] = tensor.contiguous()
        return tensors, {"version": VERSION, "settings": self.settings}

    def restore(self, tensors: dict[str, Tensor], stored: dict[str, Any]) -> None:
        """The reverse of `stored`."""
        if not stored:
            return
        if stored.get("version") not in self.reads:
            raise ValueError(
                f"This pipeline's weights have format version {stored.get('version')!r}; this version of spacy_luke "
                f"reads {' and '.join(map(str, self.reads))}. Install the version that wrote it, given in the "
                "pipeline's meta.json."
            )
        self.create(stored["settings"])
        self.texts = {
            name[len(_TEXT) :]: tensor.numpy().tobytes().decode("utf8")
            for name, tensor in tensors.items()
            if name.startswith(_TEXT)
        }
        self.kept = {name[len(_KEPT) :]: tensor for name, tensor in tensors.items() if name.startswith(_KEPT)}
        self.fill({name: x for name, x in tensors.items() if not name.startswith((_TEXT, _KEPT))})

    def to_bytes(self) -> bytes:
        tensors, stored = self.stored()
        return save(tensors, {"shim": json.dumps(stored)})

    def from_bytes(self, data: bytes) -> Self:
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        self.restore(load(data), json.loads(header["__metadata__"]["shim"]))
        return self


def shim_of(node: Model[Any, Any]) -> TorchShim[Any]:
    """The torch shim of a node that has one. Which module it holds is known where the node was made."""
    (shim,) = node.shims
    assert isinstance(shim, TorchShim)
    return shim


def shims_of(model: Model[Any, Any]) -> dict[str, TorchShim[nn.Module]]:
    """The torch shims of a Thinc model by the names of its nodes, in the order of `model.walk()`."""
    return {node.name: shim for node in model.walk() for shim in node.shims if isinstance(shim, TorchShim)}


def _forget_other_size(optimizer: Optimizer, key: tuple[int, str], size: int) -> None:
    """What one of Thinc's optimizers knows of a parameter begins anew where a label more has made it larger."""
    kept: list[dict[Any, Any]] = [getattr(optimizer, name, None) or {} for name in ("mom1", "mom2", "averages")]
    if any(key in arrays and arrays[key].size != size for arrays in kept):
        for arrays in (*kept, optimizer.nr_update):
            arrays.pop(key, None)


@torch.no_grad()
def _set_value(parameter: nn.Parameter, value: Tensor) -> None:
    """Not by `parameter.data`, which would hide the change from those that hold what depends on it (see WordCache)."""
    parameter.copy_(value.reshape(parameter.shape))


def _normal_tensors() -> contextlib.AbstractContextManager[Any]:
    """Parameters made in inference mode could neither learn nor tell that they were changed."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else contextlib.nullcontext()


def to_tensor(array: np.ndarray, device: torch.device) -> Tensor:
    return to_device(torch.from_numpy(array), device)


def send_arrays(arrays: Sequence[np.ndarray | None], device: torch.device) -> tuple[Any, ...]:
    """As tensors, in one transfer; None stays None."""
    return to_device(tuple(None if x is None else torch.from_numpy(x) for x in arrays), device)


def _current_device() -> torch.device:
    ops = get_current_ops()
    return torch.device("cuda", ops.device_id) if ops.device_type == "gpu" else torch.device("cpu")
