"""Self-attention over words and entities, ordinary and entity-aware (LUKE, EMNLP 2020, section 3.2.2).

Token i of a window sees token j with the score (Q x_i) . (K x_j) / sqrt(head width), and becomes the sum of all V x_j,
weighed by the softmax of its scores. Entity-aware attention chooses Q by the kinds of the two tokens, one of w2w, w2e,
e2w and e2e; K and V are shared. `attend` is that formula.

It equals one ordinary attention over heads twice as wide: a word's query is [w2w; w2e], an entity's [e2w; e2e], a
word's key is [key; 0] and an entity's [0; key], with the scale of the narrow head. So one fused call does it
(`Attention.forward`), window by window or some at once (`attention_groups`); what is faster on a CPU is in
`attention_cpu`.

NW word tokens and NE entity tokens of a batch, packed; N = NW + NE; L tokens of a window, S tokens that see them; H
heads, K head width, D = H * K model width.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import attention_cpu as cpu
from .attention_cpu import KeysValues
from .attention_groups import attend_packed, attend_with_own
from .dropout import dropout
from .int8 import Inputs, quantize_once
from .linear import Linear
from .packing import EntityRows, Packing


def attend(
    to_words_SHK: Tensor, to_entities_SHK: Tensor, words: KeysValues, entities: KeysValues, *, rate: float = 0.0
) -> Tensor:
    """Tokens of one kind, by their two queries, see the words and the entities of one window: (S, D)."""
    to_words_HSL = torch.einsum("shk,lhk->hsl", to_words_SHK, words[0])
    to_entities_HSL = torch.einsum("shk,lhk->hsl", to_entities_SHK, entities[0])
    scores_HSL = torch.cat([to_words_HSL, to_entities_HSL], dim=-1) * to_words_SHK.shape[-1] ** -0.5
    values_LHK = torch.cat([words[1], entities[1]])
    weights_HSL = dropout(scores_HSL.softmax(-1).to(values_LHK.dtype), rate, rate > 0)
    return torch.einsum("hsl,lhk->shk", weights_HSL, values_LHK).flatten(1)


class Attention(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int, *, entity_aware: bool, dropout: float):
        super().__init__()
        self.num_heads = num_heads
        self.entity_aware = entity_aware
        self.dropout = dropout
        self.query = Linear(hidden_size, hidden_size)  # w2w; of all kinds where it is not entity-aware
        self.key = Linear(hidden_size, hidden_size)
        self.value = Linear(hidden_size, hidden_size)
        if entity_aware:
            self.w2e_query = Linear(hidden_size, hidden_size)
            self.e2w_query = Linear(hidden_size, hidden_size)
            self.e2e_query = Linear(hidden_size, hidden_size)
        self.output = Linear(hidden_size, hidden_size)

    def forward(self, words_ND: Tensor, entities_ED: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """Every token of a window sees every token of it (the paper's attention, mode "full").

        words_ND: (NW, D), entities_ED: (NE, D), packing: of word-and-entity windows (`pack_pairs`).
        RETURNS: (NW, D) and (NE, D), after the output projection.
        """
        from_words, from_entities = self._read(words_ND), self._read(entities_ED)
        words, entities = self._keys_values(from_words), self._keys_values(from_entities)
        if self.entity_aware and cpu.has_log_sums(words_ND):
            runs = packing.lengths, packing.more_lengths
            entities_out_ED = self._entities_in_parts(from_entities, words, entities, *runs)
            return self._words_in_parts(from_words, words, entities, *runs), entities_out_ED
        q_w, q_e = self._heads(self.query, from_words), self._entity_query(from_entities)
        k_w, k_e = words[0], entities[0]
        if self.entity_aware:
            width = k_w.shape[-1]
            q_w = torch.cat([q_w, self._heads(self.w2e_query, from_words)], -1)
            q_e = torch.cat([q_e, self._own_query(from_entities)], -1)
            k_w, k_e = F.pad(k_w, (0, width)), F.pad(k_e, (width, 0))
        v_NHK = torch.cat([words[1], entities[1]])
        out_ND = attend_packed(torch.cat([q_w, q_e]), torch.cat([k_w, k_e]), v_NHK, packing, rate=self._rate)
        out_ND = self._finish(out_ND)
        return out_ND[: len(words_ND)], out_ND[len(words_ND) :]

    def entities_last(self, words_ND: Tensor, entities_ED: Tensor, packing: Packing) -> Tensor:
        """`forward` for the entities alone, where nobody asks for the words any more (the last layer): (NE, D)."""
        if not (self.entity_aware and cpu.has_log_sums(words_ND)):
            return self.forward(words_ND, entities_ED, packing)[1]
        from_entities = self._read(entities_ED)
        words, entities = self._keys_values(self._read(words_ND)), self._keys_values(from_entities)
        return self._entities_in_parts(from_entities, words, entities, packing.lengths, packing.more_lengths)

    def words_only(self, words_ND: Tensor, packing: Packing) -> tuple[Tensor, Tensor, Tensor]:
        """Words see the words of their window.

        RETURNS: (NW, D) after the output projection, and the keys and values (NW, H, K) for `entities_only`.
        """
        from_words = self._read(words_ND)
        k_NHK, v_NHK = self._keys_values(from_words)
        out_ND = attend_packed(self._heads(self.query, from_words), k_NHK, v_NHK, packing, rate=self._rate)
        return self._finish(out_ND), k_NHK, v_NHK

    def entities_together(
        self, entities_ED: Tensor, k_NHK: Tensor, v_NHK: Tensor, lengths: Sequence[int], counts: Sequence[int]
    ) -> Tensor:
        """As `entities_only`, where all entities of a window see one another.

        lengths, counts: words and entities of each window, which are consecutive rows. RETURNS: (NE, D).
        """
        from_entities = self._read(entities_ED)
        words, entities = (k_NHK, v_NHK), self._keys_values(from_entities)
        if cpu.has_log_sums(entities_ED):
            return self._entities_in_parts(from_entities, words, entities, lengths, counts)
        queries = (self._entity_query(from_entities), self._own_query(from_entities))
        windows = zip(*(x.split(list(lengths)) for x in words), *(x.split(list(counts)) for x in (*queries, *entities)))
        attended = [
            attend(to_words, to_entities, (k_w, v_w), (k_e, v_e), rate=self._rate)
            for k_w, v_w, to_words, to_entities, k_e, v_e in windows
        ]
        return self._finish(torch.cat(attended) if attended else entities_ED)

    def entities_only(
        self, entities_ED: Tensor, k_NHK: Tensor, v_NHK: Tensor, rows: EntityRows, *, group_size: int = 1
    ) -> Tensor:
        """Each entity sees the words of its window and its own group (mode "one_way"; as PL-Marker's levitated
        markers).

        k_NHK, v_NHK: keys and values of the words (NW, H, K), from `words_only`.
        rows: which entities the groups of windows have (`entity_rows`).
        group_size: so many consecutive entities (G) see one another; 1: an entity sees itself alone.
        RETURNS: (NE, D) after the output projection.
        """
        from_entities = self._read(entities_ED)
        own_EHG, own_v_EHGK = self._own_group(from_entities, group_size)
        q_EHK = self._entity_query(from_entities)
        return self._finish(attend_with_own(q_EHK, (k_NHK, v_NHK), own_EHG, own_v_EHGK, rows, rate=self._rate))

    def _own_group(self, from_entities: Inputs, size: int) -> tuple[Tensor, Tensor]:
        """Scaled scores of each entity for the G members of its group (NE, H, G), and their values (NE, H, G, K)."""
        heads = (self._own_query(from_entities), *self._keys_values(from_entities))
        q_nGHK, k_nGHK, v_nGHK = (x.unflatten(0, (-1, size)) for x in heads)
        scores_EHG = torch.einsum("nghk,nohk->ngho", q_nGHK, k_nGHK).flatten(0, 1) * q_nGHK.shape[-1] ** -0.5
        values_EHGK = v_nGHK.transpose(1, 2)[:, None].expand(-1, size, -1, -1, -1).flatten(0, 1)
        return scores_EHG, values_EHGK

    def _words_in_parts(
        self,
        from_words: Inputs,
        words: KeysValues,
        entities: KeysValues,
        lengths: Sequence[int],
        counts: Sequence[int],
    ) -> Tensor:
        to_words = self._heads(self.query, from_words)
        to_entities = cpu.query_or_fold(self.w2e_query, from_words, entities[0], counts)
        return self._finish(cpu.attend_in_parts(to_words, to_entities, words, entities, lengths, lengths, counts))

    def _entities_in_parts(
        self,
        from_entities: Inputs,
        words: KeysValues,
        entities: KeysValues,
        lengths: Sequence[int],
        counts: Sequence[int],
    ) -> Tensor:
        to_words, to_entities = self._entity_query(from_entities), self._own_query(from_entities)
        return self._finish(cpu.attend_in_parts(to_words, to_entities, words, entities, counts, lengths, counts))

    def _read(self, x_ND: Tensor) -> Inputs:
        """What queries, keys and values are computed from: quantised once for all of them, where they are int8, and
        without gradients cast once where autocast would do it for each."""
        kind = x_ND.device.type
        if torch.is_autocast_enabled(kind) and not torch.is_grad_enabled():
            x_ND = x_ND.to(torch.get_autocast_dtype(kind))
        return quantize_once(self.key, x_ND)

    def _entity_query(self, from_entities: Inputs) -> Tensor:
        """What entities ask words."""
        return self._heads(self.e2w_query if self.entity_aware else self.query, from_entities)

    def _own_query(self, from_entities: Inputs) -> Tensor:
        """What entities ask entities."""
        return self._heads(self.e2e_query if self.entity_aware else self.query, from_entities)

    def _keys_values(self, x: Inputs) -> KeysValues:
        return self._heads(self.key, x), self._heads(self.value, x)

    def _heads(self, linear: nn.Linear, x: Inputs) -> Tensor:
        x_NHK: Tensor = linear(x).unflatten(-1, (self.num_heads, -1))
        return x_NHK

    def _finish(self, x_ND: Tensor) -> Tensor:
        out_ND: Tensor = self.output(x_ND)
        return out_ND

    @property
    def _rate(self) -> float:
        return self.dropout if self.training else 0.0
