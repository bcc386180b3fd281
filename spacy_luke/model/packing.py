"""Which packed rows share one attention call.

Everything in a batch is packed: the tokens of all windows stand one after another in one (N, D) matrix, so that no
linear layer computes padding. Only attention needs rows side by side; here it is decided which windows do it together.

N packed tokens, B windows of a group, L tokens of a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
    real_BL: Tensor | None
    start: int | None


@dataclass(frozen=True)
class Moves:
    """The packed rows of all groups, padding included (P), and where each packed row is found among them."""

    order_P: Tensor
    place_N: Tensor


@dataclass(frozen=True)
class Packing:
    """Groups in order. moves: None where the packed rows are those of the groups as they stand.

    lengths: rows of each window; of windows made of two runs, `more_lengths` has the second run's.
    """

    groups: tuple[Group, ...]
    moves: Moves | None
    lengths: Sequence[int]
    more_lengths: Sequence[int] = ()


@dataclass(frozen=True)
class EntityRows:
    """Windows that have entities, in groups, with their packed entity rows (B, S), -1 where there is none; the rows of
    all groups, 0 where there is none (P); and where each entity is found in the groups' concatenated results (NE)."""

    parts: tuple[tuple[Group, Tensor], ...]
    rows_P: Tensor
    place_E: Tensor


def choose_groups(lengths: Sequence[int], *, waste: float) -> list[tuple[int, int]]:
    """Consecutive windows [first, last) that share a call: padding of at most `waste` of a group's real tokens."""
    groups: list[tuple[int, int]] = []
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
    """Padding that is tolerated, as a share of the real tokens: 0 on a CPU, where a small call costs little; more on a
    GPU, where each call has a launch to pay."""
    return 0.0 if device.type == "cpu" else 0.25


def pack(lengths: Sequence[int], *, device: torch.device, waste: float | None = None) -> Packing:
    """Packing of windows whose tokens are consecutive rows. waste: padding that is tolerated; None: as the device likes
    it."""
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


def entity_rows(packing: Packing, counts: Sequence[int], *, device: torch.device) -> EntityRows:
    """The entities of each group of windows.

    counts: entities of each window; the entities of all windows are consecutive rows. Windows of one group that have
    very different numbers of entities are taken apart.
    """
    starts = [0]
    for count in counts:
        starts.append(starts[-1] + count)
    groups, tables = [], []
    for group in packing.groups:
        for a, b in choose_groups(counts[group.first : group.last], waste=ENTITY_WASTE):
            sizes_B = torch.tensor(counts[group.first + a : group.first + b])
            column_S = torch.arange(int(sizes_B.max()))
            if len(column_S):
                rows_BS = torch.tensor(starts[group.first + a : group.first + b])[:, None] + column_S
                groups.append(_part(group, a, b))
                tables.append(torch.where(column_S < sizes_B[:, None], rows_BS, -1))
    rows_P = _joined([table.flatten() for table in tables])
    place_E = _places(rows_P, rows_P >= 0, starts[-1])
    rows_P, place_E = _moved([rows_P, place_E], device)
    return EntityRows(tuple(zip(groups, split_rows(rows_P, tables))), rows_P.clamp(min=0), place_E)


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
    rows: list[Tensor], *, device: torch.device, contiguous: bool, waste: float | None = None
) -> tuple[tuple[Group, ...], Moves | None]:
    waste = tolerated_waste(device) if waste is None else waste
    lengths = [len(x) for x in rows]
    bounds = choose_groups(lengths, waste=waste)
    tables, masks = [], []
    for first, last in bounds:
        longest = max(lengths[first:last])
        tables.append(torch.stack([torch.nn.functional.pad(x, (0, longest - len(x))) for x in rows[first:last]]))
        masks.append(torch.arange(longest) < torch.tensor(lengths[first:last])[:, None])
    padded = [not bool(mask.all()) for mask in masks]
    starts = [
        int(table[0, 0]) if contiguous and not pads and table.numel() else None for table, pads in zip(tables, padded)
    ]
    order_P, real_P = (_joined([x.flatten() for x in parts]) for parts in (tables, masks))
    place_N = _places(order_P, real_P.bool(), sum(lengths))
    in_place = all(start is not None or not table.numel() for start, table in zip(starts, tables))
    order_P, real_P, place_N = _moved([order_P, real_P.long(), place_N], device)
    parts = zip(bounds, split_rows(order_P, tables), split_rows(real_P.bool(), tables), padded, starts)
    groups = tuple(
        Group(first, last, rows_BL, real_BL if pads else None, start)
        for (first, last), rows_BL, real_BL, pads, start in parts
    )
    return groups, None if in_place else Moves(order_P, place_N)


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(parts)) if parts else torch.empty(0, dtype=torch.long)


def _places(rows_P: Tensor, real_P: Tensor, size: int) -> Tensor:
    """Where each of the rows 0 to `size` stands among the real ones of rows_P: (size,)."""
    place = torch.zeros(size, dtype=torch.long)
    place[rows_P[real_P]] = torch.arange(len(rows_P))[real_P]
    return place


def _moved(tables: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """The tables on the device, by one transfer."""
    sizes = [len(table) for table in tables]
    return list(torch.cat(list(tables)).to(device, non_blocking=True).split(sizes))


def group_rows(x_NHK: Tensor, packing: Packing) -> list[Tensor]:
    """Rows (B, L, H, K) of each group: one gather for all, and its split."""
    if packing.moves is not None:
        x_NHK = _reorder(x_NHK, packing.moves.order_P, packing.moves.place_N)
    return split_rows(x_NHK, [group.rows_BL for group in packing.groups])


def ungroup_rows(results: Sequence[Tensor], packing: Packing) -> Tensor:
    """The results of all groups (rows of each, padding included) as packed rows (N, D)."""
    out_PD = results[0] if len(results) == 1 else torch.cat(list(results))
    if packing.moves is None:
        return out_PD
    return _reorder(out_PD, packing.moves.place_N, packing.moves.order_P)


def rows_of_groups(x_NHK: Tensor, groups: Sequence[Group]) -> list[Tensor]:
    """Rows (B, L, H, K) of some groups, where -1 stands for any row: views where they are consecutive, of one split,
    since the gradient of a slice is as large as all rows; else one gather for all."""
    starts = [group.start for group in groups if group.start is not None]
    if len(starts) < len(groups):
        tables = [group.rows_BL for group in groups]
        return split_rows(x_NHK[torch.cat([table.clamp(min=0).flatten() for table in tables])], tables)
    edges = [0]
    for start, group in zip(starts, groups, strict=True):
        edges += [start, start + group.rows_BL.numel()]
    edges.append(len(x_NHK))
    parts = x_NHK.split([b - a for a, b in zip(edges, edges[1:])])[1::2]
    return [part.unflatten(0, group.rows_BL.shape) for part, group in zip(parts, groups, strict=True)]


def split_rows(x_P: Tensor, tables: Sequence[Tensor]) -> list[Tensor]:
    """The rows of x_P (P, ...), one table after the other, in the tables' shapes."""
    parts = x_P.split([table.numel() for table in tables]) if tables else []
    return [part.unflatten(0, table.shape) for part, table in zip(parts, tables, strict=True)]


def _reorder(x: Tensor, order_P: Tensor, inverse_N: Tensor) -> Tensor:
    """x[order_P]. inverse_N: where each row of x is found in it; where nothing but rows moves, the gradient is a
    gather."""
    if len(inverse_N) != len(order_P):
        return x[order_P]
    moved_P: Tensor = _Reorder.apply(x, order_P, inverse_N)
    return moved_P


class _Reorder(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, order_N: Tensor, inverse_N: Tensor) -> Tensor:
        ctx.save_for_backward(inverse_N)
        return x.index_select(0, order_N)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient.index_select(0, ctx.saved_tensors[0]), None, None
