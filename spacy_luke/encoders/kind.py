"""The face of an encoder: what a family of encoders answers, so that nobody asks for its name.

A further family is a file beside `luke_kind.py` and `ernie_kind.py`, with its kind and the function that builds its
node, and a line for that function among the entry points of pyproject.toml. The kind needs a module (`model`, an
`Encoder`) and a checkpoint (`checkpoint`, a `Checkpoint` with the kind's name); `tests/encoders/test_kind.py` has the
least of each.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..bridge.wrapper import VERSION, TorchShim
from ..checkpoint.contents import Checkpoint, LukeCheckpoint
from ..model.int8 import INT8, LARGEST, NOT_TRAINED, NUMBERS, build_quantized, float_tensors, quantize_encoder
from ..model.luke import Encoder
from ..text.tokenizer import PieceTokenizer
from ..vectors.store import EntityVectors
from .sharing import SharedEncoder

E = TypeVar("E", bound=Encoder, covariant=True)
C = TypeVar("C", bound=Checkpoint)
_VERSION_INT8 = 2  # of what is stored: readers of version 1 know no int8
PREFIX = "encoder."  # of an encoder's tensors in a checkpoint


class EncoderShim(TorchShim[E]):
    """The shim of an encoder, in float or in int8 (see model/int8.py), which predicts but never learns.

    family: what it is; None of a stand-in that has no encoder yet. vectors: of known entities, which the component that
    owns the encoder stores beside it. sharing: of an encoder that several components share; None of any other.
    """

    reads = (VERSION, _VERSION_INT8)

    def __init__(self, family: "EncoderKind[E, Any] | None", *, trainable: bool = True, absent: str | None = None):
        super().__init__(self._build, trainable=trainable, absent=absent)
        self.family = family
        self.vectors: EntityVectors | None = None
        self.sharing: SharedEncoder | None = None

    def _build(self, settings: dict[str, Any]) -> E:
        build = partial(self.kind.build, settings)
        return build_quantized(build) if settings.get(NUMBERS) == INT8 else build()

    @property
    def kind(self) -> "EncoderKind[E, Any]":
        if self.family is None:
            raise ValueError(self.absent)
        return self.family

    @property
    def is_int8(self) -> bool:
        return self.settings.get(NUMBERS) == INT8

    @property
    def can_learn(self) -> bool:
        return self.trainable and not self.is_int8

    @property
    def learning(self) -> bool:
        """Whether the module learns in the update that is under way."""
        return self.trainable and (self.sharing is None or self.sharing.learning)

    def check_learning(self, wanted: bool) -> None:
        """Raises ValueError where the module shall learn and cannot."""
        if wanted and self.is_int8:
            raise ValueError(NOT_TRAINED)

    def gradients(self) -> AbstractContextManager[None]:
        """Around passes of the module: none where it does not learn."""
        return contextlib.nullcontext() if self.learning else torch.no_grad()

    def create(self, settings: dict[str, Any]) -> E:
        self._forget()
        return super().create(settings)

    def to_device(self, device_type: str, device_id: int) -> None:
        self._forget()
        super().to_device(device_type, device_id)

    def quantize(self, piece_steps: int = LARGEST) -> None:
        """Make the module int8, in place, its table of pieces with so many steps. What is kept for export alone
        goes, as there is none of int8."""
        self._forget()
        self._parameters = tuple(quantize_encoder(self.module, piece_steps).parameters())
        self.settings = {**self.settings, NUMBERS: INT8}
        self.kept = {}
        self.known = None

    def dequantize(self) -> None:
        """Make a module in int8 float again, in place: with the numbers that int8 stands for, so that it can learn."""
        tensors = float_tensors(self.module.state_dict())
        self.create({name: x for name, x in self.settings.items() if name != NUMBERS})
        self.fill(tensors)

    @contextlib.contextmanager
    def running(self, *, is_train: bool) -> Iterator[E]:
        self.check_learning(is_train)
        with super().running(is_train=is_train) as module:
            yield module

    def stored(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, values = super().stored()
        return tensors, {**values, "version": _VERSION_INT8} if values and self.is_int8 else values

    def _forget(self) -> None:
        if self.sharing is not None:
            self.sharing.cache.clear()

    @contextlib.contextmanager
    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        with contextlib.nullcontext(True) if self.sharing is None else self.sharing.replacing() as first:
            with super().use_params(params) if first else contextlib.nullcontext():
                yield


@dataclass(frozen=True)
class Needs:
    """What a component needs of a checkpoint's entities. special: those that its inputs have, such as "[MASK]";
    every_row: of the entity table, not the special ones alone; table: whether rows that the module does not get are
    kept beside it; prepare: add to a checkpoint what the task has more."""

    special: Sequence[str]
    every_row: bool = False
    table: bool = True
    prepare: Sequence[Callable[[LukeCheckpoint], None]] = ()


@dataclass(frozen=True)
class Reading:
    """How a fine-tuned checkpoint is read. entities, labels, layers: see `read_checkpoint`. base, tokenizer: sources of
    what it lacks. vectors: folder of entity vectors."""

    entities: str = "all"
    labels: Sequence[str] | None = None
    base: str | Path | None = None
    tokenizer: str | Path | None = None
    vectors: str | Path | None = None
    layers: int | None = None


@dataclass(frozen=True)
class WindowBatch:
    """Windows that are encoded at once, as NumPy's arrays. rows_E, at_E: of the known entities of all windows, the rows
    of their vectors and their pieces in the window, [CLS] is 0; counts: of each window. types_N: token types; zeros
    where None."""

    pieces_N: np.ndarray
    lengths: Sequence[int]
    rows_E: np.ndarray
    at_E: np.ndarray
    counts: Sequence[int]
    types_N: np.ndarray | None = None


class EncoderKind(ABC, Generic[E, C]):
    """A family of encoders.

    name: in files and of its checkpoints; title: for people. architecture, loader: registered names of the function
    that builds it, and of the one that reads its checkpoints; example: arguments of the latter, lines of a config, by
    which messages show how checkpoints are named. pair_task: what its checkpoints call the classification of pairs.
    components: those that take the heads of its checkpoints, by the tasks that these are fine-tuned for.
    has_entity_tokens: whether entities are tokens of their own, of which some are special ([MASK]), so that heads can
    read their states. has_pooler: whether it makes one state of a window. reads_knowledge: whether it is given known
    entities of a text, by their vectors.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    architecture: ClassVar[str]
    loader: ClassVar[str]
    example: ClassVar[str] = 'path = "FOLDER"'
    pair_task: ClassVar[str]
    components: ClassVar[Mapping[str, str]] = {}
    has_entity_tokens: ClassVar[bool] = False
    has_pooler: ClassVar[bool] = False
    reads_knowledge: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"{self.title}'s ({self.architecture})"

    @abstractmethod
    def build(self, settings: dict[str, Any]) -> E:
        """The module, of the settings that `load` gave the shim."""

    @abstractmethod
    def load(self, shim: EncoderShim[E], checkpoint: C, needs: Needs) -> None:
        """Take over a checkpoint's encoder, tokenizer and what it knows of entities."""

    @abstractmethod
    def to_checkpoint(self, shim: EncoderShim[E], tokenizer: PieceTokenizer) -> C:
        """The reverse of `load`."""

    @abstractmethod
    def write(self, checkpoint: C, folder: Path) -> None:
        """As the family's own code reads it."""

    def reads(self, source: Path) -> bool:
        """Whether a folder or archive holds one of its checkpoints."""
        return False

    def read(self, source: Path, how: Reading) -> C:
        """A fine-tuned checkpoint. Raises ValueError for what this family has no use for."""
        raise ValueError(f"Nothing is known of how fine-tuned checkpoints are read whose encoder is {self}.")

    @abstractmethod
    def word_states(self, shim: EncoderShim[E], batch: WindowBatch) -> Tensor:
        """States of the words of windows (N, D), with all that is known of these."""

    def special_rows(self, shim: EncoderShim[E], names: Sequence[str]) -> list[int]:
        """Rows of special entities in the module's entity table; none where entities are no tokens."""
        return []


def fill_encoder(shim: TorchShim[Encoder], tensors: dict[str, Tensor]) -> None:
    """Give an encoder its parameters, of a checkpoint's tensors."""
    shim.fill({name[len(PREFIX) :]: x for name, x in tensors.items() if name.startswith(PREFIX)})


def encoder_tensors(shim: TorchShim[Encoder]) -> dict[str, Tensor]:
    """The reverse of `fill_encoder`. Raises ValueError for an encoder in int8."""
    if shim.settings.get(NUMBERS) == INT8:
        raise ValueError(NOT_TRAINED)
    return {f"{PREFIX}{name}": x.detach().cpu() for name, x in shim.module.state_dict().items()}


def check_tokenizer(checkpoint: Checkpoint) -> PieceTokenizer:
    if checkpoint.tokenizer is None:
        raise incomplete("tokenizer")
    return checkpoint.tokenizer


def incomplete(missing: str) -> ValueError:
    return ValueError(
        f"The checkpoint has no {missing}. Expected its files beside the weights (tokenizer.json, or vocab.json and "
        "merges.txt, or vocab.txt, sentencepiece.bpe.model or spm.model; and entity_vocab.json). Where they are not, "
        "name a folder that has them, such as the model that this one was made from, as tokenizer of the checkpoint's "
        "loader, or by --tokenizer of convert."
    )
