"""The head of extractive question answering.

N packed word states, D model width.
"""

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
