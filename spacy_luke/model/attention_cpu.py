"""What attention does otherwise on a CPU, for speed: the same numbers, as tests against a plain loop tell.

Without gradients, torch's fused CPU kernel gives beside an attention the log-sums of its softmaxes. By these, the
attentions to the words and to the entities of a window are joined, so that nothing is widened, gathered or padded. The
kernel is a private operator of torch, so it is used only where its results, looked at once, are right.

S tokens of one kind in a window, L tokens that they see, E entities of all windows; H heads, K head width, D = H * K.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from .int8 import Inputs, Rows

KERNEL = "_scaled_dot_product_flash_attention_for_cpu"
# Measured on a Xeon with AMX: up to so many keys the plain computation is faster than the fused kernel, whose gradient
# is slow for few keys.
XEON_PLAIN_KEYS = {torch.float32: 64, torch.bfloat16: 256}
# Folding the words' query into the keys of few entities pays where their heads are at most the model's width divided by
# this: half of the query's multiplications are then saved.
FEW = 2

AttentionPart = tuple[Tensor, Tensor]  # an attention (B, H, S, K), and the log-sum of each of its softmaxes (B, H, S)
KeysValues = tuple[Tensor, Tensor]  # (N, H, K) each


@dataclass(frozen=True)
class FoldedKeys:
    """Keys of entities with the words' query for entities folded in: words (NW, D), keys (E, H, D) and bias (E, H), so
    that the scores of words for few entities need no query of their own."""

    words_ND: Tensor
    keys_EHD: Tensor
    bias_EH: Tensor

    def attend(self, words: slice, entities: slice, v_LHK: Tensor) -> AttentionPart:
        """Of a window's words (slices of the packed rows) to its entities."""
        bias_LH, keys_LHD = self.bias_EH[entities], self.keys_EHD[entities]
        scores_SLH = torch.addmm(bias_LH.flatten(), self.words_ND[words], keys_LHD.flatten(0, 1).t())
        scores_HSL = scores_SLH.unflatten(1, bias_LH.shape).permute(2, 0, 1) * v_LHK.shape[-1] ** -0.5
        scores_HSL = scores_HSL.to(torch.promote_types(scores_HSL.dtype, torch.float32))
        out_HSK = scores_HSL.softmax(-1).to(v_LHK.dtype) @ v_LHK.transpose(0, 1)
        return out_HSK[None], scores_HSL.logsumexp(-1)[None]


def query_or_fold(query: nn.Linear, words: Inputs, k_EHK: Tensor, counts: Sequence[int]) -> Tensor | FoldedKeys:
    """How words see entities: by queries of their own (NW, H, K), or, where the entities of all windows are few, by
    keys that the query is folded into; never in int8, where the two differ, and with them a window's results in
    different batches. k_EHK: keys of the entities; counts: entities of each window."""
    heads = k_EHK.shape[1]
    if isinstance(words, Rows) or max(counts, default=0) * heads * FEW > words.shape[-1]:
        query_NHK: Tensor = query(words).unflatten(-1, (heads, -1))
        return query_NHK
    weight_HKD, bias_HK = query.weight.unflatten(0, (heads, -1)), query.bias.unflatten(0, (heads, -1))
    keys_EHD = torch.einsum("ehk,hkd->ehd", k_EHK, weight_HKD)
    return FoldedKeys(words, keys_EHD, torch.einsum("ehk,hk->eh", k_EHK, bias_HK))


def attend_in_parts(
    to_words_NHK: Tensor,
    to_entities: Tensor | FoldedKeys,
    words: KeysValues,
    entities: KeysValues,
    seeing: Sequence[int],
    lengths: Sequence[int],
    counts: Sequence[int],
) -> Tensor:
    """Tokens of one kind see the words and the entities of their window: (N, D).

    to_words_NHK: their queries for words; to_entities: those for entities (N, H, K), or keys of entities with it folded
    in. seeing, lengths, counts: such tokens, words and entities of each window, which are consecutive rows.
    """
    attended = []
    for n, w, e in zip(_runs(seeing), _runs(lengths), _runs(counts), strict=True):
        if n.start == n.stop:
            continue
        part = attend_one(to_words_NHK[n], words[0][w], words[1][w])
        if e.start == e.stop:
            attended.append(part[0])
        elif isinstance(to_entities, FoldedKeys):
            attended.append(join(part, to_entities.attend(n, e, entities[1][e])))
        else:
            attended.append(join(part, attend_one(to_entities[n], entities[0][e], entities[1][e])))
    if not attended:
        return to_words_NHK.flatten(1)
    return torch.cat([out_1HSK.transpose(1, 2).flatten(0, 1).flatten(1) for out_1HSK in attended])


def _runs(counts: Sequence[int]) -> list[slice]:
    runs, start = [], 0
    for count in counts:
        runs.append(slice(start, start + count))
        start += count
    return runs


def attend_one(q_SHK: Tensor, k_LHK: Tensor, v_LHK: Tensor) -> AttentionPart:
    """Of one window."""
    return attend_fused(q_SHK.transpose(0, 1)[None], k_LHK.transpose(0, 1)[None], v_LHK.transpose(0, 1)[None])


def attend_fused(q_BHSK: Tensor, k_BHLK: Tensor, v_BHLK: Tensor, added: Tensor | None = None) -> AttentionPart:
    """By the fused kernel, which has no gradient for the log-sums. added: to the scaled scores."""
    mask = None if added is None else added.to(q_BHSK.dtype).expand(*q_BHSK.shape[:3], k_BHLK.shape[2])
    out_BHSK, log_sums_BHS = getattr(torch.ops.aten, KERNEL)(q_BHSK, k_BHLK, v_BHLK, attn_mask=mask)
    return out_BHSK, log_sums_BHS


def join(one: AttentionPart, other: AttentionPart) -> Tensor:
    """The attention to two sets of keys from the attentions to each, weighed by their log-sums; also of packed rows,
    (N, H, K) and (N, H)."""
    weight = torch.sigmoid(one[1] - other[1])[..., None]
    return torch.lerp(other[0], one[0], weight.to(one[0].dtype))


def has_log_sums(x: Tensor) -> bool:
    """Whether the fused kernel that gives log-sums may be used for such a tensor. A compiled graph cannot ask whether
    it is right."""
    here = x.device.type == "cpu" and not torch.is_grad_enabled() and not torch.compiler.is_compiling()
    return here and is_kernel_right()


@cache
def is_kernel_right() -> bool:
    """Whether this torch has the kernel, and it computes what is expected, in the number formats of this package."""
    return all(_gives_expected(dtype, error) for dtype, error in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)))


@torch.no_grad()
def _gives_expected(dtype: torch.dtype, error: float) -> bool:
    """On numbers from -1 to 1, with strides as packed rows have them."""
    q_BHSK, k_BHLK, v_BHLK = (
        torch.arange(rows * 8.0, device="cpu").add(shift).sin().view(1, rows, 2, 4).transpose(1, 2).to(dtype)
        for rows, shift in ((3, 0.1), (5, 0.2), (5, 0.3))
    )
    added_SL = torch.arange(15.0, device="cpu").cos().view(3, 5).to(dtype)
    for added in (None, added_SL):
        with torch.autocast("cpu", enabled=False):
            scores_BHSL = q_BHSK.float() @ k_BHLK.float().transpose(-1, -2) / 2 + (
                0 if added is None else added.float()
            )
            wanted = (scores_BHSL.softmax(-1) @ v_BHLK.float(), scores_BHSL.logsumexp(-1))
            try:
                found = attend_fused(q_BHSK, k_BHLK, v_BHLK, added)
            except Exception:  # absent, or called otherwise: torch raises many kinds
                return False
        if not all(
            isinstance(x, Tensor) and x.shape == y.shape and torch.allclose(x.float(), y, rtol=error, atol=error)
            for x, y in zip(found, wanted, strict=True)
        ):
            return False
    return True


def is_plain_faster(q_BHSK: Tensor, k_BHLK: Tensor, v_BHLK: Tensor, *, rate: float) -> bool:
    """Whether attention is better computed step by step than by torch's fused function, which has no CPU kernel with
    dropout, does it in float32 there, whatever is given, and has a slow gradient for few keys."""
    if q_BHSK.device.type != "cpu":
        return False
    few = k_BHLK.shape[-2] <= XEON_PLAIN_KEYS.get(k_BHLK.dtype, 0)
    return rate > 0 or (few and torch.is_grad_enabled() and any(x.requires_grad for x in (q_BHSK, k_BHLK, v_BHLK)))
