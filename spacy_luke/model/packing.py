"""Which packed rows share one attention call.

Everything in a batch is packed: the tokens of all windows stand one after another in one (N, D) matrix, so that no
linear layer computes padding. Only attention needs rows side by side; here it is decided which windows do it together.

N packed tokens, B windows of a group, L tokens of a window.
"""

from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

import torch
from torch import Tensor

ENTITY_WASTE = 0.5  # padding of a call's entities that is tolerated, as a share of the real ones


@dataclass(frozen=True)
class Group:
    """Windows [first, last) attended in one call. `rows_BL` are packed rows; where `real_BL` is None nothing is
    padding, and where `start` is given the rows are the consecutive ones from there, so that a view does."""

    first: int
    last: int
    rows_BL: Tensor
    real_BL: Optional[Tensor]
    start: Optional[int]


@dataclass(frozen=True)
class Packing:
    """Groups in order, the packed rows of all groups, padding included, and where each packed row is found in their
    concatenated results (of both None: in place).

    lengths: rows of each window; of windows made of two runs, `more_lengths` has the second run's.
    """

    groups: Tuple[Group, ...]
    order_P: Optional[Tensor]
    inverse_N: Optional[Tensor]
    lengths: Sequence[int]
    more_lengths: Sequence[int] = ()


def choose_groups(lengths: Sequence[int], *, waste: float) -> List[Tuple[int, int]]:
    """Consecutive windows [first, last) that share a call: padding of at most `waste` of a group's real tokens."""
    groups: List[Tuple[int, int]] = []
    first, total, longest = 0, 0, 0
    for i, length in enumerate(lengths):
        if i > first and max(longest, length) * (i + 1 - first) > (1 + waste) * (total + length):
            groups.append((first, i))
            first, total, longest = i, 0, 0
        total, longest = total + length, max(longest, length)
    if len(lengths) > first:
        groups.append((first, len(lengths)))
    return groups


def tolerated_waste(device: torch.device) -> float:
    """None on a CPU, where a small call costs little; some on a GPU, where each call has a launch to pay."""
    return 0.0 if device.type == "cpu" else 0.25


def pack(lengths: Sequence[int], *, device: torch.device, waste: Optional[float] = None) -> Packing:
    """Packing of windows whose tokens are consecutive rows. waste: padding that is tolerated; None: as the device likes it."""
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    rows = [torch.arange(a, b) for a, b in zip(starts, starts[1:])]
    return Packing(*_pack(rows, device=device, contiguous=True, waste=waste), lengths)


def pack_pairs(first_lengths: Sequence[int], second_lengths: Sequence[int], *, device: torch.device) -> Packing:
    """Packing of windows made of two runs of rows: words of all windows stand first, then the entities of all."""
    rows, word, entity = [], 0, sum(first_lengths)
    for n_words, n_entities in zip(first_lengths, second_lengths, strict=True):
        rows.append(torch.cat([torch.arange(word, word + n_words), torch.arange(entity, entity + n_entities)]))
        word, entity = word + n_words, entity + n_entities
    return Packing(*_pack(rows, device=device, contiguous=False), first_lengths, second_lengths)


def entity_rows(packing: Packing, counts: Sequence[int], *, device: torch.device) -> List[Tuple[Group, Tensor]]:
    """Windows that have entities, in groups, with their packed entity rows (B, S), -1 where there is none.

    counts: entities of each window; the entities of all windows are consecutive rows. Windows of one group that have
    very different numbers of entities are taken apart.
    """
    starts = [0]
    for count in counts:
        starts.append(starts[-1] + count)
    tables = []
    for group in packing.groups:
        for a, b in choose_groups(counts[group.first : group.last], waste=ENTITY_WASTE):
            sizes_B = torch.tensor(counts[group.first + a : group.first + b])
            column_S = torch.arange(int(sizes_B.max()))
            if len(column_S):
                rows_BS = torch.tensor(starts[group.first + a : group.first + b])[:, None] + column_S
                rows_BS = torch.where(column_S < sizes_B[:, None], rows_BS, -1).to(device)
                tables.append((_part(group, a, b), rows_BS))
    return tables


def _part(group: Group, first: int, last: int) -> Group:
    """The windows [first, last) of a group, counted in it."""
    if (first, last) == (0, len(group.rows_BL)):
        return group
    return Group(
        group.first + first,
        group.first + last,
        group.rows_BL[first:last],
        None if group.real_BL is None else group.real_BL[first:last],
        None if group.start is None else group.start + first * group.rows_BL.shape[1],
    )


def _pack(
    rows: List[Tensor], *, device: torch.device, contiguous: bool, waste: Optional[float] = None
) -> Tuple[Tuple[Group, ...], Optional[Tensor], Optional[Tensor]]:
    waste = tolerated_waste(device) if waste is None else waste
    lengths = [len(x) for x in rows]
    groups, order = [], []
    for first, last in choose_groups(lengths, waste=waste):
        members, longest = rows[first:last], max(lengths[first:last])
        order.extend(members)
        rows_BL = torch.stack([torch.nn.functional.pad(x, (0, longest - len(x))) for x in members])
        sizes_B = torch.tensor(lengths[first:last])
        padded = bool((sizes_B < longest).any())
        real_BL = (torch.arange(longest) < sizes_B[:, None]).to(device) if padded else None
        start = int(members[0][0]) if contiguous and not padded and longest else None
        groups.append(Group(first, last, rows_BL.to(device), real_BL, start))
    inverse = None
    if order and not contiguous:
        flat = torch.cat(order)
        inverse = torch.empty_like(flat)
        inverse[flat] = torch.arange(len(flat))
        inverse = inverse.to(device)
    in_place = all(group.start is not None or not group.rows_BL.numel() for group in groups)
    taken = None if in_place else torch.cat([group.rows_BL.flatten() for group in groups])
    return tuple(groups), taken, inverse
