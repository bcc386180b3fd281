"""The losses of all tasks and of pretraining: what the logits of a head lose against gold. Where gold is only partly
known: partial_losses.py.

Losses of components also return their gradient by the logits, which is written down, so that no graph is kept; those of
pretraining are differentiated by torch.

E spans, U units, L labels; N packed word states, B windows; M masked mentions, C candidates of all mentions one after
another; K chosen rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from .linking import segment_softmax

_IGNORED = -1  # the label of what is not predicted, as in the originals


def cross_entropy(logits_EL: Tensor, gold_E: Tensor) -> tuple[Tensor, Tensor]:
    """Summed cross-entropy over the spans whose class is known (0 or more), and its gradient by the logits, (E, L)."""
    known_E = gold_E >= 0
    log_EL = logits_EL.detach().float().log_softmax(-1)
    target_E = gold_E.clamp(min=0)
    loss = -(log_EL.gather(1, target_E[:, None]).squeeze(1) * known_E).sum()
    return loss, (log_EL.exp() - F.one_hot(target_E, logits_EL.shape[1])) * known_E[:, None]


def binary_cross_entropy(logits_E: Tensor, gold_E: Tensor) -> tuple[Tensor, Tensor]:
    """Summed binary cross-entropy of "is any mention" over the known spans, and its gradient by the logits, (E,)."""
    known_E, target_E = gold_E >= 0, (gold_E > 0).float()
    logits_E = logits_E.detach().float()
    loss = F.binary_cross_entropy_with_logits(logits_E, target_E, reduction="none")
    return (loss * known_E).sum(), (logits_E.sigmoid() - target_E) * known_E


def multi_label_cross_entropy(
    logits_UL: Tensor, gold_UL: Tensor, *, focus: float = 0.0, known_UL: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Binary cross-entropy summed over units and labels, those that are known where this is said, and its gradient by
    the logits, (U, L).

    focus: weighs a label that does not hold by p ** focus, its probability, so that thousands of labels that are rarely
    right do not drown the few that are (the asymmetric loss of Ben-Baruch et al., ICCV 2021, with gamma+ = 0 and no
    margin); 0: the papers' loss.
    """
    logits_UL = logits_UL.detach().float().requires_grad_()
    with torch.enable_grad():
        right_UL = gold_UL * F.logsigmoid(logits_UL)
        wrong_UL = (1 - gold_UL) * F.logsigmoid(-logits_UL)
        if focus:
            wrong_UL = wrong_UL * (focus * F.logsigmoid(logits_UL)).exp()
        loss_UL = -(right_UL + wrong_UL)
        loss = (loss_UL if known_UL is None else torch.where(known_UL, loss_UL, 0.0)).sum()
        (gradient_UL,) = torch.autograd.grad(loss, logits_UL)
    return loss.detach(), gradient_UL


@dataclass(frozen=True)
class GoldAnswers:
    """places_B2: first and last piece of the answer in its window, 0 ([CLS]) where there is none; rows_N: of each piece
    in a table (B, L) of all windows, L pieces each; longest: L."""

    places_B2: Tensor
    rows_N: Tensor
    longest: int


def gold_answers(places_B2: NDArray[np.int64], lengths: Sequence[int]) -> GoldAnswers:
    """Made on the host (see `to_device`). lengths: pieces of each window."""
    longest = max(lengths, default=0)
    rows_N = [np.arange(b * longest, b * longest + length) for b, length in enumerate(lengths)]
    return GoldAnswers(torch.from_numpy(places_B2), torch.from_numpy(np.concatenate(rows_N)), longest)


def start_end_cross_entropy(logits_N2: Tensor, gold: GoldAnswers) -> tuple[Tensor, Tensor]:
    """Mean of the cross-entropies of start and end, summed over windows, and its gradient by the logits, (N, 2).

    The original's batches also count the logits of padding; here there is none.
    """
    logits_N2, size = logits_N2.detach().float(), len(gold.places_B2) * gold.longest
    logits_P2 = logits_N2.new_full((size, 2), float("-inf")).index_copy(0, gold.rows_N, logits_N2)
    log_BL2 = logits_P2.unflatten(0, (-1, gold.longest)).log_softmax(1)
    index_B12 = gold.places_B2[:, None]
    loss = -log_BL2.gather(1, index_B12).sum() / 2
    gradient_BL2 = log_BL2.exp() / 2
    gradient_BL2.scatter_add_(1, index_B12, torch.full_like(index_B12, -0.5, dtype=gradient_BL2.dtype))
    return loss, gradient_BL2.flatten(0, 1)[gold.rows_N]


def candidate_cross_entropy(
    scores_C: Tensor, owner_C: Tensor, gold_M: Tensor, *, nil: bool = False
) -> tuple[Tensor, Tensor]:
    """Cross-entropy summed over the mentions whose gold candidate is known, and its gradient by the scores (C,).

    gold_M: the place of each mention's gold entity among the C candidates, -1 where it is not known, and with nil where
    it is NIL.
    """
    n, size = len(gold_M), len(scores_C)
    log_C = segment_softmax(scores_C.detach().float(), owner_C, n, nil=nil)
    if nil:
        each_M = torch.arange(n, device=owner_C.device)
        gold_M, owner_C = torch.where(gold_M >= 0, gold_M, size + each_M), torch.cat([owner_C, each_M])
    known_M, place_M = gold_M >= 0, gold_M.clamp(min=0)
    gradient_C = (log_C.exp() * known_M[owner_C]).index_add(0, place_M, -known_M.to(log_C.dtype))
    return -log_C[place_M].where(known_M, log_C.new_zeros(())).sum(), gradient_C[:size]


def summed_cross_entropy(logits_KC: Tensor, gold_K: Tensor) -> tuple[Tensor, Tensor]:
    """Sum over the labels that are not -1, and how many they are."""
    total = F.cross_entropy(logits_KC.float(), gold_K, ignore_index=_IGNORED, reduction="sum")
    return total, (gold_K != _IGNORED).sum()


def mean_cross_entropy(logits_KC: Tensor, gold_K: Tensor) -> Tensor:
    """Mean over the labels that are not -1; 0 where there are none."""
    total, count = summed_cross_entropy(logits_KC, gold_K)
    return total / count.clamp(min=1)


def pretraining_losses(
    logits: tuple[Tensor, Tensor, Tensor], gold: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean cross-entropy of each head of `PretrainingHeads` (scalars); the original's loss is their sum.

    gold: classes of each head's rows. Labels of -1 do not count; a loss is 0 where none counts (in the original it is
    not a number).
    """
    words, sentences, entities = (mean_cross_entropy(x, y) for x, y in zip(logits, gold, strict=True))
    return words, sentences, entities
