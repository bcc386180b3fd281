"""The encoder ELECTRA (Clark et al., ICLR 2020) with LUKE's entities: BERT's, whose embeddings may be narrower than its
layers, and are projected to their width.

Entities are made as the words are: table, positions and types in the words' width, and a projection of their own. An
entity is at the mean of its pieces' rows of an own position table, as in LUKE.

NW words, NE entities, D model width.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from torch import Tensor, nn

from .config import LukeConfig, TransformerConfig
from .linear import Linear
from .luke import EntityEmbeddings, LukeEncoder, Mentions, Windows, WordEmbeddings


@dataclass(frozen=True)
class ElectraConfig(LukeConfig):
    family: ClassVar[str] = "electra"
    _: KW_ONLY
    embedding_size: int = 128  # of words and entities, before they are projected where it is not hidden_size

    @property
    def embedding_width(self) -> int:
        return self.embedding_size


def make_projection(config: TransformerConfig) -> nn.Module:
    """From the width of embeddings to that of layers."""
    if config.embedding_width == config.hidden_size:
        return nn.Identity()
    return Linear(config.embedding_width, config.hidden_size)


class ProjectedWords(WordEmbeddings):
    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.project = make_projection(config)

    def forward(self, windows: Windows, rows_ND: Tensor | None = None) -> Tensor:
        """RETURNS: (NW, D)."""
        x_ND: Tensor = self.project(super().forward(windows, rows_ND))
        return x_ND


class ProjectedEntities(EntityEmbeddings):
    def __init__(self, config: LukeConfig, mask_rows: Sequence[int] = ()):
        super().__init__(config, mask_rows)
        self.project = make_projection(config)

    def forward(self, mentions: Mentions, means_ED: Tensor | None = None) -> Tensor:
        """RETURNS: (NE, D)."""
        x_ED: Tensor = self.project(super().forward(mentions, means_ED))
        return x_ED


class ElectraEncoder(LukeEncoder):
    """LUKE's encoder, whose embeddings are projected."""

    def make_embeddings(self, mask_rows: Sequence[int]) -> tuple[WordEmbeddings, EntityEmbeddings]:
        return ProjectedWords(self.config), ProjectedEntities(self.config, mask_rows)
