"""The head of entity disambiguation: masked entities are predicted among their candidates only (Yamada et al., NAACL
2022, section 3; arXiv:1909.00426).

M masked mentions, C candidates of all mentions one after another, D model width, V entity width, F features.
"""

import torch.nn.functional as F
from torch import Tensor, nn

FEATURES = ("log prior", "log in-links")


class CandidateHead(nn.Module):
    """Scores candidates: dot(LayerNorm(gelu(dense(state))), vector) + bias, of the gathered vectors alone; the logits
    of the whole vocabulary are never made.

    features: a learned linear function of so many numbers of each candidate is added; the papers have none (0). It
    begins as their sum times 0.5.
    """

    def __init__(self, hidden_size: int, entity_size: int, *, norm_eps: float = 1e-12, features: int = 0):
        super().__init__()
        self.dense = nn.Linear(hidden_size, entity_size)
        self.norm = nn.LayerNorm(entity_size, eps=norm_eps)
        self.prior = nn.Linear(features, 1, bias=False) if features else None

    def reset_prior(self) -> None:
        if self.prior is not None:
            nn.init.constant_(self.prior.weight, 0.5)

    def transform(self, states_MD: Tensor) -> Tensor:
        """RETURNS: (M, V)."""
        x_MV: Tensor = self.norm(F.gelu(self.dense(states_MD)))
        return x_MV

    def forward(
        self, states_MD: Tensor, owner_C: Tensor, vectors_CV: Tensor, bias_C: Tensor, features_CF: Tensor
    ) -> Tensor:
        """owner_C: the mention of each candidate, ascending; bias_C: a number of each entity. RETURNS: scores (C,)."""
        x_MV = self.transform(states_MD).float()
        scores_C = (x_MV[owner_C] * vectors_CV.float()).sum(-1) + bias_C
        if self.prior is not None:
            scores_C = scores_C + self.prior(features_CF).float().squeeze(-1)
        return scores_C


def segment_softmax(scores_C: Tensor, owner_C: Tensor, n: int) -> Tensor:
    """Log-probabilities of each mention's candidates (C,). n: mentions."""
    highest_M = scores_C.new_full((n,), float("-inf")).scatter_reduce(0, owner_C, scores_C, "amax")
    shifted_C = scores_C - highest_M[owner_C]
    sums_M = scores_C.new_zeros(n).index_add(0, owner_C, shifted_C.exp())
    return shifted_C - sums_M.log()[owner_C]
