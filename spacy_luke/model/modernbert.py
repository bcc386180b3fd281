"""ModernBERT with LUKE's entities: rotary positions, local and global layers, gated feed-forward, norms before (Warner
et al., ACL 2025; rotary: Su et al., 2021).

Where an entity is. Queries and keys turn by the entity's centre, the mean of its pieces' positions, which may lie
between two pieces: angles are made of any number, so a mention is asked, and asks, as a piece in its middle would. In
global layers all tokens of a window see one another. In local layers a piece sees those within reach (half of
`local_attention`), and an entity stands for all of its mention's pieces: it sees the words and entities that one of
them would see, and is seen by these. A mention that is longer than the reach so keeps its ends, and a pair of mentions
that are further apart meets in the global layers, as their words do. An entity of one piece sees what that piece sees.

N packed tokens, D model width, F intermediate width; B windows of a call, S tokens that look, L tokens that they see;
H heads, K head width.
"""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .attention import Attention
from .config import LukeConfig
from .dropout import Dropout
from .layer import Layer
from .linear import Linear, activate
from .luke import LukeEncoder, Mentions
from .near import Blocks, attend_blocks, plan_blocks
from .packing import Packing
from .placeless import PlacelessEntities, PlacelessWords
from .places import PassPlaces, Spots
from .transfer import to_device

_UNSEEN = -1e4  # added to scores of what is out of reach: their weights are 0 in every format, and never NaN


@dataclass(frozen=True)
class ModernBertConfig(LukeConfig):
    """Defaults are ModernBERT base's."""

    family: ClassVar[str] = "modernbert"
    has_biases: ClassVar[bool] = False
    _: KW_ONLY
    num_layers: int = 22
    intermediate_size: int = 1152
    max_positions: int = 8192  # pieces of a window; there is no table of them
    position_offset: int = 0
    token_types: int = 0
    dropout: float = 0.0  # of the gated states
    attention_dropout: float = 0.0
    embedding_dropout: float = 0.0
    global_every: int = 3  # the first layer is global, and each third one after it
    local_attention: int = 128  # pieces that a piece sees in local layers, half of them on each side
    global_theta: float = 160_000.0
    local_theta: float = 10_000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size // self.num_heads % 2:
            width = self.hidden_size // self.num_heads
            raise ValueError(f"The width of a head must be even for rotary positions, but it is {width}.")

    @property
    def reach(self) -> int:
        """Pieces on each side that a piece sees in local layers."""
        return self.local_attention // 2

    def is_global(self, layer: int) -> bool:
        return layer % self.global_every == 0


@dataclass(frozen=True)
class Angles(Spots):
    """Spots with what turns heads there: for each theta cosines and sines, (N, 1, K / 2)."""

    turns: dict[float, tuple[Tensor, Tensor]]


def find_angles(first_N: Tensor, last_N: Tensor, *, thetas: Iterable[float], width: int) -> Angles:
    """width: of a head."""
    centre_N = (first_N + last_N).float() / 2
    turns = {}
    for theta in thetas:
        steps_K = torch.arange(0, width, 2, dtype=torch.float, device=first_N.device)
        angles_NK = centre_N[:, None] * (1.0 / (theta ** (steps_K / width)))
        turns[theta] = (angles_NK.cos()[:, None], angles_NK.sin()[:, None])
    return Angles(first_N, last_N, turns)


class Reach:
    """Which tokens are out of reach of which, for local layers alone. looking, seen: (B, S) and (B, L), or 1 for B."""

    def __init__(self, looking: Spots, seen: Spots, reach: int):
        self.looking, self.seen, self.reach = looking, seen, reach

    @cached_property
    def unseen_B1SL(self) -> Tensor | None:
        """To be added to scores; None where all see all."""
        if self.seen.first is self.seen.last and self.seen.first.shape[-1] <= self.reach + 1:
            return None  # a window of words that are within reach of one another, and of the entities among them
        ends = (self.looking.first, self.looking.last, self.seen.first, self.seen.last)
        first, last, seen_first, seen_last = (x.int() for x in ends)  # windows may be long, and this is their square
        unseen_BSL = first[..., :, None] - seen_last[..., None, :] > self.reach
        unseen_BSL |= seen_first[..., None, :] - last[..., :, None] > self.reach
        return unseen_BSL[:, None].float() * _UNSEEN


class RotaryPlaces(PassPlaces[Reach]):
    """Places, and the blocks of words of local layers."""

    def __init__(self, reach: int, words: Spots, entities: Spots | None):
        super().__init__(partial(Reach, reach=reach), words, entities)
        self.reach = reach
        self._blocks: Blocks | None = None

    def blocks(self, lengths: Sequence[int]) -> Blocks:
        if self._blocks is None:
            device = self.words.first.device
            self._blocks = to_device(plan_blocks(lengths, reach=self.reach, device=device), device)
        return self._blocks


class RotaryAttention(Attention):
    """Without biases. is_local: whether tokens see only what is within reach; theta: of the angles."""

    is_local = False
    theta = 0.0

    def __init__(self, hidden_size: int, num_heads: int, *, entity_aware: bool, dropout: float):
        super().__init__(hidden_size, num_heads, entity_aware=entity_aware, dropout=dropout)
        for linear in self.children():
            linear.register_parameter("bias", None)

    def turn(self, x_NHK: Tensor, spots: Spots | None) -> Tensor:
        assert isinstance(spots, Angles)
        cos_N1K, sin_N1K = spots.turns[self.theta]
        one, other = x_NHK.chunk(2, -1)
        turned = torch.cat([one * cos_N1K - other * sin_N1K, other * cos_N1K + one * sin_N1K], -1)
        return turned.to(x_NHK.dtype)

    def place_scores(self, q_BHSK: Tensor, k_BHLK: Tensor, relation: Reach) -> Tensor | None:
        return relation.unseen_B1SL if self.is_local else None

    def words_only(
        self, words_ND: Tensor, packing: Packing, places: PassPlaces[Any] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        assert isinstance(places, RotaryPlaces)
        if not self.is_local or max(packing.lengths, default=0) <= places.reach + 1:
            return super().words_only(words_ND, packing, places)
        from_words = self._read(words_ND)
        k_NHK, v_NHK = self._keys_values(from_words, places.words)
        q_NHK = self._query(self.query, from_words, places.words)
        out_ND = attend_blocks(q_NHK, k_NHK, v_NHK, places.blocks(packing.lengths), rate=self._rate)
        return self._finish(out_ND), k_NHK, v_NHK


class RotaryLayer(Layer):
    """Norm, attention, residual; norm, gated feed-forward, residual. The first layer's attention has no norm: the
    embeddings have just had theirs. `up` makes the states and behind them their gates."""

    attention_class: ClassVar[type[Attention]] = RotaryAttention

    def __init__(self, config: ModernBertConfig, *, number: int):
        super().__init__(config, entity_aware=config.entity_aware)
        assert isinstance(self.attention, RotaryAttention)
        self.attention.is_local = not config.is_global(number)
        self.attention.theta = config.global_theta if config.is_global(number) else config.local_theta
        size, eps = config.hidden_size, config.norm_eps
        self.has_norm = number > 0
        if self.has_norm:
            self.attention_norm = nn.LayerNorm(size, eps=eps, bias=False)
        else:
            del self.attention_norm
        self.up = Linear(size, 2 * config.intermediate_size, bias=False)
        self.down = Linear(config.intermediate_size, size, bias=False)
        self.output_norm = nn.LayerNorm(size, eps=eps, bias=False)
        self.attention_dropout = Dropout(config.attention_dropout)

    def read(self, x_ND: Tensor) -> Tensor:
        if self.has_norm:
            x_ND = self.attention_norm(x_ND)
        return x_ND

    def join(self, x_ND: Tensor, attended_ND: Tensor) -> Tensor:
        x_ND = x_ND + self.attention_dropout(attended_ND)
        return x_ND

    def _feed_forward(self, x_ND: Tensor) -> Tensor:
        states_NF, gates_NF = self.up(self.output_norm(x_ND)).chunk(2, -1)
        hidden_NF = self.dropout(activate(states_NF, self.activation) * gates_NF)
        x_ND = x_ND + self.down(hidden_NF)
        return x_ND


class ModernBertEncoder(LukeEncoder):
    """ModernBERT and entities beside its words."""

    config: ModernBertConfig

    def __init__(self, config: ModernBertConfig, mask_rows: Sequence[int] = ()):
        super().__init__(config, mask_rows)
        self.final_norm = nn.LayerNorm(config.hidden_size, eps=config.norm_eps, bias=False)

    def make_embeddings(self, mask_rows: Sequence[int]) -> tuple[PlacelessWords, PlacelessEntities]:
        rate = self.config.embedding_dropout
        words = PlacelessWords(self.config, bias=False, dropout=rate)
        return words, PlacelessEntities(self.config, mask_rows, bias=False, dropout=rate)

    def make_layer(self, number: int) -> Layer:
        return RotaryLayer(self.config, number=number)

    def find_places(self, positions_N: Tensor, mentions: Mentions | None) -> PassPlaces[Reach]:
        thetas = {self.config.global_theta, self.config.local_theta}
        make = partial(find_angles, thetas=thetas, width=self.config.hidden_size // self.config.num_heads)
        entities = None if mentions is None else make(mentions.first_E, mentions.last_E)
        return RotaryPlaces(self.config.reach, make(positions_N, positions_N), entities)

    def finish(self, x_ND: Tensor) -> Tensor:
        x_ND = self.final_norm(x_ND)
        return x_ND
