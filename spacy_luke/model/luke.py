"""The LUKE encoder: words and entities are tokens of one transformer (Yamada et al., EMNLP 2020, section 3).

N packed tokens of a batch (NW words, NE entities), B windows, D model width, F intermediate width.
The paper's model is `LukeEncoder.forward`; `encode_words` and `encode_entities` are the same layers used one way:
words do not see entities, so one pass over the words serves any number of entities.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from ..text.cases import CASES
from .config import LukeConfig, TransformerConfig
from .dropout import Dropout
from .layer import Layer, Layers
from .mention_means import mean_pieces
from .packing import EntityRows, Packing, entity_rows, pack, pack_pairs
from .places import PassPlaces
from .transfer import to_device


@dataclass(frozen=True)
class Plan:
    """What a pass takes of the windows' lengths alone. positions_N: of each piece in its window, from 0; packing: which
    windows share an attention call, with their entities where words see these."""

    positions_N: Tensor
    packing: Packing


@dataclass(frozen=True)
class Windows:
    """Pieces of B windows, packed. pieces_N: piece ids, [CLS] and [SEP] included; lengths: pieces of each window; plan:
    made by the encoder where it is None; whoever gives it can send it to the device with the pieces."""

    pieces_N: Tensor
    lengths: Sequence[int]
    types_N: Tensor | None = None  # token types; zeros where None
    plan: Plan | None = None


@dataclass(frozen=True)
class Mentions:
    """Entity tokens of B windows, packed in the order of the windows.

    entities_E: rows of the entity table; first_E, last_E: first and last piece of the mention, counted in its window
    with [CLS] as 0, both inclusive; counts: mentions of each window. vectors_EV: vectors (E, entity_size) that stand in
    place of the table's rows where entities_E is -1, so that the module need not hold millions of entities. rows: which
    share an attention call, where words do not see them; made by the encoder where it is None.
    """

    entities_E: Tensor
    first_E: Tensor
    last_E: Tensor
    counts: Sequence[int]
    types_E: Tensor | None = None
    vectors_EV: Tensor | None = None
    rows: EntityRows | None = None


@dataclass(frozen=True)
class WordStates:
    """What one pass over the words leaves: states (NW, D), of none where nobody reads them, and keys and values
    (NW, H, K) of each layer. rows_ND: the pieces' vectors, for an encoder whose [MASK] entities begin with them."""

    states_ND: Tensor
    keys: list[Tensor]
    values: list[Tensor]
    packing: Packing
    rows_ND: Tensor | None = None


def find_positions(lengths: Sequence[int]) -> NDArray[np.int64]:
    """Of each piece in its window, from 0: (N,)."""
    sizes_B = np.array(lengths, dtype=np.int64)
    return np.arange(sizes_B.sum()) - np.repeat(np.cumsum(sizes_B) - sizes_B, sizes_B)


def first_rows(lengths: Sequence[int]) -> Tensor:
    """The packed row of each window's first piece, on the host: (B,)."""
    sizes_B = np.array(lengths, dtype=np.int64)
    return torch.from_numpy(np.cumsum(sizes_B) - sizes_B)


def plan_words(lengths: Sequence[int], *, device: torch.device) -> Plan:
    """Of windows whose words see words alone, made on the host (see `to_device`). device: where it shall be."""
    return Plan(torch.from_numpy(find_positions(lengths)), pack(lengths, device=device))


def plan_pairs(lengths: Sequence[int], counts: Sequence[int], *, device: torch.device) -> Plan:
    """The same of windows whose words and entities see one another. counts: entities of each window."""
    return Plan(torch.from_numpy(find_positions(lengths)), pack_pairs(lengths, counts, device=device))


def make_windows(
    pieces_N: NDArray[np.int64],
    lengths: Sequence[int],
    types_N: NDArray[np.int64] | None = None,
    *,
    device: torch.device,
    counts: Sequence[int] | None = None,
) -> Windows:
    """Windows with their plan, made on the host (see `to_device`). device: where they shall be; counts: entities of
    each window, where words see these."""
    plan = plan_words(lengths, device=device) if counts is None else plan_pairs(lengths, counts, device=device)
    return Windows(torch.from_numpy(pieces_N), lengths, None if types_N is None else torch.from_numpy(types_N), plan)


def planned(windows: Windows, make: Callable[[], Plan]) -> Plan:
    """The windows' plan, on their device."""
    return to_device(make(), windows.pieces_N.device) if windows.plan is None else windows.plan


class WordEmbeddings(nn.Module):
    """case: vectors of the cases of words, of an encoder whose rows of pieces say the case too (see `text.cases`)."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        width = config.embedding_width
        self.piece = nn.Embedding(config.vocab_size, width)
        self.case = nn.Embedding(len(CASES), width) if config.has_cases else None
        self.vocab_size = config.vocab_size
        self.position = nn.Embedding(config.max_positions, width)
        self.token_type = nn.Embedding(config.token_types, width)
        self.norm = nn.LayerNorm(width, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.position_offset = config.position_offset

    def look_up(self, windows: Windows) -> Tensor:
        """The pieces' vectors alone, with those of their cases: (NW, D)."""
        if self.case is None:
            rows_ND: Tensor = self.piece(windows.pieces_N)
            return rows_ND
        case_N = torch.div(windows.pieces_N, self.vocab_size, rounding_mode="floor")
        rows_ND = self.piece(windows.pieces_N - case_N * self.vocab_size) + self.case(case_N)
        return rows_ND

    def forward(self, windows: Windows, rows_ND: Tensor | None = None) -> Tensor:
        """rows_ND: what `look_up` gives, where that was asked already. RETURNS: (NW, D)."""
        types_N = torch.zeros_like(windows.pieces_N) if windows.types_N is None else windows.types_N
        x_ND: Tensor = self.add_positions(windows, rows_ND) + self.token_type(types_N)
        x_ND = self.dropout(self.norm(x_ND))
        return x_ND

    def add_positions(self, windows: Windows, rows_ND: Tensor | None) -> Tensor:
        """The vectors of pieces and of their positions, added."""
        rows_ND = self.look_up(windows) if rows_ND is None else rows_ND
        plan = windows.plan
        if plan is None:
            positions_N = torch.from_numpy(find_positions(windows.lengths)).to(windows.pieces_N.device)
        else:
            positions_N = plan.positions_N
        x_ND: Tensor = rows_ND + self.position(positions_N + self.position_offset)
        return x_ND


class EntityEmbeddings(nn.Module):
    """LayerNorm(dense(entity) + mean of the mention's rows of an own position table + type) (section 3.1).

    mask_rows: of the table, whose entities begin with the mean of their mention's pieces too, where the config says so.
    """

    def __init__(self, config: LukeConfig, mask_rows: Sequence[int] = ()):
        super().__init__()
        assert mask_rows or not config.mention_start, "the rows of [MASK] must be known"
        self.mask_rows = tuple(mask_rows) if config.mention_start else ()
        self.table = nn.Embedding(config.entity_vocab_size, config.entity_size)
        width = config.embedding_width
        if config.entity_size != width:
            self.dense: nn.Module = nn.Linear(config.entity_size, width, bias=False)
        else:
            self.dense = nn.Identity()
        self.position = nn.Embedding(config.max_positions, width)
        self.token_type = nn.Embedding(config.token_types, width)
        self.norm = nn.LayerNorm(width, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(self, mentions: Mentions, means_ED: Tensor | None = None) -> Tensor:
        """means_ED: of the mentions' pieces; None where no entity begins with them. RETURNS: (NE, D)."""
        types_E = torch.zeros_like(mentions.entities_E) if mentions.types_E is None else mentions.types_E
        x_ED: Tensor = self.look_up(mentions, means_ED) + self.mean_positions(mentions.first_E, mentions.last_E)
        x_ED = self.dropout(self.norm(x_ED + self.token_type(types_E)))
        return x_ED

    def look_up(self, mentions: Mentions, means_ED: Tensor | None) -> Tensor:
        """What the entities are, without where: (NE, D)."""
        x_ED: Tensor
        if mentions.vectors_EV is None:
            # A table of special rows alone stands for many mentions ([MASK] for every span): each is projected once.
            if len(self.table.weight) <= len(mentions.entities_E):
                x_ED = self.dense(self.table.weight)[mentions.entities_E]
            else:
                x_ED = self.dense(self.table(mentions.entities_E))
        else:
            given_E = (mentions.entities_E < 0)[:, None]
            rows_EV = self.table(mentions.entities_E.clamp(min=0))
            x_ED = self.dense(torch.where(given_E, mentions.vectors_EV.to(rows_EV.dtype), rows_EV))
        if means_ED is not None:
            masked_ER = torch.stack([mentions.entities_E == row for row in self.mask_rows], 1)
            x_ED = x_ED + means_ED * masked_ER.any(1, keepdim=True)
        return x_ED

    def mean_positions(self, first_E: Tensor, last_E: Tensor) -> Tensor:
        """Mean of the position rows first..last, as a difference of prefix sums: (NE, D)."""
        sums_PD = F.pad(self.position.weight.float().cumsum(0), (0, 0, 1, 0))
        return (sums_PD[last_E + 1] - sums_PD[first_E]) / (last_E + 1 - first_E)[:, None]


class Encoder(nn.Module):
    """What encoders of all families have."""

    config: TransformerConfig

    def word_states(self, windows: Windows) -> Tensor:
        """States of words where nothing is known of any entity: (NW, D)."""
        raise NotImplementedError


class LukeEncoder(Encoder):
    """Embeddings and layers of words and entities. `forward` is the paper's model. mask_rows: of [MASK] and [MASK2] in
    the entity table; needed where the config has mention_start.

    Other families (see `families`) override how these are made, what a pass knows of places, and the end of it.
    """

    config: LukeConfig

    def __init__(self, config: LukeConfig, mask_rows: Sequence[int] = ()):
        super().__init__()
        self.config = config
        self.words, self.entities = self.make_embeddings(mask_rows)
        self.layers = Layers(self.make_layer(i) for i in range(config.num_layers))

    def make_embeddings(self, mask_rows: Sequence[int]) -> tuple[WordEmbeddings, EntityEmbeddings]:
        """Of words, and of entities."""
        return WordEmbeddings(self.config), EntityEmbeddings(self.config, mask_rows)

    def make_layer(self, number: int) -> Layer:
        """number: from 0."""
        return Layer(self.config, entity_aware=self.config.entity_aware)

    def find_places(self, positions_N: Tensor, mentions: Mentions | None) -> PassPlaces[Any] | None:
        """For attention that asks where tokens are. positions_N: of each word in its window; empty where only entities
        are encoded. None: it does not ask."""
        return None

    def finish(self, x_ND: Tensor) -> Tensor:
        """The states after the last layer, of words or of entities."""
        return x_ND

    def forward(self, windows: Windows, mentions: Mentions) -> tuple[Tensor, Tensor]:
        """The paper's encoder: all tokens of a window see one another.

        RETURNS: word states (NW, D) and entity states (NE, D), packed as the inputs are.
        """
        plan = self._plan_pairs(windows, mentions)
        places = self.find_places(plan.positions_N, mentions)
        words_ND, entities_ED = self._run(replace(windows, plan=plan), mentions, places, self.layers)
        return self.finish(words_ND), self.finish(entities_ED)

    def entity_states(self, windows: Windows, mentions: Mentions) -> Tensor:
        """The entity states of `forward` (NE, D), without the last layer's work for words."""
        *layers, last = self.layers
        plan = self._plan_pairs(windows, mentions)
        places = self.find_places(plan.positions_N, mentions)
        words_ND, entities_ED = self._run(replace(windows, plan=plan), mentions, places, layers)
        return self.finish(last.entities_last(words_ND, entities_ED, plan.packing, places))

    def _plan_pairs(self, windows: Windows, mentions: Mentions) -> Plan:
        device = windows.pieces_N.device
        return planned(windows, lambda: plan_pairs(windows.lengths, mentions.counts, device=device))

    def _run(
        self, windows: Windows, mentions: Mentions, places: PassPlaces[Any] | None, layers: Iterable[Layer]
    ) -> tuple[Tensor, Tensor]:
        assert windows.plan is not None
        rows_ND = self.words.look_up(windows)
        words_ND = self.words(windows, rows_ND)
        entities_ED = self._begin(mentions, rows_ND, windows.lengths)
        for layer in layers:
            words_ND, entities_ED = layer(words_ND, entities_ED, windows.plan.packing, places)
        return words_ND, entities_ED

    def _begin(self, mentions: Mentions, rows_ND: Tensor | None, lengths: Sequence[int]) -> Tensor:
        """Entity tokens before the first layer: (NE, D). rows_ND: vectors of the windows' pieces."""
        means_ED = None
        if self.config.mention_start:
            assert rows_ND is not None
            means_ED = mean_pieces(rows_ND, lengths, mentions.first_E, mentions.last_E, mentions.counts)
        x_ED: Tensor = self.entities(mentions, means_ED)
        return x_ED

    def word_states(self, windows: Windows) -> Tensor:
        """States of words alone: (NW, D)."""
        return self.encode_words(windows).states_ND

    def encode_words(self, windows: Windows, *, states: bool = True) -> WordStates:
        """One pass over the words alone, with what `encode_entities` needs of it. states: false where this is all that
        is needed: the last layer then makes keys and values alone."""
        device = windows.pieces_N.device
        plan = planned(windows, lambda: plan_words(windows.lengths, device=device))
        windows = replace(windows, plan=plan)
        rows_ND = self.words.look_up(windows)
        x_ND = self.words(windows, rows_ND)
        places = self.find_places(plan.positions_N, None)
        all_keys, all_values = [], []
        for number, layer in enumerate(self.layers, 1):
            if number == len(self.layers) and not states:
                keys, values = layer.word_keys(x_ND, places)
                x_ND = x_ND[:0]
            else:
                x_ND, keys, values = layer.words_only(x_ND, plan.packing, places)
            all_keys.append(keys)
            all_values.append(values)
        rows = rows_ND if self.config.mention_start else None
        return WordStates(self.finish(x_ND), all_keys, all_values, plan.packing, rows)

    def encode_entities(self, words: WordStates, mentions: Mentions, *, group_size: int | None = 1) -> Tensor:
        """Entity states (NE, D) where each entity sees its window's words and itself, and no word sees an entity.

        group_size: so many consecutive entities see one another, such as the two of a pair; the counts of all windows
        are multiples of it. None: all entities of a window do.
        """
        x_ED = self._begin(mentions, words.rows_ND, words.packing.lengths)
        places = self.find_places(mentions.first_E[:0], mentions)
        lengths, counts, rows = words.packing.lengths, mentions.counts, mentions.rows
        if group_size is not None and rows is None:
            rows = to_device(entity_rows(words.packing, counts), mentions.entities_E.device)
        for layer, keys, values in zip(self.layers, words.keys, words.values):
            attention, reading_ED = layer.attention, layer.read(x_ED)
            if group_size is None or rows is None:
                attended = attention.entities_together(reading_ED, keys, values, lengths, counts, places)
            else:
                attended = attention.entities_only(reading_ED, keys, values, rows, group_size=group_size, places=places)
            x_ED = layer.finish(x_ED, attended)
        return self.finish(x_ED)
