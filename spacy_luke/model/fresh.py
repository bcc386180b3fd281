"""Fresh parameters of encoders and heads."""

import torch
from torch import nn


def initialize(module: nn.Module, *, std: float, generator: torch.Generator | None = None) -> None:
    """Fresh parameters as in BERT: normal matrices, zero biases, LayerNorms of one."""
    for part in module.modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):
            nn.init.normal_(part.weight, std=std, generator=generator)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.LayerNorm):
            nn.init.ones_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
