"""Small encoders whose every parameter is noise, and ragged inputs for them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from spacy_luke.model.config import LukeConfig
from spacy_luke.model.luke import LukeEncoder, Mentions, Windows

LENGTHS = (9, 4, 4, 7, 1, 12, 4)  # pieces and mentions of some windows: equal and unequal neighbours, and none
COUNTS = (5, 0, 3, 3, 1, 0, 6)


def add_noise(module: nn.Module, *, seed: int = 0) -> nn.Module:
    """Overwrite every parameter by noise of standard deviation 0.2, LayerNorm weights by 1 + noise."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in module.named_parameters():
            p.normal_(0, 0.2, generator=generator)
            if name.endswith("norm.weight"):
                p.add_(1)
    return module.eval()


def make_encoder(*, seed: int = 0, **settings: Any) -> LukeEncoder:
    sizes = {"vocab_size": 50, "entity_vocab_size": 9, "hidden_size": 24, "num_layers": 3, "num_heads": 4}
    sizes |= {"intermediate_size": 40, "entity_size": 8, "max_positions": 40, **settings}
    return add_noise(LukeEncoder(LukeConfig(**sizes)), seed=seed)


def make_windows(lengths: Sequence[int] = LENGTHS, *, seed: int = 1, types: int = 0) -> Windows:
    generator = torch.Generator().manual_seed(seed)
    pieces = torch.randint(0, 50, (sum(lengths),), generator=generator)
    kinds = torch.randint(0, types, (sum(lengths),), generator=generator) if types else None
    return Windows(pieces, list(lengths), kinds)


def make_mentions(
    lengths: Sequence[int] = LENGTHS, counts: Sequence[int] = COUNTS, *, seed: int = 2, types: int = 0
) -> Mentions:
    generator = torch.Generator().manual_seed(seed)
    ends = [torch.randint(0, n, (c, 2), generator=generator).sort(1).values for n, c in zip(lengths, counts)]
    first, last = torch.cat(ends).unbind(1)
    rows = torch.randint(0, 9, (sum(counts),), generator=generator)
    kinds = torch.randint(0, types, (sum(counts),), generator=generator) if types else None
    return Mentions(rows, first, last, list(counts), kinds)


def pick(windows: Windows, mentions: Mentions, order: Sequence[int]) -> tuple:
    """The windows of these indices, in this order, with their mentions."""

    def parts(x: Any, sizes: Sequence[int]) -> Any:
        return None if x is None else torch.cat([x.split(list(sizes))[i] for i in order])

    lengths, counts = windows.lengths, mentions.counts
    return (
        Windows(parts(windows.pieces_N, lengths), [lengths[i] for i in order], parts(windows.types_N, lengths)),
        Mentions(
            parts(mentions.entities_E, counts),
            parts(mentions.first_E, counts),
            parts(mentions.last_E, counts),
            [counts[i] for i in order],
            parts(mentions.types_E, counts),
        ),
    )


def integers(*shape: int, seed: int = 0) -> torch.Tensor:
    """int8, from -127 to 127."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-127, 128, shape, generator=generator, dtype=torch.int8)
    x[:1] = 127  # the largest sums that there are
    return x
