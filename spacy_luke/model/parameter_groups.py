"""Which parameters an optimizer moves at which rate, and which of them decay."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from torch import nn

_NO_DECAY = (r"bias$", r"norm\.weight$")


def group_parameters(
    parameters: Iterable[tuple[str, nn.Parameter]], *, multiple: Callable[[str], float], weight_decay: float
) -> list[dict[str, Any]]:
    """Groups as torch's optimizers take them, each of one "multiple" of the learning rate and one "weight_decay":
    biases and LayerNorms do not decay. multiple: by the parameter's name."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in parameters:
        decay = 0.0 if any(re.search(pattern, name) for pattern in _NO_DECAY) else weight_decay
        groups.setdefault((multiple(name), decay), []).append(parameter)
    return [{"params": ps, "multiple": m, "weight_decay": decay} for (m, decay), ps in groups.items()]


def find_rate(rates: Iterable[tuple[str | re.Pattern[str], float]], name: str) -> float:
    """The multiple of the learning rate by the first regular expression that finds the name, 1 where none does."""
    return next((rate for pattern, rate in rates if re.search(pattern, name)), 1.0)
