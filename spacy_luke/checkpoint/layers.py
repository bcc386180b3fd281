"""The first layers of a checkpoint: a smaller and faster encoder, to be trained further.

The first, since the last layers of encoders that were trained for sentences serve single words worse than those before.
"""

import re
from dataclasses import replace
from typing import TypeVar

from .contents import Checkpoint

_LAYER = re.compile(r"encoder\.layers\.(\d+)\.")
AnyCheckpoint = TypeVar("AnyCheckpoint", bound=Checkpoint)


def check_layers(layers: int | None) -> None:
    if layers is not None and layers < 1:
        raise ValueError(f"layers must be at least 1, or null to keep all, but it is {layers}.")


def keep_layers(checkpoint: AnyCheckpoint, layers: int) -> AnyCheckpoint:
    """The checkpoint without the encoder's layers after the first ones. Heads stay as they are.

    Raises ValueError where there are fewer layers, or where an ERNIE's are left that read no entities.
    """
    check_layers(layers)
    config = checkpoint.config
    if layers == config.num_layers:
        return checkpoint
    small = config.first_layers(layers)
    shown = f"kept the first {layers} of {config.num_layers} layers"
    gone = {name for name in checkpoint.tensors if (found := _LAYER.match(name)) and int(found[1]) >= layers}
    tensors = {name: x for name, x in checkpoint.tensors.items() if name not in gone}
    if "head.classifier.weight" in tensors or "head.qa_outputs.weight" in tensors:
        shown += "; the head was trained on all of them: train it further"
    return replace(checkpoint, config=small, tensors=tensors, report=[*checkpoint.report, shown])
