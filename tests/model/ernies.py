"""A small ERNIE of noise, what it knows of its windows, and a dense reference of it."""

import torch

from spacy_luke.model.ernie import (
    ErnieConfig,
    ErnieEncoder,
    Knowledge,
)
from spacy_luke.model.linear import activate
from spacy_luke.model.luke import Windows
from tests.model.noise import add_noise

LENGTHS = (9, 4, 4, 7, 1, 12, 4, 30)
COUNTS = (5, 0, 3, 3, 0, 1, 0, 29)  # none, some, and every piece but [CLS]
KINDS = ("sim", "mix", "norm", "sim", "norm")
SIZE = 12


def make_ernie(*, seed=0, **settings) -> ErnieEncoder:
    sizes = {"vocab_size": 50, "hidden_size": 24, "num_layers": 5, "num_heads": 4, "intermediate_size": 40}
    sizes |= {"max_positions": 40, "entity_size": SIZE, "entity_heads": 3, "layer_kinds": KINDS, **settings}
    return add_noise(ErnieEncoder(ErnieConfig(**sizes)), seed=seed)


def make_knowledge(lengths=LENGTHS, counts=COUNTS, *, seed=3, size=SIZE) -> Knowledge:
    """Entities at any pieces but [CLS], in no order."""
    generator = torch.Generator().manual_seed(seed)
    places = [1 + torch.randperm(n - 1, generator=generator)[:count] for n, count in zip(lengths, counts)]
    assert [len(x) for x in places] == list(counts)
    return Knowledge(torch.randn(sum(counts), size, generator=generator), torch.cat(places), list(counts))


def pick(windows: Windows, knowledge: Knowledge, order) -> tuple:
    def parts(x, sizes):
        return torch.cat([x.split(list(sizes))[i] for i in order])

    lengths, counts = windows.lengths, knowledge.counts
    return (
        Windows(parts(windows.pieces_N, lengths), [lengths[i] for i in order]),
        Knowledge(parts(knowledge.vectors_EH, counts), parts(knowledge.at_E, counts), [counts[i] for i in order]),
    )


def dense_attention(attention, x_LD, mask_L):
    heads = attention.num_heads
    q, k, v = (
        f(x_LD).unflatten(-1, (heads, -1)).transpose(0, 1) for f in (attention.query, attention.key, attention.value)
    )
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + (1 - mask_L) * -10000.0
    return attention.output((scores.softmax(-1) @ v).transpose(0, 1).flatten(1))


def dense_window(encoder, pieces_L, vectors_EH, at_E):
    """The original's computation of one window, written out: an entity row for each piece, and a mask.

    RETURNS: words (L, D) and rows of the entity stream (L, H).
    """
    config = encoder.config
    every_L, mask_L = torch.ones(len(pieces_L)), torch.zeros(len(pieces_L))
    e_LH = torch.zeros(len(pieces_L), config.entity_size)
    mask_L[0] = 1
    mask_L[at_E] = 1
    e_LH[at_E] = vectors_EH
    h_LD = encoder.words(Windows(pieces_L, [len(pieces_L)]))
    for layer, kind in zip(encoder.layers, config.layer_kinds, strict=True):
        h_LD = layer.attention_norm(h_LD + dense_attention(layer.attention, h_LD, every_L))
        if kind == "sim":
            u_LF = activate(layer.up(h_LD), config.activation)
            h_LD = layer.output_norm(h_LD + layer.down(u_LF))
            continue
        if kind == "norm":
            e_LH = layer.entity_attention_norm(e_LH + dense_attention(layer.entity_attention, e_LH, mask_L))
        e_LH = e_LH * mask_L[:, None]
        u_LF = activate(layer.up(h_LD) + layer.entity_up(e_LH), config.activation)
        if config.fusion == "paper":
            h_LD, e_LH = (activate(f(u_LF), config.activation) for f in (layer.down, layer.entity_down))
        else:
            h_LD = layer.output_norm(h_LD + layer.down(u_LF))
            e_LH = layer.entity_output_norm(e_LH + layer.entity_down(u_LF))
    return h_LD, e_LH


def dense(encoder, windows, knowledge):
    words, entities = [], []
    for i in range(len(windows.lengths)):
        window, known = pick(windows, knowledge, [i])
        h, e = dense_window(encoder, window.pieces_N, known.vectors_EH, known.at_E)
        words.append(h)
        entities.append(e[known.at_E])
    return torch.cat(words), torch.cat(entities)


def assert_close(got, expected, *, atol=3e-6):
    for g, e in zip(got, expected, strict=True):
        torch.testing.assert_close(g.detach(), e.detach(), atol=atol, rtol=1e-5)
