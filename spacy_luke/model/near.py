"""Attention of words to the words near them, in blocks, so that a long window costs no more than its pieces.

N packed pieces of B windows; n blocks of a call, S pieces of a block that look, L pieces that they may see, P rows of
all blocks of a call or of all calls; H heads, K head width.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .attention_groups import attend_heads
from .packing import split_rows, tolerated_waste

BLOCK_PIECES = 64  # pieces of a long window that look at once
_BLOCK_WASTE = 0.5  # padding that is tolerated among the blocks of long windows, as a share of the real pairs of pieces
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Call:
    """n blocks that are attended at once: (n, S, L). seen_nSL: None where all see all."""

    shape: tuple[int, int, int]
    seen_nSL: Tensor | None


@dataclass(frozen=True)
class Blocks:
    """queries_P, keys_P: packed rows of all calls' blocks; place_N: where each packed row is among the results."""

    calls: tuple[Call, ...]
    queries_P: Tensor
    keys_P: Tensor
    place_N: Tensor


def plan_blocks(lengths: Sequence[int], *, reach: int, device: torch.device) -> Blocks:
    """Blocks of windows whose pieces see those at most `reach` away. A window in which all see all is one block; a
    longer one is cut into blocks of BLOCK pieces, each with the pieces within reach of one of them.

    device: where they shall be; they are made on the host (see `to_device`).
    """
    whole, near = _cut(lengths, reach)
    calls, queries, keys, reals = [], [], [], []
    for blocks_n4, waste, limit in ((whole, tolerated_waste(device), None), (near, _BLOCK_WASTE, reach)):
        for own_n in _group(blocks_n4, waste):
            call, queries_nS, keys_nL, real_nS = _make_call(blocks_n4[own_n], limit)
            calls.append(call)
            queries.append(queries_nS.reshape(-1))
            keys.append(keys_nL.reshape(-1))
            reals.append(real_nS.reshape(-1))
    queries_P, real_P = np.concatenate(queries), np.concatenate(reals)
    place_N = np.empty(sum(lengths), np.int64)
    place_N[queries_P[real_P]] = np.flatnonzero(real_P)
    return Blocks(tuple(calls), *map(torch.from_numpy, (queries_P, np.concatenate(keys), place_N)))


def attend_blocks(q_NHK: Tensor, k_NHK: Tensor, v_NHK: Tensor, blocks: Blocks, *, rate: float) -> Tensor:
    """(N, D). rate: of dropout."""
    looking = [(call.shape[0], call.shape[1]) for call in blocks.calls]
    seen = [(call.shape[0], call.shape[2]) for call in blocks.calls]
    queries = split_rows(q_NHK.index_select(0, blocks.queries_P), looking)
    keys, values = (split_rows(x.index_select(0, blocks.keys_P), seen) for x in (k_NHK, v_NHK))
    results = []
    for call, *heads in zip(blocks.calls, queries, keys, values, strict=True):
        q_nHSK, k_nHLK, v_nHLK = (x.transpose(1, 2) for x in heads)
        mask = None if call.seen_nSL is None else call.seen_nSL[:, None]
        out_nHSK = attend_heads(q_nHSK, k_nHLK, v_nHLK, rate=rate, mask=mask)
        results.append(out_nHSK.transpose(1, 2).flatten(0, 1).flatten(1))
    return torch.cat(results).index_select(0, blocks.place_N)


def _cut(lengths: Sequence[int], reach: int) -> tuple[Ints, Ints]:
    """Blocks of windows in which all see all, and those of others: first and end of the packed rows that look, first
    and end of those that are seen."""
    whole: list[tuple[int, int, int, int]] = []
    near: list[tuple[int, int, int, int]] = []
    start = 0
    for length in lengths:
        end = start + length
        if length <= reach + 1:
            whole.append((start, end, start, end))
        else:
            for a in range(start, end, BLOCK_PIECES):
                b = min(a + BLOCK_PIECES, end)
                near.append((a, b, max(start, a - reach), min(end, b + reach)))
        start = end
    as_rows = (np.array(x, np.int64).reshape(-1, 4) for x in (whole, near))
    return next(as_rows), next(as_rows)


def _group(blocks_n4: Ints, waste: float) -> list[Ints]:
    """Which blocks share a call, the smallest first: with padding of at most `waste` of the real pairs of pieces."""
    sizes_n2 = blocks_n4[:, 1::2] - blocks_n4[:, ::2]
    groups: list[list[int]] = []
    total, most = 0, np.zeros(2, np.int64)
    for i in np.lexsort(sizes_n2.T).tolist():
        real, widest = int(sizes_n2[i].prod()), np.maximum(most, sizes_n2[i])
        if not groups or int(widest.prod()) * (len(groups[-1]) + 1) > (1 + waste) * (total + real):
            groups.append([])
            total, widest = 0, sizes_n2[i]
        groups[-1].append(i)
        total, most = total + real, widest
    return [np.array(group, np.int64) for group in groups]


def _make_call(blocks_n4: Ints, reach: int | None) -> tuple[Call, Ints, Ints, NDArray[np.bool_]]:
    """RETURNS: the call, its rows that look (n, S) and that are seen (n, L), and which of the first are no padding."""
    queries_nS, real_nS = _spread(blocks_n4[:, 0], blocks_n4[:, 1])
    keys_nL, real_nL = _spread(blocks_n4[:, 2], blocks_n4[:, 3])
    shape = (*queries_nS.shape, keys_nL.shape[1])
    if reach is None and real_nL.all():
        return Call(shape, None), queries_nS, keys_nL, real_nS
    seen_nSL = np.broadcast_to(real_nL[:, None], shape)
    if reach is not None:  # padding repeats a real row, which sees itself
        seen_nSL = seen_nSL & (np.abs(queries_nS[:, :, None] - keys_nL[:, None]) <= reach)
    return Call(shape, torch.from_numpy(np.ascontiguousarray(seen_nSL))), queries_nS, keys_nL, real_nS


def _spread(start_n: Ints, end_n: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Rows [start, end) of each block, the last one again in place of padding, and which are none."""
    column_S = np.arange((end_n - start_n).max())
    rows_nS: Ints = np.minimum(start_n[:, None] + column_S, end_n[:, None] - 1)
    return rows_nS, column_S < (end_n - start_n)[:, None]
