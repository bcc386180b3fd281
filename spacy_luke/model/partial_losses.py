"""Losses of what is only partly known: the negative logarithm of the probability of all that may hold.

Where a data set has no label for something, it may be there all the same: what is learned is that the classes that are
possible have, together, all of the probability (the marginal likelihood of partial annotation; Tsuboi et al., COLING
2008, for sequences). Each loss returns its gradient by the logits.

E spans or units, K spans that are encoded, S sets of classes, L classes.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ..batch.allowed import ANY, FIRST_SET
from .losses import binary_cross_entropy, cross_entropy, multi_label_cross_entropy
from .taught_losses import taught_binary_cross_entropy, taught_cross_entropy


def marginal_cross_entropy(logits_EL: Tensor, gold_E: Tensor, allowed_SL: Tensor) -> tuple[Tensor, Tensor]:
    """-log of the summed probability of the classes that a unit may have, summed over the units of which something is
    known, and its gradient by the logits, (E, L).

    gold_E: the class, from 0; ANY, -1, where any may be; -2 - s for one of those in row s of allowed_SL.
    """
    log_EL = logits_EL.detach().float().log_softmax(-1)
    allowed_EL = _allowed(gold_E, allowed_SL)
    possible_EL = log_EL.masked_fill(~allowed_EL, -math.inf)
    total_E = possible_EL.logsumexp(-1)
    known_E = gold_E != ANY
    loss = -(total_E * known_E).sum()
    return loss, (log_EL.exp() - (possible_EL - total_E[:, None]).exp()) * known_E[:, None]


def span_loss(
    logits_KL: Tensor,
    proposals_E: Tensor | None,
    kept_K: Tensor,
    gold_E: Tensor,
    allowed_SL: Tensor | None,
    taught_EL: Tensor | None = None,
) -> tuple[Tensor, tuple[Tensor, Tensor | None]]:
    """The summed loss of the labels of the spans kept_K, and of the proposals of all spans where there are any, and its
    gradients by both. allowed_SL: None where no gold is one of several classes; then it is that of the papers.
    taught_EL: what is learned of another model beside the gold, None where nothing is."""
    if allowed_SL is None:
        loss, d_logits = cross_entropy(logits_KL, gold_E[kept_K])
    else:
        loss, d_logits = marginal_cross_entropy(logits_KL, gold_E[kept_K], allowed_SL)
    if taught_EL is not None:
        more, d_more = taught_cross_entropy(logits_KL, taught_EL[kept_K])
        loss, d_logits = loss + more, d_logits + d_more
    if proposals_E is None:
        return loss, (d_logits, None)
    if allowed_SL is None:
        extra, d_proposals = binary_cross_entropy(proposals_E, gold_E)
    else:
        extra, d_proposals = marginal_binary_cross_entropy(proposals_E, gold_E, allowed_SL, logits_KL, kept_K)
    if taught_EL is not None:
        more, d_more = taught_binary_cross_entropy(proposals_E, taught_EL)
        extra, d_proposals = extra + more, d_proposals + d_more
    return loss + extra, (d_logits, d_proposals)


def marginal_binary_cross_entropy(
    logits_E: Tensor, gold_E: Tensor, allowed_SL: Tensor, logits_KL: Tensor, kept_K: Tensor
) -> tuple[Tensor, Tensor]:
    """Binary cross-entropy of "is any mention", summed over the spans of which something is known, and its gradient by
    the logits, (E,).

    A span that may be none, or a mention with one of some labels, is "no mention" with probability 1 - p (1 - r): p
    that it is a mention, r how much of a mention's probability these labels have. r is what the classifier says of the
    spans kept_K (logits_KL, which learn nothing of it), and elsewhere the share of these labels among all.
    """
    logits_E = logits_E.detach().float()
    is_set_E = gold_E <= FIRST_SET
    rows_E = (FIRST_SET - gold_E).clamp(min=0)
    is_mention_E = torch.where(is_set_E, ~allowed_SL[rows_E, 0], gold_E > 0)
    is_open_E = is_set_E & ~is_mention_E
    share_S = allowed_SL[:, 1:].float().mean(-1)
    share_E = share_S[rows_E]
    share_E[kept_K] = _share(logits_KL, allowed_SL[rows_E[kept_K]])
    share_E = share_E * is_open_E
    known_E = gold_E != ANY
    plain_E = F.binary_cross_entropy_with_logits(logits_E, is_mention_E.float(), reduction="none")
    # 1 - p (1 - r) = (1 + r exp z) / (1 + exp z), with z the logit
    more_E = torch.where(is_open_E, F.softplus(logits_E + share_E.clamp(min=1e-30).log()), 0.0)
    gradient_E = logits_E.sigmoid() - is_mention_E.float()
    gradient_E = gradient_E - torch.where(is_open_E, (logits_E + share_E.clamp(min=1e-30).log()).sigmoid(), 0.0)
    return ((plain_E - more_E) * known_E).sum(), gradient_E * known_E


def marginal_multi_label(
    logits_UL: Tensor, gold_UL: Tensor, *, groups: int, focus: float = 0.0
) -> tuple[Tensor, Tensor]:
    """As `multi_label_cross_entropy`, summed over the labels of which it is known whether they hold, plus -log of the
    probability that at least one of a group holds, summed over units and their groups; and its gradient, (U, L).

    gold_UL: 1 and 0, or a probability; -1 where it is not known; 2 of the labels of a unit's first group, 3 of its
    second, and so on. groups: the most that a unit has, so that nothing waits for gold_UL's device.
    """
    logits_UL = logits_UL.detach().float()
    known_UL = (gold_UL >= 0) & (gold_UL <= 1)
    target_UL = torch.where(known_UL, gold_UL, 0.0).float()
    loss, gradient_UL = multi_label_cross_entropy(logits_UL, target_UL, focus=focus, known_UL=known_UL)
    for k in range(2, groups + 2):
        group_UL = gold_UL == k
        has_U = group_UL.any(1)
        none_UL = torch.where(group_UL, F.logsigmoid(-logits_UL), 0.0)
        none_U = none_UL.sum(-1).clamp(max=-1e-30)  # log of the probability that none of them holds
        some_U = torch.where(none_U > -math.log(2), (-none_U.expm1()).log(), (-none_U.exp()).log1p())
        loss = loss - (some_U * has_U).sum()
        odds_U = torch.where(has_U, (none_U - some_U).exp(), 0.0)
        gradient_UL = gradient_UL - torch.where(group_UL, logits_UL.sigmoid() * odds_U[:, None], 0.0)
    return loss, gradient_UL


def _allowed(gold_E: Tensor, allowed_SL: Tensor) -> Tensor:
    """Whether a unit may have a class, (E, L)."""
    n_classes = allowed_SL.shape[1]
    one_EL = F.one_hot(gold_E.clamp(min=0), n_classes).bool() | (gold_E == ANY)[:, None]
    set_EL = allowed_SL[(FIRST_SET - gold_E).clamp(min=0)]
    return torch.where((gold_E <= FIRST_SET)[:, None], set_EL, one_EL)


def _share(logits_KL: Tensor, allowed_KL: Tensor) -> Tensor:
    """How much of the probability of all labels but the first those have that are allowed, (K,)."""
    share_KL = logits_KL.detach().float()[:, 1:].softmax(-1)
    return (share_KL * allowed_KL[:, 1:]).sum(-1)
