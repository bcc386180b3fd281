"""The families of encoders whose fine-tuned checkpoints become pipelines."""

from pathlib import Path
from typing import Any

from ..checkpoint.contents import Checkpoint
from .ernie_kind import Ernie
from .kind import EncoderKind
from .luke_kind import Luke

_KINDS: tuple[EncoderKind[Any, Any], ...] = (Ernie(), Luke())  # the last one reads what is no other's


def kind_of(checkpoint: Checkpoint) -> EncoderKind[Any, Any]:
    return next(kind for kind in _KINDS if kind.name == checkpoint.kind)


def kind_that_reads(source: Path) -> EncoderKind[Any, Any]:
    return next((kind for kind in _KINDS if kind.reads(source)), _KINDS[-1])
