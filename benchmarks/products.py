"""The matrix products of luke_ner's `full` mode and nothing else: what its time is measured against.

The same batches, with the same shapes for every linear layer and every attention, but random numbers in buffers that
exist beforehand: no embeddings, softmax, activations, LayerNorms, residuals, packing or Python around them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from spacy.tokens import Doc
from torch import Tensor

from spacy_luke.batch.batches import batch_items, make_batch

ROWS = 1024  # of the feed-forward at once, as in spacy_luke.model.layer


@dataclass(frozen=True)
class Shapes:
    """Of one batch. windows: words and entities of each."""

    words: int
    entities: int
    windows: Sequence[tuple[int, int]]


def shapes_of(ner: Any, docs: Sequence[Doc]) -> list[Shapes]:
    items = (item for i, doc in enumerate(docs) for item in ner.items(i, doc))
    batches = batch_items(items, size=ner.cfg["batch_size"], make=make_batch)
    return [Shapes(sum(b.lengths), sum(b.counts), list(zip(b.lengths, b.counts))) for b in batches]


class Products:
    """Runs the products of some batches; `flops` counts them."""

    def __init__(self, config: Any, shapes: Sequence[Shapes], *, n_labels: int, dtype: torch.dtype):
        self.config = config
        self.shapes = shapes
        self.dtype = dtype
        self.n_labels = n_labels
        d, f = config.hidden_size, config.intermediate_size
        sizes = {"square": (8, d, d), "up": (f, d), "down": (d, f)}
        self.weights = [{k: torch.randn(s).to(dtype) for k, s in sizes.items()} for _ in range(config.num_layers)]
        self.head = torch.randn(n_labels, 3 * d).to(dtype)
        self.buffers: dict[tuple[str, tuple[int, ...]], Tensor] = {}
        self.flops = 0

    def run(self) -> None:
        self.flops = 0
        with torch.inference_mode():
            for batch in self.shapes:
                for weights in self.weights:
                    self._linear(batch, weights)
                    for n_words, n_entities in batch.windows:
                        self._attention(n_words, n_entities)
                self._mm(batch.entities, self.head)

    def _linear(self, batch: Shapes, weights: dict[str, Tensor]) -> None:
        square = weights["square"]
        for i in range(4):  # query, w2e_query, key, value; e2w_query, e2e_query, key, value
            self._mm(batch.words, square[i])
            self._mm(batch.entities, square[4 + i])
        for rows in (batch.words, batch.entities):
            self._mm(rows, square[0])  # output
            for first in range(0, rows, ROWS):
                part = min(ROWS, rows - first)
                self._mm(part, weights["up"])
                self._mm(part, weights["down"])

    def _attention(self, n_words: int, n_entities: int) -> None:
        for queries in (n_words, n_entities):
            for keys in (n_words, n_entities):
                if not queries or not keys:
                    continue
                heads, width = self.config.num_heads, self.config.hidden_size // self.config.num_heads
                q, k = self._buffer("q", heads, queries, width), self._buffer("k", heads, keys, width)
                scores = self._buffer("scores", heads, queries, keys)
                torch.bmm(q, k.transpose(1, 2), out=scores)
                torch.bmm(scores, k, out=self._buffer("out", heads, queries, width))
                self.flops += 4 * heads * queries * keys * width

    def _mm(self, rows: int, weight: Tensor) -> None:
        if rows:
            out, inside = weight.shape
            torch.mm(self._buffer("in", rows, inside), weight.t(), out=self._buffer("out", rows, out))
            self.flops += 2 * rows * inside * out

    def _buffer(self, name: str, *shape: int) -> Tensor:
        """A part of one block for each name and width, so that a batch does not meet cold memory of its own."""
        key = (name, shape[1:] if name == "scores" else shape[-1:])
        needed = torch.Size(shape).numel()
        if key not in self.buffers or self.buffers[key].numel() < needed:
            self.buffers[key] = torch.randn(needed).to(self.dtype)
        return self.buffers[key][:needed].view(shape)
