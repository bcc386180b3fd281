"""What units may be by gold, as arrays for the losses: where a data set leaves labels open, several are possible.

U units, L labels.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...annotations import Scope
from ...batch.allowed import ANY, AllowedClasses
from .asked import Gold

MAY_HOLD = -1.0  # of a label that may hold or not
_FIRST_GROUP = 2.0  # of the labels of a unit of which at least one holds; of a second such group 3, and so on


def unknown_labels(found: Gold, classes: Sequence[str | None], scope: Scope) -> Iterator[tuple[int, str]]:
    """Units with gold that the head has no row for, and its label."""
    for u, labels in found.labels.items():
        for label in labels:
            for name in sorted(scope.named(label) - set(classes)):
                yield u, name


def class_numbers(
    found: Gold, classes: Sequence[str | None], scope: Scope, allowed: AllowedClasses
) -> NDArray[np.int64]:
    """What each unit may be, (U,), where it has one class: by the numbers of `allowed`.

    classes: labels of the head's rows; None stands for "no label". Where there is no such row, every unit has a label,
    and of one without gold nothing is known.
    """
    number = {label: i for i, label in enumerate(classes)}
    rest = none = ANY
    if None in number:
        none = allowed.number([number[None]])
        rest = allowed.number(i for label, i in number.items() if label is None or not scope.is_annotated(label))
    gold_U = np.full(len(found.units), rest, dtype=np.int64)
    for u, labels in found.labels.items():
        for label in labels[:1]:
            meaning = scope.meaning(label)
            possible = [number.get(one or None) for one in meaning or ()]
            known = [i for i in possible if i is not None]
            gold_U[u] = allowed.number(known) if known else ANY if meaning is None else none
    return gold_U


def class_table(found: Gold, labels: Sequence[str | None], scope: Scope) -> NDArray[np.float32]:
    """Whether each label holds of each unit, (U, L): 1, 0, -1 where it is not known, 2 and above for the labels of a
    group of which at least one holds."""
    number = {label: i for i, label in enumerate(labels)}
    base_L = [0.0 if label is None or scope.is_annotated(label) else MAY_HOLD for label in labels]
    gold_UL = np.tile(np.array(base_L, dtype=np.float32), (len(found.units), 1))
    for u, some in found.labels.items():
        meanings = [scope.meaning(label) for label in some]
        if None in meanings:
            gold_UL[u] = MAY_HOLD
        named = [{number[one] for one in meaning if one in number} for meaning in meanings if meaning]
        unsure = [numbers for numbers, meaning in zip(named, filter(None, meanings)) if "" in meaning]
        groups = [numbers for numbers, meaning in zip(named, filter(None, meanings)) if "" not in meaning]
        sure = {i for numbers in groups if len(numbers) == 1 for i in numbers}
        for numbers in [*unsure, *groups]:
            gold_UL[u, sorted(numbers)] = MAY_HOLD
        for k, numbers in enumerate(_merged([x for x in groups if not x & sure])):
            gold_UL[u, sorted(numbers)] = _FIRST_GROUP + k
        gold_UL[u, sorted(sure)] = 1.0
    return gold_UL


def _merged(groups: Sequence[set[int]]) -> list[set[int]]:
    """Groups that share a label become one: then at least one of all these holds."""
    merged: list[set[int]] = []
    for group in groups:
        shared = [one for one in merged if one & group]
        merged = [one for one in merged if not one & group] + [group.union(*shared)]
    return merged


def is_known(gold: NDArray[np.int64] | NDArray[np.float32]) -> NDArray[np.bool_]:
    """Of which units something is known, (U,)."""
    known: NDArray[np.bool_] = gold != ANY if gold.ndim == 1 else (gold != MAY_HOLD).any(1)
    return known


def is_sure(gold_UL: NDArray[np.float32], labels: Sequence[str | None], scope: Scope) -> NDArray[np.bool_]:
    """Of which units and labels it is known whether they hold, and would be known if they did not, (U, L)."""
    annotated_L = np.array([label is None or scope.is_annotated(label) for label in labels], dtype=bool)
    sure: NDArray[np.bool_] = ((gold_UL == 0) | (gold_UL == 1)) & annotated_L
    return sure
