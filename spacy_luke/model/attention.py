"""Self-attention over words and entities, ordinary and entity-aware (LUKE, EMNLP 2020, section 3.2.2).

NW word tokens and NE entity tokens of a batch, packed; N = NW + NE; B windows of a group, L tokens of a window, W its
words, S its entities; H heads, K head width, D = H * K model width.

Entity-aware attention chooses one of four query matrices by the kinds of the two tokens; key and value are shared.
It equals one ordinary attention over heads twice as wide: a word's query is [query; w2e_query], an entity's
[e2w_query; e2e_query], a word's key is [key; 0] and an entity's [0; key], with the scale of the narrow head. So one
fused call does it. Without gradients on a CPU the parts are attended apart instead, at the narrow width, and joined by
the log-sums of their softmaxes: nothing is widened, gathered or padded.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .dropout import dropout
from .packing import EntityRows, Group, Packing

FEW = 2  # entities are few where their heads are at most the model's width divided by this: folding them in then pays
PLAIN_KEYS = {torch.float32: 64, torch.bfloat16: 256}  # up to so many; measured on a Xeon with AMX
_KERNEL = "_scaled_dot_product_flash_attention_for_cpu"


class Attention(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int, *, entity_aware: bool, dropout: float):
        super().__init__()
        self.num_heads = num_heads
        self.entity_aware = entity_aware
        self.dropout = dropout
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        if entity_aware:
            self.w2e_query = nn.Linear(hidden_size, hidden_size)
            self.e2w_query = nn.Linear(hidden_size, hidden_size)
            self.e2e_query = nn.Linear(hidden_size, hidden_size)
        self.output = nn.Linear(hidden_size, hidden_size)

    def forward(self, words_ND: Tensor, entities_ED: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """Every token of a window sees every token of it (the paper's attention, mode "full").

        words_ND: (NW, D), entities_ED: (NE, D), packing: of word-and-entity windows (`pack_pairs`).
        RETURNS: (NW, D) and (NE, D), after the output projection.
        """
        if self.entity_aware and _has_log_sums(words_ND):
            return self._forward_in_parts(words_ND, entities_ED, packing)
        k_w, k_e = self._heads(self.key(words_ND)), self._heads(self.key(entities_ED))
        v_NHK = torch.cat([self._heads(self.value(words_ND)), self._heads(self.value(entities_ED))])
        if self.entity_aware:
            width = k_w.shape[-1]
            q_w = torch.cat([self._heads(self.query(words_ND)), self._heads(self.w2e_query(words_ND))], -1)
            q_e = torch.cat([self._heads(self.e2w_query(entities_ED)), self._heads(self.e2e_query(entities_ED))], -1)
            k_w, k_e = F.pad(k_w, (0, width)), F.pad(k_e, (width, 0))
        else:
            q_w, q_e = self._heads(self.query(words_ND)), self._heads(self.query(entities_ED))
        out_ND = self._attend(torch.cat([q_w, q_e]), torch.cat([k_w, k_e]), v_NHK, packing)
        out_ND = self.output(out_ND)
        return out_ND[: len(words_ND)], out_ND[len(words_ND) :]

    def _forward_in_parts(self, words_ND: Tensor, entities_ED: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """`forward` of entity-aware attention: four narrow attentions a window instead of a wide one."""
        w2w, e2w, e2e = (
            self._heads(linear(x))
            for linear, x in ((self.query, words_ND), (self.e2w_query, entities_ED), (self.e2e_query, entities_ED))
        )
        k_w, v_w = self._heads(self.key(words_ND)), self._heads(self.value(words_ND))
        k_e, v_e = self._heads(self.key(entities_ED)), self._heads(self.value(entities_ED))
        few = max(packing.more_lengths, default=0) * self.num_heads * FEW <= words_ND.shape[-1]
        w2e = None if few else self._heads(self.w2e_query(words_ND))
        folded = self._fold(k_e) if few else None
        words, entities, a, c = [], [], 0, 0
        for n_words, n_entities in zip(packing.lengths, packing.more_lengths, strict=True):
            w, e = slice(a, a + n_words), slice(c, c + n_entities)
            a, c = a + n_words, c + n_entities
            if not n_entities:
                words.append(_part(w2w[w], k_w[w], v_w[w])[0])
                continue
            if w2e is None:
                to_entities = self._to_few(words_ND[w], folded[0][e], folded[1][e], v_e[e])
            else:
                to_entities = _part(w2e[w], k_e[e], v_e[e])
            words.append(_join(_part(w2w[w], k_w[w], v_w[w]), to_entities))
            entities.append(_join(_part(e2w[e], k_w[w], v_w[w]), _part(e2e[e], k_e[e], v_e[e])))
        attended_ED = _rows(entities) if entities else entities_ED
        return self.output(_rows(words)), self.output(attended_ED)

    def _fold(self, k_EHK: Tensor) -> tuple[Tensor, Tensor]:
        """The w2e query folded into the keys of entities: (NE, H, D) and (NE, H), so that a word's scores for few
        entities need no query of its own."""
        weight_HKD = self.w2e_query.weight.unflatten(0, (self.num_heads, -1))
        bias_HK = self.w2e_query.bias.unflatten(0, (self.num_heads, -1))
        return torch.einsum("ehk,hkd->ehd", k_EHK, weight_HKD), torch.einsum("ehk,hk->eh", k_EHK, bias_HK)

    def _to_few(self, words_WD: Tensor, keys_SHD: Tensor, bias_SH: Tensor, v_SHK: Tensor) -> tuple[Tensor, Tensor]:
        """Attention (1, H, W, K) of a window's words to its few entities by folded keys, and log-sums (1, H, W)."""
        scores_WSH = torch.addmm(bias_SH.flatten(), words_WD, keys_SHD.flatten(0, 1).t()).unflatten(1, bias_SH.shape)
        scores_HWS = scores_WSH.permute(2, 0, 1) * v_SHK.shape[-1] ** -0.5
        scores_HWS = scores_HWS.to(torch.promote_types(scores_HWS.dtype, torch.float32))
        out_HWK = scores_HWS.softmax(-1).to(v_SHK.dtype) @ v_SHK.transpose(0, 1)
        return out_HWK[None], scores_HWS.logsumexp(-1)[None]

    def entities_last(self, words_ND: Tensor, entities_ED: Tensor, packing: Packing) -> Tensor:
        """`forward` for the entities alone, where nobody asks for the words any more (the last layer): (NE, D)."""
        if not (self.entity_aware and _has_log_sums(words_ND)):
            return self.forward(words_ND, entities_ED, packing)[1]
        e2w, e2e = self._heads(self.e2w_query(entities_ED)), self._heads(self.e2e_query(entities_ED))
        k_w, v_w = self._heads(self.key(words_ND)), self._heads(self.value(words_ND))
        k_e, v_e = self._heads(self.key(entities_ED)), self._heads(self.value(entities_ED))
        entities, a, c = [], 0, 0
        for n_words, n_entities in zip(packing.lengths, packing.more_lengths, strict=True):
            w, e = slice(a, a + n_words), slice(c, c + n_entities)
            a, c = a + n_words, c + n_entities
            if n_entities:
                entities.append(_join(_part(e2w[e], k_w[w], v_w[w]), _part(e2e[e], k_e[e], v_e[e])))
        return self.output(_rows(entities) if entities else entities_ED)

    def words_only(self, words_ND: Tensor, packing: Packing) -> tuple[Tensor, Tensor, Tensor]:
        """Words see the words of their window.

        RETURNS: (NW, D) after the output projection, and the keys and values (NW, H, K) for `entities_only`.
        """
        k_NHK, v_NHK = self._heads(self.key(words_ND)), self._heads(self.value(words_ND))
        out_ND = self._attend(self._heads(self.query(words_ND)), k_NHK, v_NHK, packing)
        return self.output(out_ND), k_NHK, v_NHK

    def entities_only(
        self,
        entities_ED: Tensor,
        k_NHK: Tensor,
        v_NHK: Tensor,
        rows: EntityRows,
        *,
        group_size: int = 1,
    ) -> Tensor:
        """Each entity sees the words of its window and its own group (mode "one_way"; as PL-Marker's levitated
        markers).

        k_NHK, v_NHK: keys and values of the words (NW, H, K), from `words_only`.
        rows: which entities the groups of windows have (`entity_rows`).
        group_size: so many consecutive entities (G) see one another; 1: an entity sees itself alone.
        RETURNS: (NE, D) after the output projection.
        """
        to_words = self.e2w_query if self.entity_aware else self.query
        to_group = self.e2e_query if self.entity_aware else self.query
        q_EHK = self._heads(to_words(entities_ED))
        own_EHG, own_v_EHGK = self._group_scores(entities_ED, to_group(entities_ED), group_size)
        scale = q_EHK.shape[-1] ** -0.5
        keys, values = (_take(x, [group for group, _ in rows.parts]) for x in (k_NHK, v_NHK))
        tables = [rows_BS for _, rows_BS in rows.parts]
        queries, own_scores, own_values = (_split(x[rows.rows_P], tables) for x in (q_EHK, own_EHG, own_v_EHGK))
        results = []
        for (group, _), k_BLHK, v_BLHK, *own in zip(
            rows.parts, keys, values, queries, own_scores, own_values, strict=True
        ):
            q_BHSK, own_BHSG, own_BHSGK = (x.transpose(1, 2) for x in own)
            k_BHLK, v_BHLK = k_BLHK.transpose(1, 2), v_BLHK.transpose(1, 2)
            if group.real_BL is None and _has_log_sums(entities_ED):
                own_BHSG = own_BHSG.to(torch.promote_types(own_BHSG.dtype, torch.float32))
                weights_BHSG = own_BHSG.softmax(-1).to(own_BHSGK.dtype)
                own_BHSK = (weights_BHSG[..., None] * own_BHSGK).sum(-2)
                out_BHSK = _join(_fused(q_BHSK, k_BHLK, v_BHLK), (own_BHSK, own_BHSG.logsumexp(-1)))
            else:
                out_BHSK = self._with_group(q_BHSK * scale, k_BHLK, v_BHLK, own_BHSG, own_BHSGK, group)
            results.append(out_BHSK.transpose(1, 2).flatten(0, 1).flatten(1))
        if not results:
            return self.output(torch.zeros_like(entities_ED))
        return self.output(torch.cat(results)[rows.place_E])

    def entities_together(
        self, entities_ED: Tensor, k_NHK: Tensor, v_NHK: Tensor, lengths: Sequence[int], counts: Sequence[int]
    ) -> Tensor:
        """As `entities_only`, where all entities of a window see one another.

        lengths, counts: words and entities of each window, which are consecutive rows. RETURNS: (NE, D).
        """
        to_words = self.e2w_query if self.entity_aware else self.query
        q_EHK = self._heads(to_words(entities_ED))
        to_entities_EHK = self._heads(self.e2e_query(entities_ED)) if self.entity_aware else None
        k_EHK, v_EHK = self._heads(self.key(entities_ED)), self._heads(self.value(entities_ED))
        words = zip(k_NHK.split(list(lengths)), v_NHK.split(list(lengths)), strict=True)
        own = (q_EHK if to_entities_EHK is None else to_entities_EHK, k_EHK, v_EHK)
        entities = zip(*(x.split(list(counts)) for x in (q_EHK, *own)), strict=True)
        scale, attended = q_EHK.shape[-1] ** -0.5, []
        for (k_WHK, v_WHK), (q_SHK, own_q_SHK, own_k_SHK, own_v_SHK) in zip(words, entities, strict=True):
            if not len(q_SHK):
                continue
            if to_entities_EHK is None:
                k_LHK, v_LHK = torch.cat([k_WHK, own_k_SHK]), torch.cat([v_WHK, own_v_SHK])
                heads = (x.transpose(0, 1)[None] for x in (q_SHK, k_LHK, v_LHK))
                attended.append(_rows([_attention(*heads, scale=scale, rate=self._rate)]))
            elif _has_log_sums(entities_ED):
                attended.append(_rows([_join(_part(q_SHK, k_WHK, v_WHK), _part(own_q_SHK, own_k_SHK, own_v_SHK))]))
            else:
                to_words_HSW = torch.einsum("shk,whk->hsw", q_SHK, k_WHK)
                scores_HSL = torch.cat([to_words_HSW, torch.einsum("shk,thk->hst", own_q_SHK, own_k_SHK)], dim=-1)
                weights_HSL = dropout((scores_HSL * scale).softmax(-1).to(v_NHK.dtype), self.dropout, self.training)
                attended.append(torch.einsum("hsl,lhk->shk", weights_HSL, torch.cat([v_WHK, own_v_SHK])).flatten(1))
        return self.output(torch.cat(attended) if attended else torch.zeros_like(entities_ED))

    def _group_scores(self, entities_ED: Tensor, query_ED: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """Scaled scores of each entity for the G members of its group (NE, H, G), and their values (NE, H, G, K)."""
        groups = [
            self._heads(x).unflatten(0, (-1, size)) for x in (query_ED, self.key(entities_ED), self.value(entities_ED))
        ]
        q_nGHK, k_nGHK, v_nGHK = groups
        scores_EHG = torch.einsum("nghk,nohk->ngho", q_nGHK, k_nGHK).flatten(0, 1) * q_nGHK.shape[-1] ** -0.5
        values_EHGK = v_nGHK.transpose(1, 2)[:, None].expand(-1, size, -1, -1, -1).flatten(0, 1)
        return scores_EHG, values_EHGK

    def _with_group(
        self, q_BHSK: Tensor, k_BHLK: Tensor, v_BHLK: Tensor, own_BHSG: Tensor, own_BHSGK: Tensor, group: Group
    ) -> Tensor:
        """Attention of scaled queries to the words of their window and to G keys and values of their own."""
        size = own_BHSG.shape[-1]
        # Keys and values of zeros behind the words keep columns for each entity's own scores and values.
        scores_BHSL = q_BHSK @ F.pad(k_BHLK, (0, 0, 0, size)).transpose(-1, -2)
        if group.real_BL is not None:
            scores_BHSL = scores_BHSL.masked_fill(F.pad(~group.real_BL, (0, size))[:, None, None], float("-inf"))
        scores_BHSL[..., -size:] = own_BHSG.to(scores_BHSL.dtype)
        weights_BHSL = dropout(scores_BHSL.softmax(-1), self.dropout, self.training)
        own_BHSK = (weights_BHSL[..., -size:, None] * own_BHSGK).sum(-2)
        return weights_BHSL @ F.pad(v_BHLK, (0, 0, 0, size)) + own_BHSK

    @property
    def _rate(self) -> float:
        return self.dropout if self.training else 0.0

    def _heads(self, x_ND: Tensor) -> Tensor:
        return x_ND.unflatten(-1, (self.num_heads, -1))

    def _attend(self, q_NHK: Tensor, k_NHK: Tensor, v_NHK: Tensor, packing: Packing) -> Tensor:
        """Attention group by group. q and k may have wider heads than v. RETURNS: (N, D)."""
        scale = v_NHK.shape[-1] ** -0.5
        results = []
        in_groups = (_in_groups(x, packing) for x in (q_NHK, k_NHK, v_NHK))
        for group, *heads in zip(packing.groups, *in_groups, strict=True):
            q_BHLK, k_BHLK, v_BHLK = (x.transpose(1, 2) for x in heads)
            mask = None if group.real_BL is None else group.real_BL[:, None, None]
            out_BLHK = _attention(q_BHLK, k_BHLK, v_BHLK, scale=scale, rate=self._rate, mask=mask).transpose(1, 2)
            results.append(out_BLHK.flatten(0, 1).flatten(1))
        out_PD = results[0] if len(results) == 1 else torch.cat(results)
        return out_PD if packing.place_N is None else _reorder(out_PD, packing.place_N, packing.order_P)


def _attention(
    q_BHSK: Tensor, k_BHLK: Tensor, v_BHLK: Tensor, *, scale: float, rate: float, mask: Tensor | None = None
) -> Tensor:
    """Attention of heads, (B, H, S, K of v). rate: of dropout; mask: True for keys that are seen."""
    if _is_plain_faster(q_BHSK, k_BHLK, v_BHLK, rate=rate):
        with torch.autocast("cpu", enabled=False):
            scores_BHSL = (q_BHSK * scale) @ k_BHLK.transpose(-1, -2)
            if mask is not None:
                scores_BHSL = scores_BHSL.masked_fill(~mask, float("-inf"))
            return dropout(scores_BHSL.softmax(-1), rate, rate > 0) @ v_BHLK
    width, narrow = q_BHSK.shape[-1], v_BHLK.shape[-1]
    if width != narrow and q_BHSK.device.type == "cpu":  # the fused CPU kernel wants one width
        v_BHLK = F.pad(v_BHLK, (0, width - narrow))
    out_BHSK = F.scaled_dot_product_attention(q_BHSK, k_BHLK, v_BHLK, attn_mask=mask, dropout_p=rate, scale=scale)
    return out_BHSK[..., :narrow]


def _is_plain_faster(*heads: Tensor, rate: float) -> bool:
    """On a CPU torch has no fused kernel with dropout, and does it in float32 there, whatever is given; and the
    gradient of its fused kernel is slow for few keys."""
    if heads[0].device.type != "cpu":
        return False
    few = heads[1].shape[-2] <= PLAIN_KEYS.get(heads[1].dtype, 0)
    return rate > 0 or (few and torch.is_grad_enabled() and any(x.requires_grad for x in heads))


def _has_log_sums(x: Tensor) -> bool:
    """Whether the fused CPU kernel, which also returns log-sums but no gradient for them, may be used."""
    return x.device.type == "cpu" and not torch.is_grad_enabled() and hasattr(torch.ops.aten, _KERNEL)


def _fused(q_BHSK: Tensor, k_BHLK: Tensor, v_BHLK: Tensor) -> tuple[Tensor, Tensor]:
    """Attention (B, H, S, K) and the log-sum of each softmax (B, H, S)."""
    return getattr(torch.ops.aten, _KERNEL)(q_BHSK, k_BHLK, v_BHLK)


def _part(q_SHK: Tensor, k_LHK: Tensor, v_LHK: Tensor) -> tuple[Tensor, Tensor]:
    return _fused(*(x.transpose(0, 1)[None] for x in (q_SHK, k_LHK, v_LHK)))


def _rows(attended: Sequence[Tensor]) -> Tensor:
    """Attentions (1, H, S, K) of several windows as packed rows (N, D)."""
    return torch.cat([x.transpose(1, 2).flatten(0, 1).flatten(1) for x in attended])


def _join(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> Tensor:
    """Attention to two sets of keys from the attentions to each, weighed by their log-sums."""
    weight = torch.sigmoid(one[1] - other[1])[..., None]
    return torch.lerp(other[0], one[0], weight.to(one[0].dtype))


def _take(x_NHK: Tensor, groups: Sequence[Group]) -> list[Tensor]:
    """Rows (B, L, H, K) of each group, views where they are consecutive: of one split, since the gradient of a slice is
    as large as all rows."""
    if any(group.start is None for group in groups):
        return _gather(x_NHK, [group.rows_BL for group in groups])
    edges = [0, *(edge for g in groups for edge in (g.start, g.start + g.rows_BL.numel())), len(x_NHK)]  # type: ignore[operator]
    parts = x_NHK.split([b - a for a, b in zip(edges, edges[1:])])[1::2]
    return [part.unflatten(0, group.rows_BL.shape) for part, group in zip(parts, groups, strict=True)]


def _gather(x: Tensor, tables: Sequence[Tensor]) -> list[Tensor]:
    """x[rows] of each table of rows, where -1 stands for any: one gather for all, and its split."""
    return _split(x[torch.cat([table.clamp(min=0).flatten() for table in tables])], tables) if tables else []


def _split(x: Tensor, tables: Sequence[Tensor]) -> list[Tensor]:
    """The rows of x, one table after the other, in the tables' shapes."""
    parts = x.split([table.numel() for table in tables])
    return [part.unflatten(0, table.shape) for part, table in zip(parts, tables, strict=True)]


def _in_groups(x_NHK: Tensor, packing: Packing) -> list[Tensor]:
    """Rows (B, L, H, K) of each group: one gather for all, and its split."""
    if packing.order_P is not None:
        x_NHK = _reorder(x_NHK, packing.order_P, packing.place_N)
    return _split(x_NHK, [group.rows_BL for group in packing.groups])


def _reorder(x: Tensor, order_P: Tensor, inverse_N: Tensor) -> Tensor:
    """x[order_P]. inverse_N: where each row of x is found in it; where nothing but rows moves, the gradient is a
    gather."""
    if len(inverse_N) != len(order_P):
        return x[order_P]
    return _Reorder.apply(x, order_P, inverse_N)


class _Reorder(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, order_N: Tensor, inverse_N: Tensor) -> Tensor:
        ctx.save_for_backward(inverse_N)
        return x.index_select(0, order_N)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient.index_select(0, ctx.saved_tensors[0]), None, None
