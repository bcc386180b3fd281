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

Families whose attention asks where tokens are get `PassPlaces` (see `places`); they override `turn` and `place_scores`.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import attention_cpu as cpu
from .attention_cpu import KeysValues
from .attention_groups import MoreScores, attend_packed, attend_with_own
from .dropout import dropout
from .int8 import Inputs, quantize_once
from .linear import Linear
from .packing import EntityRows, Packing
from .places import PassPlaces, Spots


def attend(
    to_words_SHK: Tensor,
    to_entities_SHK: Tensor,
    words: KeysValues,
    entities: KeysValues,
    *,
    rate: float = 0.0,
    added_HSL: Tensor | None = None,
) -> Tensor:
    """Tokens of one kind, by their two queries, see the words and the entities of one window: (S, D). added_HSL: to the
    scaled scores."""
    to_words_HSL = torch.einsum("shk,lhk->hsl", to_words_SHK, words[0])
    to_entities_HSL = torch.einsum("shk,lhk->hsl", to_entities_SHK, entities[0])
    scores_HSL = torch.cat([to_words_HSL, to_entities_HSL], dim=-1) * to_words_SHK.shape[-1] ** -0.5
    if added_HSL is not None:
        scores_HSL = scores_HSL + added_HSL.to(scores_HSL.dtype)
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

    def turn(self, x_NHK: Tensor, spots: Spots | None) -> Tensor:
        """Queries or keys of packed tokens by where these are, as rotary positions do. spots: None in encoders that
        have no `PassPlaces`."""
        return x_NHK

    def place_scores(self, q_BHSK: Tensor, k_BHLK: Tensor, relation: Any) -> Tensor | None:
        """What is added to the scaled scores for where the tokens are: (B, H, S, L), or what broadcasts to it. Where
        padding is it must be finite. relation: what the family's encoder makes of their spots. None: nothing."""
        return None

    def forward(
        self, words_ND: Tensor, entities_ED: Tensor, packing: Packing, places: PassPlaces[Any] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Every token of a window sees every token of it (the paper's attention, mode "full").

        words_ND: (NW, D), entities_ED: (NE, D), packing: of word-and-entity windows (`pack_pairs`).
        RETURNS: (NW, D) and (NE, D), after the output projection.
        """
        from_words, from_entities = self._read(words_ND), self._read(entities_ED)
        at_words, at_entities = (None, None) if places is None else (places.words, places.entities)
        words, entities = self._keys_values(from_words, at_words), self._keys_values(from_entities, at_entities)
        if self._in_parts(words_ND, places):
            runs = packing.lengths, packing.more_lengths
            entities_out_ED = self._entities_in_parts(from_entities, words, entities, *runs)
            return self._words_in_parts(from_words, words, entities, *runs), entities_out_ED
        q_w, q_e = self._query(self.query, from_words, at_words), self._entity_query(from_entities, at_entities)
        k_w, k_e = words[0], entities[0]
        if self.entity_aware:
            width = k_w.shape[-1]
            q_w = torch.cat([q_w, self._query(self.w2e_query, from_words, at_words)], -1)
            q_e = torch.cat([q_e, self._own_query(from_entities, at_entities)], -1)
            k_w, k_e = F.pad(k_w, (0, width)), F.pad(k_e, (width, 0))
        q_NHK, k_NHK, v_NHK = torch.cat([q_w, q_e]), torch.cat([k_w, k_e]), torch.cat([words[1], entities[1]])
        more = None if places is None else self._more_among_all(packing, places)
        out_ND = self._finish(attend_packed(q_NHK, k_NHK, v_NHK, packing, rate=self._rate, more=more))
        return out_ND[: len(words_ND)], out_ND[len(words_ND) :]

    def entities_last(
        self, words_ND: Tensor, entities_ED: Tensor, packing: Packing, places: PassPlaces[Any] | None = None
    ) -> Tensor:
        """`forward` for the entities alone, where nobody asks for the words any more (the last layer): (NE, D)."""
        if not self._in_parts(words_ND, places):
            return self.forward(words_ND, entities_ED, packing, places)[1]
        from_entities = self._read(entities_ED)
        words, entities = self._keys_values(self._read(words_ND)), self._keys_values(from_entities)
        return self._entities_in_parts(from_entities, words, entities, packing.lengths, packing.more_lengths)

    def words_only(
        self, words_ND: Tensor, packing: Packing, places: PassPlaces[Any] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Words see the words of their window.

        RETURNS: (NW, D) after the output projection, and the keys and values (NW, H, K) for `entities_only`.
        """
        from_words, spots = self._read(words_ND), None if places is None else places.words
        k_NHK, v_NHK = self._keys_values(from_words, spots)
        more = None if places is None else self._more(places.among_words(packing))
        q_NHK = self._query(self.query, from_words, spots)
        out_ND = attend_packed(q_NHK, k_NHK, v_NHK, packing, rate=self._rate, more=more)
        return self._finish(out_ND), k_NHK, v_NHK

    def word_keys(self, words_ND: Tensor, places: PassPlaces[Any] | None = None) -> tuple[Tensor, Tensor]:
        """The keys and values of `words_only` alone."""
        return self._keys_values(self._read(words_ND), None if places is None else places.words)

    def entities_together(
        self,
        entities_ED: Tensor,
        k_NHK: Tensor,
        v_NHK: Tensor,
        lengths: Sequence[int],
        counts: Sequence[int],
        places: PassPlaces[Any] | None = None,
    ) -> Tensor:
        """As `entities_only`, where all entities of a window see one another.

        lengths, counts: words and entities of each window, which are consecutive rows. RETURNS: (NE, D).
        """
        from_entities, spots = self._read(entities_ED), None if places is None else places.entities
        words, entities = (k_NHK, v_NHK), self._keys_values(from_entities, spots)
        if places is None and cpu.has_log_sums(entities_ED):
            return self._entities_in_parts(from_entities, words, entities, lengths, counts)
        queries = (self._entity_query(from_entities, spots), self._own_query(from_entities, spots))
        windows = zip(*(x.split(list(lengths)) for x in words), *(x.split(list(counts)) for x in (*queries, *entities)))
        relations = None if places is None else places.in_windows(lengths, counts)
        attended = []
        for i, (k_w, v_w, to_words, to_entities, k_e, v_e) in enumerate(windows):
            both = None if relations is None else relations[i]
            added = None if both is None else self._scores_of_window(to_words, to_entities, k_w, k_e, both)
            attended.append(attend(to_words, to_entities, (k_w, v_w), (k_e, v_e), rate=self._rate, added_HSL=added))
        return self._finish(torch.cat(attended) if attended else entities_ED)

    def entities_only(
        self,
        entities_ED: Tensor,
        k_NHK: Tensor,
        v_NHK: Tensor,
        rows: EntityRows,
        *,
        group_size: int = 1,
        places: PassPlaces[Any] | None = None,
    ) -> Tensor:
        """Each entity sees the words of its window and its own group (mode "one_way"; as PL-Marker's levitated
        markers).

        k_NHK, v_NHK: keys and values of the words (NW, H, K), from `words_only`.
        rows: which entities the groups of windows have (`entity_rows`).
        group_size: so many consecutive entities (G) see one another; 1: an entity sees itself alone.
        RETURNS: (NE, D) after the output projection.
        """
        from_entities, spots = self._read(entities_ED), None if places is None else places.entities
        own_EHG, own_v_EHGK = self._own_group(from_entities, group_size, places)
        q_EHK = self._entity_query(from_entities, spots)
        more = None if places is None else self._more(places.to_words(rows))
        words = (k_NHK, v_NHK)
        return self._finish(attend_with_own(q_EHK, words, own_EHG, own_v_EHGK, rows, rate=self._rate, more=more))

    def _own_group(self, from_entities: Inputs, size: int, places: PassPlaces[Any] | None) -> tuple[Tensor, Tensor]:
        """Scaled scores of each entity for the G members of its group (NE, H, G), and their values (NE, H, G, K)."""
        spots = None if places is None else places.entities
        heads = (self._own_query(from_entities, spots), *self._keys_values(from_entities, spots))
        q_nGHK, k_nGHK, v_nGHK = (x.unflatten(0, (-1, size)) for x in heads)
        scores_nGHG = torch.einsum("nghk,nohk->ngho", q_nGHK, k_nGHK) * q_nGHK.shape[-1] ** -0.5
        if places is not None:
            added = self.place_scores(q_nGHK.transpose(1, 2), k_nGHK.transpose(1, 2), places.in_groups(size))
            scores_nGHG = scores_nGHG if added is None else scores_nGHG + added.transpose(1, 2).to(scores_nGHG.dtype)
        values_EHGK = v_nGHK.transpose(1, 2)[:, None].expand(-1, size, -1, -1, -1).flatten(0, 1)
        return scores_nGHG.flatten(0, 1), values_EHGK

    def _more(self, relations: Sequence[Any]) -> MoreScores:
        """relations: of each group."""
        return lambda i, q_BHSK, k_BHLK: self.place_scores(q_BHSK, k_BHLK, relations[i])

    def _more_among_all(self, packing: Packing, places: PassPlaces[Any]) -> MoreScores:
        """Of words and entities, whose heads are twice as wide where the attention is entity-aware."""
        relations = places.among_all(packing)
        if not self.entity_aware:
            return self._more(relations)
        entities = places.entity_keys(packing)

        def more(i: int, q_BHLK: Tensor, k_BHLK: Tensor) -> Tensor | None:
            to_words, to_entities = q_BHLK.chunk(2, -1)
            one, other = k_BHLK.chunk(2, -1)
            keys = one + other  # one of the two is zero
            added = [self.place_scores(q, keys, relations[i]) for q in (to_words, to_entities)]
            if added[0] is None or added[1] is None or added[0] is added[1]:
                return added[0]
            return torch.where(entities[i][:, None, None], added[1], added[0])

        return more

    def _scores_of_window(
        self, to_words: Tensor, to_entities: Tensor, k_w: Tensor, k_e: Tensor, relations: tuple[Any, Any]
    ) -> Tensor | None:
        """(H, S, L words and entities)."""
        pairs = ((to_words, k_w), (to_entities, k_e))
        heads = [tuple(x.transpose(0, 1)[None] for x in pair) for pair in pairs]
        added = [self.place_scores(q, k, relation) for (q, k), relation in zip(heads, relations, strict=True)]
        return None if added[0] is None or added[1] is None else torch.cat([added[0][0], added[1][0]], -1)

    def _in_parts(self, words_ND: Tensor, places: PassPlaces[Any] | None) -> bool:
        """Whether words and entities are attended apart, and joined: see `attention_cpu`."""
        return places is None and self.entity_aware and cpu.has_log_sums(words_ND)

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

    def _query(self, linear: nn.Linear, x: Inputs, spots: Spots | None) -> Tensor:
        return self.turn(self._heads(linear, x), spots)

    def _entity_query(self, from_entities: Inputs, spots: Spots | None = None) -> Tensor:
        """What entities ask words."""
        return self._query(self.e2w_query if self.entity_aware else self.query, from_entities, spots)

    def _own_query(self, from_entities: Inputs, spots: Spots | None = None) -> Tensor:
        """What entities ask entities."""
        return self._query(self.e2e_query if self.entity_aware else self.query, from_entities, spots)

    def _keys_values(self, x: Inputs, spots: Spots | None = None) -> KeysValues:
        return self.turn(self._heads(self.key, x), spots), self._heads(self.value, x)

    def _heads(self, linear: nn.Linear, x: Inputs) -> Tensor:
        x_NHK: Tensor = linear(x).unflatten(-1, (self.num_heads, -1))
        return x_NHK

    def _finish(self, x_ND: Tensor) -> Tensor:
        out_ND: Tensor = self.output(x_ND)
        return out_ND

    @property
    def _rate(self) -> float:
        return self.dropout if self.training else 0.0
