"""The spans that `luke_ner` finds: read from the scores of a batch, and decided by the bias of "no entity".

E spans of a batch or a Doc, K spans that are encoded, L classes, the first of them "none".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc

from ...annotations import scored_spans
from ...architectures.span_classifier import SpanScores
from ...batch.batches import SpanBatch
from ...batch.decode import greedy_flat
from ...bridge.finite import check_scores
from ...model.transfer import to_host
from .gold import SpanGold

BIAS_LIMIT = 6.0  # of the biases that `best_bias` tries, in steps of a quarter


@dataclass(frozen=True)
class FoundSpans:
    """Spans of a Doc whose best label is not "none": words [start, end), class (from 1), its logit and probability, and
    by how much that logit is above the one of "none"."""

    start_E: NDArray[np.int64]
    end_E: NDArray[np.int64]
    label_E: NDArray[np.int64]
    logit_E: NDArray[np.float64]
    probability_E: NDArray[np.float64]
    margin_E: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: Sequence[NDArray[np.float64]]) -> "FoundSpans":
        """From tables with these columns, in order of the words."""
        table = np.concatenate(parts) if parts else np.empty((0, 6))
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        start_E, end_E, label_E = (table[:, i].astype(np.int64) for i in range(3))
        return cls(start_E, end_E, label_E, *table[:, 3:].T)

    def above(self, bias: float, *, flat: bool) -> list[tuple[int, int, int]]:
        """Words and class of the spans with this bias for "none"; flat: without overlap, the best first."""
        chosen = np.flatnonzero(self.margin_E > bias)
        if flat:
            chosen = chosen[greedy_flat(self.start_E[chosen], self.end_E[chosen], self.logit_E[chosen])]
        return list(zip(*(x[chosen].tolist() for x in (self.start_E, self.end_E, self.label_E)), strict=True))


def on_host(batch: SpanBatch, scores: SpanScores, docs: Sequence[Doc], *, name: str) -> SpanScores:
    """The scores of a batch without the proposals, of which it is asked only whether they are numbers: a GPU is waited
    for once. Raises ValueError, naming the component `name`, where one is none."""
    proposals_E, asked = scores.proposals_E, [scores.kept_K, scores.logits_KL]
    if proposals_E is not None:
        asked.append(torch.isfinite(proposals_E).all())
    kept_K, logits_KL, *are_numbers = to_host(asked)
    if proposals_E is not None and not all(are_numbers):
        check_scores(proposals_E, batch.owner_E, docs, name=name)
    check_scores(logits_KL, lambda: batch.owner_E()[kept_K.numpy()], docs, name=name)
    return SpanScores(kept_K, logits_KL, None)


def read_spans(batch: SpanBatch, scores: SpanScores, *, none_bias: float) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """For each document of the batch a row (start, end, class, logit, probability, margin) for each span found.

    scores: on the host.
    """
    logits_KL = scores.logits_KL
    if none_bias:
        logits_KL = torch.cat([logits_KL[:, :1] + none_bias, logits_KL[:, 1:]], 1)
    label_K = logits_KL.argmax(-1)
    some_K = label_K > 0
    kept = scores.kept_K[some_K].numpy()
    if not len(kept):
        return
    best = label_K[some_K, None]
    logit = logits_KL[some_K].gather(1, best)[:, 0].numpy()
    probability = logits_KL[some_K].softmax(-1).gather(1, best)[:, 0].numpy()
    margin = logit - (logits_KL[some_K, 0].numpy() - none_bias)
    label = best[:, 0].numpy()
    rows = np.stack([batch.start_E[kept], batch.end_E[kept], label, logit, probability, margin], 1)
    owner = batch.owner_E()[kept]
    for i in np.unique(owner).tolist():
        yield i, rows[owner == i]


def best_bias(
    found: Sequence[FoundSpans], golds: Sequence[SpanGold], labels: Sequence[str], *, total: int, flat: bool
) -> tuple[float, float]:
    """The bias of "none" with the best F1, and that F1; of equal ones the nearest to 0.

    labels: of the classes from 1; total: how many gold spans count, also of those that cannot be predicted.
    """
    best = (-1.0, 0.0, 0.0)
    for bias in np.arange(-BIAS_LIMIT, BIAS_LIMIT + 0.1, 0.25).round(2).tolist():
        chosen = [one.above(bias, flat=flat) for one in found]
        said = [{(start, end, labels[number - 1]) for start, end, number in spans} for spans in chosen]
        scored = [scored_spans(one.scope, one.spans, spans, nested=not flat) for one, spans in zip(golds, said)]
        right = sum(len(gold & spans) for gold, spans in scored)
        best = max(best, (2 * right / (sum(len(spans) for _, spans in scored) + total), -abs(bias), bias))
    return best[2], best[0]
