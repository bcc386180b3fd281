"""DeBERTa-v3 with LUKE's entities: attention that knows of positions by the distances of tokens (He et al., ICLR 2021,
section 3; He et al., ICLR 2023).

Token i sees token j with the score (q_i . k_j + q_i . K(r) + k_j . Q(r)) / sqrt(3 * head width), where r is the bucket
of the distance i - j: distances are exact up to half the buckets and logarithmic beyond. K(r) and Q(r) are the keys and
queries of a table of distances, by the same matrices as those of tokens (a shared key), after a LayerNorm; the table is
that of all layers.

Where an entity is: a distance between an entity and a word, or between two entities, is that of their nearest pieces,
and 0 where they overlap. Near distances are what the buckets tell apart. So the words beside a mention are as far from
its entity as from the mention's own pieces, however long it is; a centre would put them at half its length, where the
table has learned that other words stand. Words know no distances to entities but these, which they have learned of
words. Of entity-aware queries, those of positions are the words' own: positions are of pieces.

N packed tokens, D model width; B windows of a call, S tokens that look, L tokens that they see; H heads, K head width;
R rows of the table that are needed, T = 2 * L - 1 distances in a window of L pieces.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .attention import Attention
from .config import LukeConfig
from .dropout import Dropout
from .layer import Layer
from .luke import LukeEncoder, Mentions
from .placeless import PlacelessEntities, PlacelessWords
from .places import PassPlaces, Spots
from .recompute import is_recomputing

_TERMS = 3  # of a score: content to content, content to position, position to content
NUMBERS_AT_ONCE = 4_000_000  # numbers of a group of windows that are computed at once in predictions
_SMALL = 16  # pairs of tokens that see one another (S * L) up to which rows of distances are taken for each


@dataclass(frozen=True)
class DebertaConfig(LukeConfig):
    """Defaults are DeBERTa-v3 base's."""

    family: ClassVar[str] = "deberta-v2"  # as transformers calls the code of DeBERTa-v2 and v3
    _: KW_ONLY
    token_types: int = 0
    max_positions: int = 512  # pieces of a window; there is no table of them
    position_offset: int = 0
    norm_eps: float = 1e-7
    position_buckets: int = 256  # on each side; 0: every distance has its own row
    max_distance: int = 512  # beyond it distances are as this one

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.position_buckets < 0 or self.position_buckets == 1 or self.max_distance <= self.position_buckets // 2:
            raise ValueError(
                f"position_buckets must be 0 or at least 2, and max_distance above half of them, but they are "
                f"{self.position_buckets} and {self.max_distance}."
            )

    @property
    def span(self) -> int:
        """Rows of the table on each side of the distance 0."""
        return self.position_buckets or self.max_distance


def find_buckets(distances: Tensor, config: DebertaConfig) -> Tensor:
    """Rows of the table, in the shape of `distances` (whole numbers)."""
    span, buckets = config.span, distances
    if config.position_buckets:
        middle = config.position_buckets // 2
        far = distances.abs().clamp(min=middle)
        # The order of these steps in float32 decides where buckets end, so it is the reference's.
        farthest = torch.tensor((config.max_distance - 1) / middle, dtype=torch.float32, device="cpu")
        ratio = torch.log(far.float() / middle) / torch.log(farthest)
        steps = (torch.ceil(ratio * (middle - 1)) + middle).long()
        buckets = torch.where(distances.abs() <= middle, distances, steps * distances.sign())
    return (buckets + span).clamp(0, 2 * span - 1)


class Table:
    """The table of distances in one pass, and what each layer makes of the rows that are needed.

    rows_RD: the whole table after its LayerNorm. longest: pieces of the longest window that was asked for; a layer's
    keys and queries are made once, of the rows for distances below it. A layer that is computed again for its gradients
    makes them whenever it is asked, of all rows, so that it does the same again.
    """

    def __init__(self, rows_RD: Tensor, config: DebertaConfig):
        self.rows_RD, self.config = rows_RD, config
        self.longest = 1
        self.keeps = not is_recomputing()
        self._made: dict[int, tuple[int, Tensor, Tensor]] = {}

    def heads(self, attention: "DebertaAttention") -> tuple[int, Tensor, Tensor]:
        """The first row that is needed, and keys and queries from it on: (R, H, K) each, with the scale of scores."""
        if not self.keeps:
            return 0, *attention.read_distances(self.rows_RD)
        first, end = self._bounds()
        made = self._made.get(id(attention))
        if made is None or made[0] > first:
            made = self._made[id(attention)] = (first, *attention.read_distances(self.rows_RD[first:end]))
        return made

    def _bounds(self) -> tuple[int, int]:
        ends = torch.tensor([1 - self.longest, self.longest - 1], device="cpu")
        first, last = find_buckets(ends, self.config).tolist()
        return first, last + 1


class Distances:
    """Of tokens that look from those that they see. looking, seen: their spots, (B, S) and (B, L), or 1 for B."""

    def __init__(self, looking: Spots, seen: Spots, table: Table):
        self.looking, self.seen, self.table = looking, seen, table
        # One row of words looks at itself: row i - j is the same for all such i and j.
        self.is_run = looking is seen and looking.first is looking.last and len(looking.first) == 1
        if seen.first is seen.last:
            table.longest = max(table.longest, seen.first.shape[-1])
        elif seen.first.shape[-1] > 1:
            table.longest = max(table.longest, _farthest(looking, seen, table.config))

    @cached_property
    def rows_T(self) -> Tensor:
        """Of a run: rows of the table for the distances from L - 1 down to 1 - L."""
        length = self.looking.first.shape[-1]
        distances_T = torch.arange(length - 1, -length, -1, device=self.looking.first.device)
        return find_buckets(distances_T, self.table.config)

    @cached_property
    def rows_BSL(self) -> Tensor:
        """Rows of the table."""
        behind = self.looking.first[..., :, None] - self.seen.last[..., None, :]
        before = self.looking.last[..., :, None] - self.seen.first[..., None, :]
        return find_buckets(behind.clamp(min=0) + before.clamp(max=0), self.table.config)


def _farthest(looking: Spots, seen: Spots, config: DebertaConfig) -> int:
    """Pieces of the longest window, or more. A host that asked a GPU for them would wait for it, so there all rows of
    the table are needed."""
    if looking.last.device.type != "cpu":
        return 2 * config.max_distance
    return 1 + int(max(looking.last.max(), seen.last.max()))


class DebertaAttention(Attention):
    """See above. table_dropout: of the table's rows."""

    table_dropout: Dropout

    def _query(self, linear: nn.Linear, x: Any, spots: Spots | None) -> Tensor:
        q_NHK: Tensor = super()._query(linear, x, spots)
        return q_NHK * float(_TERMS**-0.5)

    def read_distances(self, rows_RD: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and queries of distances, with the scale of scores: (R, H, K) each."""
        rows = self._read(self.table_dropout(rows_RD))
        keys_RHK, queries_RHK = self._heads(self.key, rows), self._heads(self.query, rows)
        scale = keys_RHK.shape[-1] ** -0.5
        return keys_RHK * scale, queries_RHK * (scale * _TERMS**-0.5)

    def place_scores(self, q_BHSK: Tensor, k_BHLK: Tensor, relation: Distances) -> Tensor:
        first, keys_RHK, queries_RHK = relation.table.heads(self)
        if relation.is_run:
            rows_T = relation.rows_T - first
            return _of_run(q_BHSK, k_BHLK, keys_RHK[rows_T], queries_RHK[rows_T.flip(0)])
        rows_BSL = relation.rows_BSL - first
        if rows_BSL.shape[1] * rows_BSL.shape[2] <= _SMALL:
            seen = torch.einsum("bhsk,bslhk->bhsl", q_BHSK, keys_RHK[rows_BSL])
            return seen + torch.einsum("bhlk,bslhk->bhsl", k_BHLK, queries_RHK[rows_BSL])
        shape = (*q_BHSK.shape[:3], k_BHLK.shape[2])
        rows_BHSL = rows_BSL[:, None].expand(shape)
        to_positions_BHSR = q_BHSK @ keys_RHK.permute(1, 2, 0)
        from_positions_BHLR = k_BHLK @ queries_RHK.permute(1, 2, 0)
        from_BHLS = from_positions_BHLR.gather(-1, rows_BHSL.transpose(-1, -2))
        return to_positions_BHSR.gather(-1, rows_BHSL) + from_BHLS.transpose(-1, -2)


def _of_run(q_BHLK: Tensor, k_BHLK: Tensor, keys_THK: Tensor, queries_THK: Tensor) -> Tensor:
    """Scores of windows of L pieces: (B, H, L, L). keys_THK: of the distances from L - 1 down; queries_THK: of those
    from 1 - L up. Without gradients many long windows are done one by one, so that what they need lies in caches."""
    size, heads, length, _ = q_BHLK.shape
    if size > 1 and size * heads * length * len(keys_THK) > NUMBERS_AT_ONCE and not torch.is_grad_enabled():
        scores_BHLL = q_BHLK.new_empty(size, heads, length, length)
        for i in range(size):
            scores_BHLL[i : i + 1] = _of_run(q_BHLK[i : i + 1], k_BHLK[i : i + 1], keys_THK, queries_THK)
        return scores_BHLL
    to_positions_BHLL = _shift(_multiply(q_BHLK, keys_THK))
    from_positions_BHLL = _shift(_multiply(k_BHLK, queries_THK))
    return to_positions_BHLL + from_positions_BHLL.transpose(-1, -2)


def _multiply(x_BHLK: Tensor, table_THK: Tensor) -> Tensor:
    """(B, H, L, T), as one product for each head."""
    size, heads, length, _ = x_BHLK.shape
    x_HNK = x_BHLK.permute(1, 0, 2, 3).flatten(1, 2)
    return torch.bmm(x_HNK, table_THK.permute(1, 2, 0)).view(heads, size, length, -1).transpose(0, 1)


def _shift(x_BHLT: Tensor) -> Tensor:
    """Column j - i + L - 1 of each row i, as column j: (B, H, L, L). Nothing is copied: a row of the result begins one
    column before that of the row above it."""
    size, heads, length, width = x_BHLT.shape
    if length == 1:
        return x_BHLT
    flat = x_BHLT.transpose(0, 1).flatten(2)[..., length - 1 : length * width - 1]
    return flat.view(heads, size, length, width - 1)[..., :length].transpose(0, 1)


class DebertaLayer(Layer):
    """A layer of BERT with this attention."""

    attention_class: ClassVar[type[Attention]] = DebertaAttention

    def __init__(self, config: DebertaConfig):
        super().__init__(config, entity_aware=config.entity_aware)
        assert isinstance(self.attention, DebertaAttention)
        self.attention.table_dropout = Dropout(config.dropout)


class Relative(nn.Module):
    """The table of distances that all layers share, and its LayerNorm."""

    def __init__(self, config: DebertaConfig):
        super().__init__()
        self.table = nn.Embedding(2 * config.span, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.norm_eps)


class DebertaEncoder(LukeEncoder):
    """DeBERTa-v3, whose words have no positions but distances, and entities beside them."""

    config: DebertaConfig

    def __init__(self, config: DebertaConfig, mask_rows: Sequence[int] = ()):
        super().__init__(config, mask_rows)
        self.relative = Relative(config)

    def make_embeddings(self, mask_rows: Sequence[int]) -> tuple[PlacelessWords, PlacelessEntities]:
        rate = self.config.dropout
        words = PlacelessWords(self.config, bias=True, dropout=rate)
        return words, PlacelessEntities(self.config, mask_rows, bias=True, dropout=rate)

    def make_layer(self, number: int) -> Layer:
        return DebertaLayer(self.config)

    def find_places(self, positions_N: Tensor, mentions: Mentions | None) -> PassPlaces[Distances]:
        table = Table(self.relative.norm(self.relative.table.weight), self.config)
        entities = None if mentions is None else Spots(mentions.first_E, mentions.last_E)
        return PassPlaces(partial(Distances, table=table), Spots(positions_N, positions_N), entities)
