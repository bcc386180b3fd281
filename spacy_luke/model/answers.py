"""The head of extractive question answering.

N packed word states, B windows, D model width, L pieces of the longest window.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence


class AnswerHead(nn.Module):
    """A linear layer on each word state: how well an answer begins there, and ends there (LUKE, section 4.5)."""

    def __init__(self, hidden_size: int):
        super().__init__()
        self.qa_outputs = nn.Linear(hidden_size, 2)

    def forward(self, words_ND: Tensor) -> Tensor:
        """RETURNS: logits of start and end (N, 2)."""
        logits_N2: Tensor = self.qa_outputs(words_ND)
        return logits_N2


def start_end_cross_entropy(logits_N2: Tensor, lengths: Sequence[int], gold_B2: Tensor) -> tuple[float, Tensor]:
    """Mean of the cross-entropies of start and end, summed over windows, and its gradient by the logits, (N, 2).

    lengths: pieces of each window; gold_B2: first and last piece of the answer in its window, 0 ([CLS]) where there is
    none. The original's batches also count the logits of padding; here there is none.
    """
    logits_BL2 = pad_sequence(logits_N2.detach().float().split(list(lengths)), True, float("-inf"))
    real_BL = (torch.arange(logits_BL2.shape[1]) < torch.tensor(lengths)[:, None]).to(logits_N2.device)
    log_BL2 = logits_BL2.log_softmax(1)
    index_B12 = gold_B2[:, None]
    loss = -log_BL2.gather(1, index_B12).sum() / 2
    gradient_BL2 = log_BL2.exp() / 2
    gradient_BL2.scatter_add_(1, index_B12, torch.full_like(index_B12, -0.5, dtype=gradient_BL2.dtype))
    return float(loss), gradient_BL2[real_BL]
