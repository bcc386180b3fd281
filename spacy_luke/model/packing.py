"""Which packed rows share one attention call.

Everything in a batch is packed: the tokens of all windows stand one after another in one (N, D) matrix, so that no
linear layer computes padding. Only attention needs rows side by side; here it is decided which windows do it together.

N packed tokens, B windows of a group, L tokens of a window.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ENTITY_WASTE = 0.5  # padding of a call's entities that is tolerated, as a share of the real ones
GPU_ENTITY_WASTE = 2.0  # on a GPU: a call of entities launches a dozen kernels a layer
GPU_TIMES = 4  # see `times_at_once`


@dataclass(frozen=True)
class Group:
    """Windows [first, last) attended in one call, each as long as the longest, L. Where `real_BL` is None nothing is
    padding; where `start` is given the packed rows are the consecutive ones from there, so that a view does."""

    first: int
    last: int
    longest: int
    real_BL: Tensor | None
    start: int | None

    @property
    def shape(self) -> tuple[int, int]:
        return self.last - self.first, self.longest


@dataclass(frozen=True)
class Moves:
    """The packed rows of all groups, padding included (P), and where each packed row is found among them."""

    order_P: Tensor
    place_N: Tensor


@dataclass(frozen=True)
class Packing:
    """Groups in order. moves: None where the packed rows are those of the groups as they stand.

    lengths: rows of each window; of windows made of two runs, `more_lengths` has the second run's. entity_waste:
    padding that is tolerated of the entities of its groups.
    """

    groups: tuple[Group, ...]
    moves: Moves | None
    lengths: Sequence[int]
    more_lengths: Sequence[int] = ()
    entity_waste: float = ENTITY_WASTE


@dataclass(frozen=True)
class EntityRows:
    """Windows that have entities, in groups, each with the most entities that one of its windows has (S).

    rows_P: packed entity rows of all groups, (B, S) of each, row 0 in place of padding; place_E: where each entity is
    found in the groups' concatenated results. words_P: the packed word rows of all groups, (B, L) of each; None where
    views do.
    """

    parts: tuple[tuple[Group, int], ...]
    rows_P: Tensor
    place_E: Tensor
    words_P: Tensor | None

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(B, S) of each group."""
        return [(group.last - group.first, most) for group, most in self.parts]


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
    """Padding that is tolerated, as a share of the real tokens: 0 in predictions on a CPU, where a small call costs
    little; more on a GPU, where each call has a launch to pay, and in training, where each has its gradient too
    (measured with 16 sentences a batch: 1.3 times the updates a second). With 1.0, and more padding of entities, an
    H200 computed for 18 % longer in float32, and waited for its host no less."""
    return 0.0 if device.type == "cpu" and not torch.is_grad_enabled() else 0.25


def times_at_once(device: torch.device) -> int:
    """How many times as many pieces as settings say are encoded and held at once in predictions: more on a GPU, whose
    launches have their price whatever they compute."""
    return 1 if device.type == "cpu" else GPU_TIMES


def pack(lengths: Sequence[int], *, device: torch.device, waste: float | None = None) -> Packing:
    """Packing of windows whose tokens are consecutive rows. It is made on the host (see `to_device`).

    device: where it shall be; waste: padding that is tolerated; None: as the device likes it.
    """
    bounds = choose_groups(lengths, waste=tolerated_waste(device) if waste is None else waste)
    sizes_B = np.array(lengths, dtype=np.int64)
    starts_B = np.cumsum(sizes_B) - sizes_B
    groups = tuple(_group(sizes_B, first, last, starts_B) for first, last in bounds)
    moves = None
    if any(group.start is None for group in groups):
        moves = _moves(groups, lambda group: _word_rows(group, starts_B), int(sizes_B.sum()))
    entity_waste = ENTITY_WASTE if device.type == "cpu" else GPU_ENTITY_WASTE
    return Packing(groups, moves, lengths, entity_waste=entity_waste)


def pack_pairs(first_lengths: Sequence[int], second_lengths: Sequence[int], *, device: torch.device) -> Packing:
    """Packing of windows made of two runs of rows: words of all windows stand first, then the entities of all."""
    words_B, entities_B = (np.array(x, dtype=np.int64) for x in (first_lengths, second_lengths))
    sizes_B, n_words = words_B + entities_B, int(words_B.sum())
    word_B, entity_B = np.cumsum(words_B) - words_B, n_words + np.cumsum(entities_B) - entities_B
    bounds = choose_groups(sizes_B.tolist(), waste=tolerated_waste(device))
    groups = tuple(_group(sizes_B, first, last, None) for first, last in bounds)

    def rows(group: Group) -> NDArray[np.int64]:
        column_L, own = np.arange(group.longest), slice(group.first, group.last)
        shift_B1 = (entity_B - words_B)[own, None]
        rows_BL: NDArray[np.int64] = np.where(column_L < words_B[own, None], word_B[own, None], shift_B1) + column_L
        return rows_BL

    moves = _moves(groups, rows, int(sizes_B.sum())) if len(sizes_B) else None
    return Packing(groups, moves, first_lengths, second_lengths)


def entity_rows(packing: Packing, counts: Sequence[int]) -> EntityRows:
    """The entities of each group of windows, made on the host (see `to_device`).

    counts: entities of each window; the entities of all windows are consecutive rows. Windows of one group that have
    very different numbers of entities are taken apart.
    """
    counts_B, lengths_B = np.array(counts, dtype=np.int64), np.array(packing.lengths, dtype=np.int64)
    starts_B, word_B = np.cumsum(counts_B) - counts_B, np.cumsum(lengths_B) - lengths_B
    parts: list[tuple[Group, int]] = []
    rows, reals = [], []
    for group in packing.groups:
        for a, b in choose_groups(counts[group.first : group.last], waste=packing.entity_waste):
            own = slice(group.first + a, group.first + b)
            most = int(counts_B[own].max())
            if most:
                column_S = np.arange(most)
                reals.append((column_S < counts_B[own, None]).reshape(-1))
                rows.append((starts_B[own, None] + column_S).reshape(-1) * reals[-1])
                parts.append((_part(group, a, b), most))
    rows_P, real_P = _joined(rows), _joined(reals).astype(bool)
    words_P = None
    if any(group.start is None for group, _ in parts):
        words_P = torch.from_numpy(_joined([_word_rows(group, word_B).reshape(-1) for group, _ in parts]))
    place_E = _places(rows_P, real_P, int(counts_B.sum()))
    return EntityRows(tuple(parts), torch.from_numpy(rows_P), torch.from_numpy(place_E), words_P)


def _part(group: Group, first: int, last: int) -> Group:
    """The windows [first, last) of a group, counted in it."""
    if (first, last) == (0, group.last - group.first):
        return group
    return Group(
        group.first + first,
        group.first + last,
        group.longest,
        None if group.real_BL is None else group.real_BL[first:last],
        None if group.start is None else group.start + first * group.longest,
    )


def _group(sizes_B: NDArray[np.int64], first: int, last: int, starts_B: NDArray[np.int64] | None) -> Group:
    """starts_B: of windows whose rows are consecutive."""
    own_B = sizes_B[first:last]
    longest = int(own_B.max())
    if longest == own_B.min():
        return Group(first, last, longest, None, None if starts_B is None else int(starts_B[first]))
    return Group(first, last, longest, torch.from_numpy(np.arange(longest) < own_B[:, None]), None)


def _word_rows(group: Group, starts_B: NDArray[np.int64]) -> NDArray[np.int64]:
    """Packed rows (B, L) of a group whose windows' rows are consecutive; any rows in place of padding."""
    rows_BL: NDArray[np.int64] = starts_B[group.first : group.last, None] + np.arange(group.longest)
    return rows_BL if group.real_BL is None else rows_BL * group.real_BL.numpy()


def _moves(groups: Sequence[Group], rows: Callable[[Group], NDArray[np.int64]], size: int) -> Moves:
    """rows: (B, L) of a group, any numbers in place of padding; size: all rows."""
    tables, reals = [], []
    for group in groups:
        real_BL = np.ones(group.shape, bool) if group.real_BL is None else group.real_BL.numpy()
        tables.append((rows(group) * real_BL).reshape(-1))
        reals.append(real_BL.reshape(-1))
    order_P = _joined(tables)
    place_N = _places(order_P, _joined(reals).astype(bool), size)
    return Moves(torch.from_numpy(order_P), torch.from_numpy(place_N))


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def _places(rows_P: NDArray[np.int64], real_P: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
    """Where each of the rows 0 to `size` stands among the real ones of rows_P: (size,)."""
    place = np.zeros(size, np.int64)
    place[rows_P[real_P]] = np.flatnonzero(real_P)
    return place


def group_rows(x_NHK: Tensor, packing: Packing) -> list[Tensor]:
    """Rows (B, L, H, K) of each group: one gather for all, and its split."""
    if packing.moves is not None:
        x_NHK = _reorder(x_NHK, packing.moves.order_P, packing.moves.place_N)
    return split_rows(x_NHK, [group.shape for group in packing.groups])


def ungroup_rows(results: Sequence[Tensor], packing: Packing) -> Tensor:
    """The results of all groups (rows of each, padding included) as packed rows (N, D)."""
    out_PD = results[0] if len(results) == 1 else torch.cat(list(results))
    if packing.moves is None:
        return out_PD
    return _reorder(out_PD, packing.moves.place_N, packing.moves.order_P)


def word_rows(x_NHK: Tensor, rows: EntityRows) -> list[Tensor]:
    """The words (B, L, H, K) of each group that has entities: views where they are consecutive, of one split, since the
    gradient of a slice is as large as all rows; else one gather for all."""
    groups = [group for group, _ in rows.parts]
    if rows.words_P is not None:
        return split_rows(x_NHK.index_select(0, rows.words_P), [group.shape for group in groups])
    edges = [0]
    for group in groups:
        assert group.start is not None
        edges += [group.start, group.start + (group.last - group.first) * group.longest]
    edges.append(len(x_NHK))
    parts = x_NHK.split([b - a for a, b in zip(edges, edges[1:])])[1::2]
    return [part.unflatten(0, group.shape) for part, group in zip(parts, groups, strict=True)]


def split_rows(x_P: Tensor, shapes: Sequence[tuple[int, int]]) -> list[Tensor]:
    """The rows of x_P (P, ...), one group after the other, in the groups' shapes."""
    parts = x_P.split([a * b for a, b in shapes]) if shapes else []
    return [part.unflatten(0, shape) for part, shape in zip(parts, shapes, strict=True)]


def _reorder(x: Tensor, order_P: Tensor, inverse_N: Tensor) -> Tensor:
    """x[order_P]. inverse_N: where each row of x is found in it; where nothing but rows moves, the gradient is a
    gather."""
    if len(inverse_N) != len(order_P):
        return x.index_select(0, order_P)
    moved_P: Tensor = _Reorder.apply(x, order_P, inverse_N)  # type: ignore[no-untyped-call]
    return moved_P


class _Reorder(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, order_N: Tensor, inverse_N: Tensor) -> Tensor:
        ctx.save_for_backward(inverse_N)
        return x.index_select(0, order_N)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient.index_select(0, ctx.saved_tensors[0]), None, None
