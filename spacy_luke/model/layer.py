"""A layer of a transformer: attention and feed-forward, as in BERT.

N packed tokens (NW words, NE entities), D model width, F intermediate width.
"""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from . import int8
from .attention import Attention
from .config import TransformerConfig
from .dropout import Dropout
from .linear import Linear, activate, multiply
from .packing import Packing
from .places import PassPlaces
from .recompute import recomputed

FEED_FORWARD_ROWS = 1024  # rows at once without gradients: the intermediate states then stay in a CPU's cache


class Layer(nn.Module):
    """Attention and feed-forward, each followed by residual and LayerNorm, as in BERT."""

    attention_class: ClassVar[type[Attention]] = Attention

    def __init__(self, config: TransformerConfig, *, entity_aware: bool):
        super().__init__()
        self.attention = self.attention_class(
            config.hidden_size, config.num_heads, entity_aware=entity_aware, dropout=config.attention_dropout
        )
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=config.norm_eps)
        self.up = Linear(config.hidden_size, config.intermediate_size)
        self.down = Linear(config.intermediate_size, config.hidden_size)
        self.output_norm = nn.LayerNorm(config.hidden_size, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.activation = config.activation

    @recomputed
    def forward(
        self, words_ND: Tensor, entities_ED: Tensor, packing: Packing, places: PassPlaces[Any] | None = None
    ) -> tuple[Tensor, Tensor]:
        words, entities = self.attention(self.read(words_ND), self.read(entities_ED), packing, places)
        return self.finish(words_ND, words), self.finish(entities_ED, entities)

    @recomputed
    def entities_last(
        self, words_ND: Tensor, entities_ED: Tensor, packing: Packing, places: PassPlaces[Any] | None = None
    ) -> Tensor:
        """The entities of `forward`, where nobody asks for the words any more."""
        words, entities = self.read(words_ND), self.read(entities_ED)
        return self.finish(entities_ED, self.attention.entities_last(words, entities, packing, places))

    @recomputed
    def words_only(
        self, words_ND: Tensor, packing: Packing, places: PassPlaces[Any] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        attended, keys, values = self.attention.words_only(self.read(words_ND), packing, places)
        return self.finish(words_ND, attended), keys, values

    def word_keys(self, words_ND: Tensor, places: PassPlaces[Any] | None = None) -> tuple[Tensor, Tensor]:
        """Keys and values of words whose states after this layer nobody reads."""
        return self.attention.word_keys(self.read(words_ND), places)

    def read(self, x_ND: Tensor) -> Tensor:
        """What attention reads."""
        return x_ND

    @recomputed
    def finish(self, x_ND: Tensor, attended_ND: Tensor) -> Tensor:
        """Residual, LayerNorm and feed-forward: (N, D)."""
        x_ND = self.join(x_ND, attended_ND)
        rows = FEED_FORWARD_ROWS if isinstance(self.up, nn.Linear) else int8.rows_at_once()
        if torch.is_grad_enabled() or x_ND.device.type != "cpu" or len(x_ND) <= rows:
            return self._feed_forward(x_ND)
        return torch.cat([self._feed_forward(part) for part in x_ND.split(rows)])

    def join(self, x_ND: Tensor, attended_ND: Tensor) -> Tensor:
        """What was read and what attention gives."""
        x_ND = self.attention_norm(x_ND + self.dropout(attended_ND))
        return x_ND

    def _feed_forward(self, x_ND: Tensor) -> Tensor:
        if isinstance(self.up, nn.Linear):
            hidden_NF = multiply(x_ND, self.up.weight, self.up.bias, self.activation)
        else:
            hidden_NF = activate(self.up(x_ND), self.activation)
        x_ND = self.output_norm(x_ND + self.dropout(self.down(hidden_NF)))
        return x_ND


class Layers(nn.ModuleList):
    """The layers of an encoder, in order."""

    def __iter__(self) -> Iterator[Layer]:
        return iter(cast(Iterable[Layer], self._modules.values()))
