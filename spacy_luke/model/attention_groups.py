"""Attention of packed rows: the windows of a group of a packing are attended in one call.

N packed tokens, B windows of a group, L tokens of a window, S tokens that see them, padded where windows differ; H
heads, K head width.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from . import attention_cpu as cpu
from .attention_cpu import KeysValues
from .dropout import dropout
from .packing import EntityRows, Group, Packing, group_rows, split_rows, ungroup_rows, word_rows

# What is added to the scaled scores of a group, by its number, queries (B, H, S, K) and keys (B, H, L, K): (B, H, S, L)
# or what broadcasts to it; None: nothing.
MoreScores = Callable[[int, Tensor, Tensor], Tensor | None]


def attend_packed(
    q_NHK: Tensor, k_NHK: Tensor, v_NHK: Tensor, packing: Packing, *, rate: float, more: MoreScores | None = None
) -> Tensor:
    """Tokens see the tokens of their window: (N, D). q and k may have wider heads than v. rate: of dropout."""
    results = []
    in_groups = (group_rows(x, packing) for x in (q_NHK, k_NHK, v_NHK))
    for i, (group, *heads) in enumerate(zip(packing.groups, *in_groups, strict=True)):
        q_BHLK, k_BHLK, v_BHLK = (x.transpose(1, 2) for x in heads)
        mask = None if group.real_BL is None else group.real_BL[:, None, None]
        added = None if more is None else more(i, q_BHLK, k_BHLK)
        results.append(_rows(attend_heads(q_BHLK, k_BHLK, v_BHLK, rate=rate, mask=mask, added=added)))
    return ungroup_rows(results, packing)


def attend_heads(
    q_BHSK: Tensor,
    k_BHLK: Tensor,
    v_BHLK: Tensor,
    *,
    rate: float,
    mask: Tensor | None = None,
    added: Tensor | None = None,
) -> Tensor:
    """Ordinary attention with the scale of v's heads: (B, H, S, K of v). mask: True for keys that are seen; added: to
    the scaled scores."""
    width, narrow = q_BHSK.shape[-1], v_BHLK.shape[-1]
    scale = narrow**-0.5
    if cpu.is_plain_faster(q_BHSK, k_BHLK, v_BHLK, rate=rate):
        with torch.autocast("cpu", enabled=False):
            scores_BHSL = (q_BHSK * scale) @ k_BHLK.transpose(-1, -2)
            if added is not None:
                scores_BHSL = scores_BHSL + added.to(scores_BHSL.dtype)
            if mask is not None:  # added, which costs half of filling, and nothing in the gradient
                scores_BHSL = scores_BHSL + scores_BHSL.new_zeros(()).masked_fill(~mask, float("-inf"))
            return dropout(scores_BHSL.softmax(-1), rate, rate > 0) @ v_BHLK
    if width != narrow and q_BHSK.device.type == "cpu":  # the fused CPU kernel wants one width
        v_BHLK = F.pad(v_BHLK, (0, width - narrow))
    if added is not None:
        added = added.to(q_BHSK.dtype)
        mask = added if mask is None else added.masked_fill(~mask, float("-inf"))
    out_BHSK = F.scaled_dot_product_attention(q_BHSK, k_BHLK, v_BHLK, attn_mask=mask, dropout_p=rate, scale=scale)
    return out_BHSK[..., :narrow]


def attend_with_own(
    q_EHK: Tensor,
    words: KeysValues,
    own_EHG: Tensor,
    own_v_EHGK: Tensor,
    rows: EntityRows,
    *,
    rate: float,
    more: MoreScores | None = None,
) -> Tensor:
    """Each of E entities sees the words of its window, and G tokens of its own, whose scaled scores and values are
    given: (E, D)."""
    if not rows.parts:
        return q_EHK.flatten(1)
    keys, values = ([x.transpose(1, 2) for x in word_rows(x, rows)] for x in words)
    queries = [x.transpose(1, 2) for x in split_rows(q_EHK.index_select(0, rows.rows_P), rows.shapes)]
    groups = [group for group, _ in rows.parts]
    added = [None if more is None else more(i, q, k) for i, (q, k) in enumerate(zip(queries, keys, strict=True))]
    if cpu.has_log_sums(q_EHK) and all(group.real_BL is None for group in groups):
        parts = [cpu.attend_fused(*heads) for heads in zip(queries, keys, values, added, strict=True)]
        to_words_PHK, sums_PH = (torch.cat([x.transpose(1, 2).flatten(0, 1) for x in xs]) for xs in zip(*parts))
        to_words_EHK, sums_EH = (x.index_select(0, rows.place_E) for x in (to_words_PHK, sums_PH))
        own_EHG = own_EHG.to(torch.promote_types(own_EHG.dtype, torch.float32))
        own_EHK = (own_EHG.softmax(-1).to(own_v_EHGK.dtype)[..., None] * own_v_EHGK).sum(-2)
        return cpu.join((to_words_EHK, sums_EH), (own_EHK, own_EHG.logsumexp(-1))).flatten(1)
    own = (split_rows(x.index_select(0, rows.rows_P), rows.shapes) for x in (own_EHG, own_v_EHGK))
    results = []
    for group, extra, q_BHSK, k_BHLK, v_BHLK, scores, own_values in zip(
        groups, added, queries, keys, values, *own, strict=True
    ):
        own_BHSG, own_BHSGK = scores.transpose(1, 2), own_values.transpose(1, 2)
        results.append(_rows(_with_own(q_BHSK, k_BHLK, v_BHLK, own_BHSG, own_BHSGK, group, rate=rate, added=extra)))
    return torch.cat(results).index_select(0, rows.place_E)


def _with_own(
    q_BHSK: Tensor,
    k_BHLK: Tensor,
    v_BHLK: Tensor,
    own_BHSG: Tensor,
    own_BHSGK: Tensor,
    group: Group,
    *,
    rate: float,
    added: Tensor | None,
) -> Tensor:
    size = own_BHSG.shape[-1]
    # Keys and values of zeros behind the words keep columns for each entity's own scores and values.
    scores_BHSL = (q_BHSK * q_BHSK.shape[-1] ** -0.5) @ F.pad(k_BHLK, (0, 0, 0, size)).transpose(-1, -2)
    if added is not None:
        scores_BHSL = scores_BHSL + F.pad(added.to(scores_BHSL.dtype), (0, size))
    if group.real_BL is not None:
        scores_BHSL = scores_BHSL.masked_fill(F.pad(~group.real_BL, (0, size))[:, None, None], float("-inf"))
    scores_BHSL[..., -size:] = own_BHSG.to(scores_BHSL.dtype)
    weights_BHSL = dropout(scores_BHSL.softmax(-1), rate, rate > 0)
    own_BHSK = (weights_BHSL[..., -size:, None] * own_BHSGK).sum(-2)
    return weights_BHSL @ F.pad(v_BHLK, (0, 0, 0, size)) + own_BHSK


def _rows(out_BHSK: Tensor) -> Tensor:
    """(B * S, D)."""
    return out_BHSK.transpose(1, 2).flatten(0, 1).flatten(1)
