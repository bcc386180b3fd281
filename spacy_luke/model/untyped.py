"""Embeddings of encoders without token types, such as MPNet and DistilBERT.

NW words, NE entities, D model width.
"""

from collections.abc import Sequence

from torch import Tensor

from .config import LukeConfig, TransformerConfig
from .luke import EntityEmbeddings, Mentions, Windows, WordEmbeddings


class UntypedWords(WordEmbeddings):
    """Pieces and positions, of encoders without token types."""

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        del self.token_type

    def forward(self, windows: Windows, rows_ND: Tensor | None = None) -> Tensor:
        """RETURNS: (NW, D). The windows' token types are not read."""
        x_ND: Tensor = self.add_positions(windows, rows_ND)
        x_ND = self.dropout(self.norm(x_ND))
        return x_ND


class UntypedEntities(EntityEmbeddings):
    """LUKE's, without token types."""

    def __init__(self, config: LukeConfig, mask_rows: Sequence[int] = ()):
        super().__init__(config, mask_rows)
        del self.token_type

    def forward(self, mentions: Mentions, means_ED: Tensor | None = None) -> Tensor:
        """RETURNS: (NE, D)."""
        x_ED: Tensor = self.look_up(mentions, means_ED) + self.mean_positions(mentions.first_E, mentions.last_E)
        x_ED = self.dropout(self.norm(x_ED))
        return x_ED
