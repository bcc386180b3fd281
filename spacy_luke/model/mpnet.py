"""The encoder MPNet (Song et al., NeurIPS 2020) with LUKE's entities: BERT's layers without token types, and one table
of biases for relative positions, which all layers add to their scores.

B windows, S tokens that see L tokens of their window, H heads; X distances from -R to R, R the most pieces of a window.

Where an entity is. A word i gives a word j the bias b(j - i) of their distance. An entity gives and takes the mean of
what the pieces of its mention would: b(entity, j) is the mean of b(j - i) over the pieces i, and of two entities the
mean over all pairs of their pieces. That is LUKE's own rule, by which an entity's position is the mean of its pieces'
rows of the position table (section 3.1): an entity of one piece stands where the piece does, nothing is rounded to a
bucket, and it does not matter on which side of a mention a word is. The bias of the mean position would lie in one
bucket, which for [MASK] of a long mention is that of a neighbour within the mention itself.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import Attention
from .config import LukeConfig
from .layer import Layer
from .luke import EntityEmbeddings, LukeEncoder, Mentions, WordEmbeddings
from .places import PassPlaces, Spots
from .untyped import UntypedEntities, UntypedWords

BUCKETS = 32  # of distances: 16 for words before and the word itself, 16 for words after
_FARTHEST = 128  # distances from here on share a bucket


@dataclass(frozen=True)
class MPNetConfig(LukeConfig):
    family: ClassVar[str] = "mpnet"
    _: KW_ONLY
    token_types: int = 0


class BiasedAttention(Attention):
    """Adds biases to its scores that are the same in all layers."""

    def place_scores(self, q_BHSK: Tensor, k_BHLK: Tensor, relation: Any) -> Tensor | None:
        """relation: the biases themselves, (B, H, S, L) or (1, H, S, L)."""
        biases: Tensor = relation
        return biases


class BiasedLayer(Layer):
    attention_class: ClassVar[type[Attention]] = BiasedAttention


class RelativeBiases(nn.Embedding):
    """The bias of each bucket of distances and each head."""

    def __init__(self, heads: int):
        super().__init__(BUCKETS, heads)

    def find_places(self, positions_N: Tensor, mentions: Mentions | None, *, farthest: int) -> PassPlaces[Tensor]:
        """farthest: pieces of a window at most."""
        distances_X = torch.arange(-farthest, farthest + 1, device=positions_N.device)
        relate = relate_by(self(bucket_of(distances_X)))
        entities = None if mentions is None else Spots(mentions.first_E, mentions.last_E)
        return PassPlaces(relate, Spots(positions_N, positions_N), entities)


class MPNetEncoder(LukeEncoder):
    """LUKE's encoder with MPNet's words, and entities beside them. `relative` has the bias of each bucket and head."""

    config: MPNetConfig

    def __init__(self, config: MPNetConfig, mask_rows: Sequence[int] = ()):
        super().__init__(config, mask_rows)
        self.relative = RelativeBiases(config.num_heads)

    def make_embeddings(self, mask_rows: Sequence[int]) -> tuple[WordEmbeddings, EntityEmbeddings]:
        return UntypedWords(self.config), UntypedEntities(self.config, mask_rows)

    def make_layer(self, number: int) -> Layer:
        return BiasedLayer(self.config, entity_aware=self.config.entity_aware)

    def find_places(self, positions_N: Tensor, mentions: Mentions | None) -> PassPlaces[Tensor]:
        return self.relative.find_places(positions_N, mentions, farthest=self.config.max_window)


def bucket_of(distances: Tensor) -> Tensor:
    """Buckets of distances, from a token to one that it sees: exact up to 7, then ever wider (T5's)."""
    half, exact = BUCKETS // 2, BUCKETS // 4
    size = distances.abs()
    wide = torch.log(size.float() / exact) / math.log(_FARTHEST / exact) * (half - exact)
    large = (exact + wide.long()).clamp(max=half - 1)
    buckets = torch.where(size < exact, size, large)
    return torch.where(distances > 0, buckets + half, buckets)


def relate_by(biases_XH: Tensor) -> Callable[[Spots, Spots], Tensor]:
    """The mean bias of two tokens' pieces, (B, H, S, L), as a function of their spots. biases_XH: of distances."""
    sums_XH = F.pad(biases_XH.double().cumsum(0), (0, 0, 1, 0))
    sums_XH = F.pad(sums_XH.cumsum(0), (0, 0, 1, 0))
    return partial(_mean_biases, biases_XH, sums_XH)


def _mean_biases(biases_XH: Tensor, sums_XH: Tensor, seeing: Spots, seen: Spots) -> Tensor:
    """sums_XH: row x is the sum of the first x prefix sums, in double precision: their differences are exact."""
    zero = len(biases_XH) // 2  # the row of distance 0
    i, j = seeing.first[..., :, None], seen.first[..., None, :]
    if seeing.first is seeing.last and seen.first is seen.last:
        return F.embedding(j - i + zero, biases_XH).movedim(-1, -3).contiguous()
    end_i, end_j = seeing.last[..., :, None] + 1, seen.last[..., None, :] + 1
    begin, end = j + zero + 1, end_j + zero + 1
    rows = (F.embedding(x, sums_XH) for x in (end - i, end - end_i, begin - i, begin - end_i))
    one, two, three, four = rows
    pairs = ((end_i - i) * (end_j - j)).unsqueeze(-1)
    means = (one - two - three + four) / pairs
    return means.to(biases_XH.dtype).movedim(-1, -3).contiguous()
