"""Attention of noise in windows of all kinds, and the paper's formula as a loop."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from spacy_luke.model.attention import Attention
from tests.model.noise import COUNTS, LENGTHS, add_noise

CPU = torch.device("cpu")
D, H = 12, 3
BATCHES = {
    "ragged": (LENGTHS, COUNTS),
    "equal": ((5, 5, 5), (2, 2, 2)),
    "one": ((6,), (4,)),
    "no_entities": ((3, 5), (0, 0)),
    "one_piece": ((1, 1), (1, 0)),
}


def attention_by_loop(
    attention: Attention, words: list[Tensor], entities: list[Tensor], *, one_way: bool, group: int = 1
) -> tuple:
    """Attention inside one window as in the paper: the query matrix depends on the kinds of both tokens, and every
    score, weight and sum is written out. one_way: words see words; an entity sees words and its group, so many
    consecutive entities, itself among them."""
    tokens = [("w", x) for x in words] + [("e", x) for x in entities]
    width = D // H
    names = {"ww": "query", "we": "w2e_query", "ew": "e2w_query", "ee": "e2e_query"}
    outputs = []
    for i, (kind, x) in enumerate(tokens):
        seen = range(len(tokens))
        if one_way:
            first = len(words) + (i - len(words)) // group * group
            seen = [*range(len(words)), *(range(first, first + group) if kind == "e" else [])]
        joined = []
        for h in range(H):
            part = slice(h * width, (h + 1) * width)
            scores, values = [], []
            for j in seen:
                other, y = tokens[j]
                query = getattr(attention, names[kind + other] if attention.entity_aware else "query")
                scores.append(float(query(x)[part] @ attention.key(y)[part]) / math.sqrt(width))
                values.append(attention.value(y)[part])
            powers = [math.exp(s - max(scores)) for s in scores]
            joined.append(sum(p / sum(powers) * v for p, v in zip(powers, values)))
        outputs.append(attention.output(torch.cat(joined)))
    return outputs[: len(words)], outputs[len(words) :]


@torch.no_grad()
def expected(
    attention: Attention, words_ND: Tensor, entities_ED: Tensor, lengths, counts, *, one_way: bool, group: int = 1
) -> tuple:
    words, entities = [], []
    for w, e in zip(words_ND.split(list(lengths)), entities_ED.split(list(counts))):
        x, y = attention_by_loop(attention, list(w), list(e), one_way=one_way, group=group)
        words, entities = words + x, entities + y
    return torch.stack(words), torch.stack(entities) if entities else entities_ED


def make(name: str, aware: bool) -> tuple:
    lengths, counts = BATCHES[name]
    return *make_sizes(lengths, counts, aware), list(lengths), list(counts)


def make_sizes(lengths: Sequence[int], counts: Sequence[int], aware: bool) -> tuple:
    attention = add_noise(Attention(D, H, entity_aware=aware, dropout=0.1).double(), seed=3)
    generator = torch.Generator().manual_seed(4)
    words = torch.randn(sum(lengths), D, generator=generator, dtype=torch.double)
    entities = torch.randn(sum(counts), D, generator=generator, dtype=torch.double)
    return attention, words, entities
