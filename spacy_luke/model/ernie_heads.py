"""ERNIE's heads: of pretraining (section 3.4), and for types and relations (section 3.5). That of question answering is
`answers.AnswerHead`.

N packed word states, D model width; K chosen pieces, V pieces of the vocabulary; B windows, L labels; C candidates,
H width of an entity's vector.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from .dropout import Dropout
from .ernie import ErnieConfig
from .linear import activate
from .masked import MaskedWordHead


class PooledHead(nn.Module):
    """A linear layer on a window's pooled state, for relations and types, or on several states joined. The original's
    typing head has no bias."""

    def __init__(self, hidden_size: int, n_labels: int, *, bias: bool = True, states: int = 1):
        super().__init__()
        self.dropout = Dropout(0.1)
        self.classifier = nn.Linear(states * hidden_size, n_labels, bias=bias)

    def forward(self, pooled_BD: Tensor) -> Tensor:
        """RETURNS: logits (B, L)."""
        logits_BL: Tensor = self.classifier(self.dropout(pooled_BD))
        return logits_BL


class EntityDenoiser(nn.Module):
    """Which of the candidates a piece's entity is (dEA): the product of its transformed state and their vectors.

    transform: the code's linear layer, activation and LayerNorm; False: the paper's linear layer alone (equation 7).
    """

    def __init__(self, config: ErnieConfig, *, transform: bool = True):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.entity_size)
        self.norm = nn.LayerNorm(config.entity_size, eps=config.norm_eps) if transform else None
        self.activation = config.activation

    def forward(self, states_KD: Tensor, candidates_CH: Tensor) -> Tensor:
        """RETURNS: logits (K, C)."""
        states_KH = self.dense(states_KD)
        if self.norm is not None:
            states_KH = self.norm(activate(states_KH, self.activation))
        return F.linear(states_KH, candidates_CH.to(states_KH.dtype))


class PretrainingHeads(nn.Module):
    """Masked words, next sentence (class 1: the second is a random one) and entities."""

    def __init__(self, config: ErnieConfig, *, transform: bool = True):
        super().__init__()
        self.lm_head = MaskedWordHead(config)
        self.nsp_head = nn.Linear(config.hidden_size, 2)
        self.entity_head = EntityDenoiser(config, transform=transform)

    def forward(
        self,
        words_ND: Tensor,
        pooled_BD: Tensor,
        table_VD: Tensor,
        *,
        masked_K: Tensor,
        linked_K: Tensor,
        candidates_CH: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """table_VD: the encoder's word table; masked_K, linked_K: rows of words_ND whose piece, and whose entity, is
        asked.

        RETURNS: logits of pieces (K, V), next sentence (B, 2) and candidates (K, C).
        """
        return (
            self.lm_head(words_ND.index_select(0, masked_K), table_VD),
            self.nsp_head(pooled_BD),
            self.entity_head(words_ND.index_select(0, linked_K), candidates_CH),
        )
