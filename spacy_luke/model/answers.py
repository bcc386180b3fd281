"""The head of extractive question answering.

N packed word states, B windows, D model width, L pieces of the longest window.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class AnswerHead(nn.Module):
    """A linear layer on each word state: how well an answer begins there, and ends there (LUKE, section 4.5)."""

    def __init__(self, hidden_size: int):
        super().__init__()
        self.qa_outputs = nn.Linear(hidden_size, 2)

    def forward(self, words_ND: Tensor) -> Tensor:
        """RETURNS: logits of start and end (N, 2)."""
        logits_N2: Tensor = self.qa_outputs(words_ND)
        return logits_N2


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
