"""The head of entity disambiguation: masked entities are predicted among their candidates only (Yamada et al., NAACL
2022, section 3; arXiv:1909.00426).

M masked mentions, C candidates of all mentions one after another, D model width, V entity width, F features.

NIL is one more candidate of each mention where a head has it. Its score is subtracted from those of the others, so that
it stands at 0, and scores of a mention with one candidate and of one with thirty are of one scale: each says how much
more likely than NIL a candidate is.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PRIOR = ("prior", "in_links")  # what is known of a candidate: log p(entity | name), log(1 + in-links)
# How a candidate's name, description and type agree with its mention and text, see `components.linker.matching`. What
# is added goes to the end, so that heads that were saved before read theirs.
MATCH = (
    *("name", "long_name", "part", "surname", "told", "short", "derived"),
    *("beside", "of", "only", "described", "related", "type", "sure"),
    *("sports", "shared", "group", "titled", "coherent", "initials"),
)
NIL_START = -2.0  # NIL's score before any training: a single candidate has a probability of 0.88, all else being equal


class CandidateHead(nn.Module):
    """Scores candidates: dot(LayerNorm(gelu(dense(state))), vector) + bias, of the gathered vectors alone; the logits
    of the whole vocabulary are never made.

    features: a learned linear function of the first so many numbers of each candidate is added; the papers have none
    (0). It begins as their sum times 0.5. match: another one of so many after those of PRIOR, which begins with 0. nil:
    scores are those above NIL's, whose score is a learned linear function of the transformed state. Beside this
    function nothing learns whether a mention is NIL, see `ordering`.
    """

    def __init__(
        self,
        hidden_size: int,
        entity_size: int,
        *,
        norm_eps: float = 1e-12,
        features: int = 0,
        match: int = 0,
        nil: bool = False,
    ):
        super().__init__()
        self.dense = nn.Linear(hidden_size, entity_size)
        self.norm = nn.LayerNorm(entity_size, eps=norm_eps)
        self.prior = nn.Linear(features, 1, bias=False) if features else None
        self.match = nn.Linear(match, 1, bias=False) if match else None
        self.nil = nn.Linear(entity_size, 1) if nil else None

    def reset_prior(self) -> None:
        """The weights of the features, and NIL's, begin with what they mean without any training."""
        start_known(self.prior, self.match)
        if self.nil is not None:
            nn.init.zeros_(self.nil.weight)
            nn.init.constant_(self.nil.bias, NIL_START)

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
        if features_CF.shape[1]:
            scores_C = scores_C + known_scores(self.prior, self.match, features_CF)
        if self.nil is not None:
            scores_C = ordering(scores_C, owner_C, len(x_MV)) - self.nil(x_MV.detach()).squeeze(-1)[owner_C]
        return scores_C


class FeatureHead(nn.Module):
    """Scores candidates by what is known of them alone, without the encoder: learned linear functions of `features` and
    `match` numbers, as of `CandidateHead`, less NIL's score, one number."""

    def __init__(self, *, features: int = 0, match: int = 0, nil: bool = False):
        super().__init__()
        self.prior = nn.Linear(features, 1, bias=False) if features else None
        self.match = nn.Linear(match, 1, bias=False) if match else None
        self.nil = nn.Parameter(torch.zeros(())) if nil else None

    def reset_prior(self) -> None:
        """As of `CandidateHead`."""
        start_known(self.prior, self.match)
        if self.nil is not None:
            nn.init.constant_(self.nil, NIL_START)

    def forward(self, features_CF: Tensor) -> Tensor:
        """RETURNS: scores (C,)."""
        scores_C = known_scores(self.prior, self.match, features_CF)
        return scores_C if self.nil is None else scores_C - self.nil


def ordering(scores_C: Tensor, owner_C: Tensor, n: int) -> Tensor:
    """The same scores, whose gradient is of the order of each mention's candidates alone: what the cross-entropy with
    NIL among the candidates asks of their sum does not reach them, and what remains is that without NIL. n: mentions.

    Where encoder and prior learned that sum too, in-KB accuracy on AIDA was 0.8 points lower, without NIL being chosen
    even once (results/linking.md).
    """
    if not scores_C.requires_grad:
        return scores_C
    order_C = segment_softmax(scores_C, owner_C, n)
    return order_C + (scores_C - order_C).detach()


def start_known(prior: nn.Linear | None, match: nn.Linear | None) -> None:
    if prior is not None:
        nn.init.constant_(prior.weight, 0.5)
    if match is not None:
        nn.init.zeros_(match.weight)


def known_scores(prior: nn.Linear | None, match: nn.Linear | None, features_CF: Tensor) -> Tensor:
    """What is known of candidates adds to their scores (C,)."""
    scores_C = features_CF.new_zeros(len(features_CF))
    if prior is not None:
        scores_C = scores_C + prior(features_CF[:, : len(PRIOR)]).float().squeeze(-1)
    if match is not None:  # one that was saved before MATCH grew reads fewer of them
        known_CF = features_CF[:, len(PRIOR) : len(PRIOR) + match.in_features]
        scores_C = scores_C + match(known_CF).float().squeeze(-1)
    return scores_C


def segment_softmax(scores_C: Tensor, owner_C: Tensor, n: int, *, nil: bool = False) -> Tensor:
    """Log-probabilities of each mention's candidates (C,), or with nil (C + n,), those of NIL, whose score is 0, after
    them. n: mentions."""
    if nil:
        scores_C = torch.cat([scores_C, scores_C.new_zeros(n)])
        owner_C = torch.cat([owner_C, torch.arange(n, device=owner_C.device)])
    highest_M = scores_C.new_full((n,), float("-inf")).scatter_reduce(0, owner_C, scores_C.detach(), "amax")
    shifted_C = scores_C - highest_M[owner_C]
    sums_M = scores_C.new_zeros(n).index_add(0, owner_C, shifted_C.exp())
    return shifted_C - sums_M.log()[owner_C]
