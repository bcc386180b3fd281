"""A small torch module of two parts, in a shim."""

import torch
from torch import nn

from spacy_luke.bridge.wrapper import TorchShim


class Part(nn.Module):
    """A module with a float `dropout`, as attention has."""

    def __init__(self, width: int):
        super().__init__()
        self.dropout = 0.1
        self.linear = nn.Linear(width, width)


class Net(nn.Module):
    def __init__(self, width: int, rows: int):
        super().__init__()
        self.table = nn.Embedding(rows, width)
        self.part = Part(width)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("scale", torch.ones(2))
        self.shift = nn.Parameter(torch.zeros(()))  # a number alone, as the linker's NIL is

    def forward(self, rows):
        return self.part.linear(self.drop(self.table(rows))) + self.shift


def make_shim(*, created: bool = True, trainable: bool = True, seed: int = 0) -> TorchShim:
    shim = TorchShim(lambda settings: Net(settings["width"], settings["rows"]), trainable=trainable)
    if created:
        torch.manual_seed(seed)
        shim.create({"width": 3, "rows": 5})
    return shim


def run(shim: TorchShim, *, is_train: bool) -> torch.Tensor:
    with shim.running(is_train=is_train) as module:
        return module(torch.tensor([0, 3, 3]))
