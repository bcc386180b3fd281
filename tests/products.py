"""Tests of all combinations of their parameters: which the quick tests take."""

from collections.abc import Mapping, Sequence
from typing import Any


def beyond_each_value(combinations: Sequence[Mapping[str, Any]]) -> list[int]:
    """Numbers of the combinations left over when, one by one, that with most values not seen yet is taken, until each
    value of each parameter has been seen."""
    left = {i: {(name, repr(value)) for name, value in chosen.items()} for i, chosen in enumerate(combinations)}
    unseen = set().union(*left.values())
    while unseen:
        unseen -= left.pop(max(left, key=lambda i: len(left[i] & unseen)))
    return list(left)
