"""Embeddings of encoders that know positions in attention alone: what a token is, and nothing of where it is.

N packed tokens (NW words, NE entities), D model width.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from .config import LukeConfig
from .dropout import Dropout
from .luke import EntityEmbeddings, Mentions, Windows, WordEmbeddings


class PlacelessWords(WordEmbeddings):
    """LayerNorm(piece). bias: whether the LayerNorm has one."""

    def __init__(self, config: LukeConfig, *, bias: bool, dropout: float):
        super().__init__(config)
        del self.position, self.token_type
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.norm_eps, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, windows: Windows, rows_ND: Tensor | None = None) -> Tensor:
        """RETURNS: (NW, D). The windows' token types are not read."""
        x_ND: Tensor = self.look_up(windows) if rows_ND is None else rows_ND
        x_ND = self.dropout(self.norm(x_ND))
        return x_ND


class PlacelessEntities(EntityEmbeddings):
    """LayerNorm(dense(entity))."""

    def __init__(self, config: LukeConfig, mask_rows: Sequence[int], *, bias: bool, dropout: float):
        super().__init__(config, mask_rows)
        del self.position, self.token_type
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.norm_eps, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, mentions: Mentions, means_ED: Tensor | None = None) -> Tensor:
        """RETURNS: (NE, D)."""
        x_ED: Tensor = self.dropout(self.norm(self.look_up(mentions, means_ED)))
        return x_ED
