"""Heads of pretraining: masked words, masked entities, and the entity of the page.

K chosen rows, D model width, V pieces of the vocabulary; R rows of the entity table, E their width, C sampled entities.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import LukeConfig, TransformerConfig
from .linear import activate


class MaskedWordHead(nn.Module):
    """BERT's and RoBERTa's: a transformed state times the word table, which is the encoder's own."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.norm_eps)
        self.bias = nn.Parameter(self.dense.weight.new_zeros(config.vocab_size))
        self.activation = config.activation

    def forward(self, states_KD: Tensor, table_VD: Tensor) -> Tensor:
        """RETURNS: logits (K, V)."""
        return F.linear(self.norm(activate(self.dense(states_KD), self.activation)), table_VD, self.bias)


class MaskedEntityHead(nn.Module):
    """A state, transformed to the width of the entity table, times the table's rows, which are the encoder's own (LUKE,
    section 3.3; EntityPredictionHead of the original)."""

    def __init__(self, config: LukeConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.entity_size)
        self.norm = nn.LayerNorm(config.entity_size, eps=config.norm_eps)
        self.bias = nn.Parameter(self.dense.weight.new_zeros(config.entity_vocab_size))
        self.activation = config.activation

    def transform(self, states_KD: Tensor) -> Tensor:
        """RETURNS: (K, E)."""
        x_KE: Tensor = self.norm(activate(self.dense(states_KD), self.activation))
        return x_KE

    def forward(self, states_KD: Tensor, table_RE: Tensor) -> Tensor:
        """RETURNS: logits of all entities (K, R)."""
        return F.linear(self.transform(states_KD), table_RE, self.bias)

    def sampled(
        self,
        states_KD: Tensor,
        table_RE: Tensor,
        *,
        gold_K: Tensor,
        sampled_C: Tensor,
        log_weight_C: Tensor,
        sparse: bool = False,
    ) -> Tensor:
        """Logits of the gold entity and of sampled ones (K, 1 + C), whose first column is right.

        log_weight_C: minus the log of the probability that an entity is among the sampled ones, so that the sum of
        their exponentials is an unbiased estimate of what the softmax over all other entities sums (see
        `EntitySampler.sample`). Sampled entities that are a row's own gold one do not count there. sparse: the gradient
        of the table has the rows alone that are read.
        """
        x_KE = self.transform(states_KD)
        gold_K1 = ((x_KE * F.embedding(gold_K, table_RE, sparse=sparse)).sum(-1) + self.bias[gold_K])[:, None]
        others_KC = F.linear(x_KE, F.embedding(sampled_C, table_RE, sparse=sparse), self.bias[sampled_C])
        others_KC = others_KC.float() + log_weight_C
        return torch.cat([gold_K1.float(), others_KC.masked_fill(gold_K[:, None] == sampled_C, -torch.inf)], 1)


class PageEntityHead(nn.Module):
    """The vector of a page's entity from the state of [CLS] (CLSEntityPredictionHead of the original)."""

    def __init__(self, config: LukeConfig):
        super().__init__()
        self.decoder = nn.Linear(config.hidden_size, config.entity_size)

    def forward(self, states_KD: Tensor) -> Tensor:
        """RETURNS: (K, E)."""
        x_KE: Tensor = self.decoder(states_KD)
        return x_KE
