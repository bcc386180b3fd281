"""The ERNIE encoder: words in BERT, entities of a knowledge graph beside them (Zhang et al., ACL 2019, section 3).

N packed pieces of B windows, D model width, F intermediate width; E packed entities, H width of their vectors; M slots
of the entity stream, which are the [CLS] of each window and its entities: M = B + E.
The original (thunlp/ERNIE, code/knowledge_bert/modeling.py) carries an entity row for every piece and masks all but the
slots. Here there are only the slots, which computes the same: a piece without an entity gets the fusion's entity bias.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .attention import Attention
from .config import TransformerConfig
from .int8 import multiply_with
from .layer import FEED_FORWARD_ROWS, Layer, Layers
from .linear import Linear, activate
from .luke import Encoder, Plan, Windows, WordEmbeddings, first_rows, plan_words
from .packing import Packing, pack
from .places import PassPlaces
from .recompute import recomputed
from .transfer import to_device

_KINDS = ("sim", "mix", "norm")
_FUSIONS = ("code", "paper")
WORD_FAMILIES = ("bert", "mpnet", "electra")
SLOT_WASTE = 1.0  # padding of a call's slots that is tolerated, as a share of the real ones: they are few and narrow


@dataclass(frozen=True)
class ErnieConfig(TransformerConfig):
    """Defaults are those of the released ERNIE base (BERT base, uncased)."""

    _: KW_ONLY
    token_types: int = 2
    entity_size: int = 100  # width of an entity's vector
    entity_heads: int = 4
    # Of each layer: "sim", words alone; "mix", fusion without attention of entities; "norm", both. Further layers are
    # "sim".
    layer_kinds: tuple[str, ...] = ()
    family: str = "bert"  # of the words: see `ernie_families`
    embedding_size: int | None = None  # of ELECTRA's words before they are projected; None: hidden_size
    # "code": the fusion is a feed-forward layer with residuals and LayerNorms; "paper": its activations are the layer's
    # outputs (section 3.3). The two differ, and the released weights want the code's.
    fusion: str = "code"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_heads("entity_size", "entity_heads")
        self._check_choice("fusion", _FUSIONS)
        self._check_choice("family", WORD_FAMILIES)
        kinds = tuple(self.layer_kinds)
        if wrong := [(i, kind) for i, kind in enumerate(kinds) if kind not in _KINDS]:
            raise ValueError(f"layer_kinds must be of {_KINDS}, but that of layer {wrong[0][0]} is {wrong[0][1]!r}.")
        if len(kinds) > self.num_layers:
            raise ValueError(
                f"layer_kinds must name at most the {self.num_layers} layers that there are, but it names {len(kinds)}."
            )
        object.__setattr__(self, "layer_kinds", kinds + ("sim",) * (self.num_layers - len(kinds)))

    def _of_layers(self, layers: int) -> dict[str, Any]:
        """Raises ValueError where none of these layers reads entities."""
        fusing = [i for i, kind in enumerate(self.layer_kinds) if kind != "sim"]
        if fusing and fusing[0] >= layers:
            raise ValueError(
                f"layers must be at least {fusing[0] + 1}: those before read no entities (layer_kinds are "
                f"{list(self.layer_kinds)}), but it is {layers}."
            )
        return {"layer_kinds": self.layer_kinds[:layers]}

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON has them; those of further families where it is one."""
        data = {**asdict(self), "layer_kinds": list(self.layer_kinds)}
        return {k: x for k, x in data.items() if self.family != "bert" or k not in ("family", "embedding_size")}

    @property
    def embedding_width(self) -> int:
        """Width of words before the first layer's: ELECTRA's may be narrower than its layers."""
        return self.embedding_size or self.hidden_size


def default_layer_kinds(num_layers: int) -> tuple[str, ...]:
    """The released ERNIE base's 5 "sim", 1 "mix" and 6 "norm" for 12 layers, and as near for other depths."""
    n_sim = (num_layers - 1) // 2
    return ("sim",) * n_sim + ("mix",) + ("norm",) * (num_layers - n_sim - 1)


@dataclass(frozen=True)
class Knowledge:
    """Entities of B windows, packed in the order of the windows.

    vectors_EH: of the knowledge graph's embeddings; at_E: the piece of each in its window, from 1 ([CLS] is 0, and
    takes part without an entity), each piece at most once; counts: entities of each window; slots: made by the encoder
    where they are None; whoever gives them can send them to the device with the places.
    """

    vectors_EH: Tensor
    at_E: Tensor
    counts: Sequence[int]
    slots: "Slots | None" = None


@dataclass(frozen=True)
class Slots:
    """Where the entity stream runs. rows_M: the slots' pieces, as rows of the packed words, ascending; place_E: the
    slot of each entity; packing: of the slots; parts: rows of words, with their slots, that are fused at once."""

    rows_M: Tensor
    place_E: Tensor
    packing: Packing
    parts: tuple[tuple[slice, slice], ...]


@dataclass(frozen=True)
class _Starts:
    """The packed row of the first piece of each window, and of each entity's window; the packing of the slots; how many
    pieces there are; on what device all of it shall be."""

    rows_B: Tensor
    rows_E: Tensor
    packing: Packing
    pieces: int
    device: torch.device


def place_slots(windows: Windows, knowledge: Knowledge, *, device: torch.device | None = None) -> Slots:
    """The slots, on the side of the places: what is made on the host can be sent with these (see `to_device`).

    device: where they shall be; None: where the places are. Raises ValueError where counts and lengths do not fit, or,
    on the host, a place is none of its window.
    """
    here = knowledge.at_E.device
    return _place(to_device(_find_starts(windows, knowledge, device or here), here), knowledge.at_E)


def _find_starts(windows: Windows, knowledge: Knowledge, device: torch.device) -> _Starts:
    lengths, counts, at_E = list(windows.lengths), list(knowledge.counts), knowledge.at_E
    if len(lengths) != len(counts) or sum(counts) != len(at_E):
        raise ValueError(
            f"Expected the entities of {len(lengths)} windows, but counts are given for {len(counts)}, with "
            f"{sum(counts)} entities in all, and {len(at_E)} places."
        )
    rows_B, window_E = first_rows(lengths), torch.from_numpy(np.repeat(np.arange(len(counts)), counts))
    if at_E.device.type == "cpu":
        _check_places(at_E, window_E, lengths)
    packing = pack([count + 1 for count in counts], device=device, waste=SLOT_WASTE)
    return _Starts(rows_B, rows_B[window_E], packing, sum(lengths), device)


def _place(starts: _Starts, at_E: Tensor) -> Slots:
    rows_M, order_M = torch.cat([starts.rows_B, starts.rows_E + at_E]).sort()
    place_M = torch.empty_like(order_M)
    place_M[order_M] = torch.arange(len(order_M), device=at_E.device)
    place_E = place_M[len(starts.rows_B) :]
    return Slots(rows_M, place_E, starts.packing, _parts(rows_M, starts.pieces, starts.device))


def _check_places(at_E: Tensor, window_E: Tensor, lengths: Sequence[int]) -> None:
    length_E = torch.tensor(lengths, dtype=torch.long, device="cpu")[window_E]
    wrong_E = (at_E < 1) | (at_E >= length_E)
    pairs, again = torch.stack([window_E, at_E], 1).unique(dim=0, return_counts=True)
    if wrong_E.any():
        i = int(wrong_E.nonzero()[0])
        raise ValueError(
            f"Entity {i} must be at a piece from 1 to {int(length_E[i]) - 1} of window {int(window_E[i])}, but it is "
            f"at {int(at_E[i])}. [CLS], piece 0, takes no entity."
        )
    if len(pairs) < len(at_E):
        window, at = pairs[int((again > 1).nonzero()[0])].tolist()
        raise ValueError(
            f"Each piece takes one entity, but piece {at} of window {window} has more. Choose one of them."
        )


def _parts(rows_M: Tensor, n_words: int, device: torch.device) -> tuple[tuple[slice, slice], ...]:
    if device.type != "cpu" or torch.is_grad_enabled() or n_words <= FEED_FORWARD_ROWS:
        return ((slice(None), slice(None)),)
    edges = [*range(0, n_words, FEED_FORWARD_ROWS), n_words]
    slots = torch.searchsorted(rows_M, torch.tensor(edges, device="cpu")).tolist()
    return tuple((slice(*edges[i : i + 2]), slice(*slots[i : i + 2])) for i in range(len(edges) - 1))


class Aggregator(Layer):
    """A layer whose feed-forward part reads and writes both streams (section 3.3); "norm" layers also let the entities
    of a window see one another first, "mix" layers do not (the original's BertLayer and BertLayerMix)."""

    def __init__(self, config: ErnieConfig, *, kind: str):
        super().__init__(config, entity_aware=False)
        self.fusion = config.fusion
        self.entity_attention: Attention | None = None
        if kind == "norm":
            self.entity_attention = Attention(
                config.entity_size, config.entity_heads, entity_aware=False, dropout=config.attention_dropout
            )
            self.entity_attention_norm = nn.LayerNorm(config.entity_size, eps=config.norm_eps)
        self.entity_up = Linear(config.entity_size, config.intermediate_size)
        self.entity_down = Linear(config.intermediate_size, config.entity_size)
        if config.fusion == "code":
            self.entity_output_norm = nn.LayerNorm(config.entity_size, eps=config.norm_eps)
        else:
            del self.output_norm

    @recomputed
    def aggregate(
        self,
        words_ND: Tensor,
        entities_MH: Tensor,
        packing: Packing,
        slots: Slots,
        places: PassPlaces[Any] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """words_ND: (N, D); entities_MH: the slots' states (M, H). RETURNS: both, after the layer."""
        attended_ND, _, _ = self.attention.words_only(words_ND, packing, places)
        words_ND = self.attention_norm(words_ND + self.dropout(attended_ND))
        if self.entity_attention is not None:
            attended_MH, _, _ = self.entity_attention.words_only(entities_MH, slots.packing)
            entities_MH = self.entity_attention_norm(entities_MH + self.dropout(attended_MH))
        if len(slots.parts) == 1:
            return self._fuse(words_ND, entities_MH, slots.rows_M)
        fused = [
            self._fuse(words_ND[words], entities_MH[some], slots.rows_M[some] - words.start)
            for words, some in slots.parts
        ]
        words, entities = zip(*fused)
        return torch.cat(words), torch.cat(entities)

    def _fuse(self, words_ND: Tensor, entities_MH: Tensor, rows_M: Tensor) -> tuple[Tensor, Tensor]:
        # Every piece gets both biases, with or without an entity, as in the original.
        hidden_NF = multiply_with(self.up, words_ND, self.up.bias + self.entity_up.bias)
        hidden_NF.index_add_(0, rows_M, multiply_with(self.entity_up, entities_MH, None))
        hidden_NF = activate(hidden_NF, self.activation)
        words, entities = self.down(hidden_NF), self.entity_down(hidden_NF.index_select(0, rows_M))
        if self.fusion == "paper":
            return activate(words, self.activation), activate(entities, self.activation)
        words_ND = self.output_norm(words_ND + self.dropout(words))
        return words_ND, self.entity_output_norm(entities_MH + self.dropout(entities))


def run_layer(
    layer: Layer,
    words_ND: Tensor,
    entities_MH: Tensor,
    packing: Packing,
    slots: Slots,
    places: PassPlaces[Any] | None = None,
) -> tuple[Tensor, Tensor]:
    """Both streams after a layer of any kind; a "sim" layer leaves the slots as they are."""
    if isinstance(layer, Aggregator):
        return layer.aggregate(words_ND, entities_MH, packing, slots, places)
    return layer.words_only(words_ND, packing, places)[0], entities_MH


class ErnieEncoder(Encoder):
    """BERT's layers over words, the upper ones with the entities that stand at them (Zhang et al., section 3). Words of
    other families override how these are made, and what a pass knows of places (`ernie_families`)."""

    config: ErnieConfig

    def __init__(self, config: ErnieConfig):
        super().__init__()
        self.config = config
        self.words = self.make_words()
        self.layers = Layers(map(self.make_layer, config.layer_kinds))
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size)

    def make_words(self) -> WordEmbeddings:
        """The embeddings of words, which other families of words replace."""
        return WordEmbeddings(self.config)

    def make_layer(self, kind: str) -> Layer:
        """A layer by its kind: "sim" for words alone, an aggregator otherwise."""
        return Layer(self.config, entity_aware=False) if kind == "sim" else Aggregator(self.config, kind=kind)

    def find_places(self, positions_N: Tensor) -> PassPlaces[Any] | None:
        """For attention that asks where words are; None: it does not."""
        return None

    def forward(self, windows: Windows, knowledge: Knowledge) -> tuple[Tensor, Tensor]:
        """RETURNS: word states (N, D) and entity states (E, H) of the last layer, packed as the inputs are."""
        plan, slots = self._plan(windows, knowledge)
        packing = plan.packing
        words_ND = self.words(replace(windows, plan=plan))
        entities_MH = self.fill_slots(knowledge, slots).to(words_ND.dtype)
        places = self.find_places(plan.positions_N)
        for layer in self.layers:
            words_ND, entities_MH = run_layer(layer, words_ND, entities_MH, packing, slots, places)
        return words_ND, entities_MH.index_select(0, slots.place_E)

    def _plan(self, windows: Windows, knowledge: Knowledge) -> tuple[Plan, Slots]:
        plan, slots, device = windows.plan, knowledge.slots, windows.pieces_N.device
        if plan is None and slots is None:  # what both lack is sent at once
            starts = _find_starts(windows, knowledge, device)
            plan, starts = to_device((plan_words(windows.lengths, device=device), starts), device)
            return plan, _place(starts, knowledge.at_E)
        if plan is None:
            plan = to_device(plan_words(windows.lengths, device=device), device)
        return plan, place_slots(windows, knowledge) if slots is None else slots

    def word_states(self, windows: Windows) -> Tensor:
        """States of words where nothing is known of any entity: (N, D)."""
        words_ND: Tensor = self(windows, without_knowledge(windows, entity_size=self.config.entity_size))[0]
        return words_ND

    def fill_slots(self, knowledge: Knowledge, slots: Slots) -> Tensor:
        """The entity stream before the first layer (M, H): vectors of entities, zeros for [CLS]."""
        vectors_EH = knowledge.vectors_EH
        if vectors_EH.shape[1:] != (self.config.entity_size,):
            raise ValueError(
                f"This encoder takes entity vectors of {self.config.entity_size} numbers, but they have the shape "
                f"{tuple(vectors_EH.shape)}. Choose entity vectors of that size, or an encoder made for these."
            )
        entities_MH = vectors_EH.new_zeros(len(slots.rows_M), self.config.entity_size)
        return entities_MH.index_copy(0, slots.place_E, vectors_EH)

    def pool(self, words_ND: Tensor, lengths: Sequence[int]) -> Tensor:
        """tanh of a linear layer on each window's [CLS], the first of its pieces: (B, D)."""
        return self.pool_rows(words_ND, to_device(first_rows(lengths), words_ND.device))

    def pool_rows(self, words_ND: Tensor, first_B: Tensor) -> Tensor:
        """The same, where the rows of the [CLS] are given."""
        return torch.tanh(self.pooler(words_ND.index_select(0, first_B)))


def without_knowledge(windows: Windows, *, entity_size: int) -> Knowledge:
    """No entity in any window."""
    pieces_N = windows.pieces_N
    return Knowledge(pieces_N.new_zeros((0, entity_size), dtype=torch.float), pieces_N[:0], [0] * len(windows.lengths))
