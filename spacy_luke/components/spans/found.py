"""The spans that `luke_ner` finds: read from the scores of a batch, and decided by the bias of "no entity".

E spans of a batch or a Doc, K spans that are encoded, L classes, the first of them "none".
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, SpanGroup

from ...annotations import scored_spans, set_score
from ...architectures.span_classifier import SpanScores
from ...batch.batches import SpanBatch
from ...batch.decode import first_equal, greedy_flat
from ...bridge.finite import check_scores
from ...model.transfer import begin_to_host
from .gold import ScoredGold

BIAS_LIMIT = 6.0  # of the biases that are tried, in steps of a quarter
CHANCES = (0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0)  # that are tried
_MOST_LOSS = 0.0005  # of F1, for fewer spans that are encoded
_MOST_LOST = 0.002  # of the right spans: in other domains than the dev data's proposals are less sure


@dataclass(frozen=True)
class FoundSpans:
    """Spans of a Doc whose best label is not "none": words [start, end), class (from 1), its logit and probability, by
    how much that logit is above the one of "none", and the probability of the proposal (1 where nothing proposes)."""

    start_E: NDArray[np.int64]
    end_E: NDArray[np.int64]
    label_E: NDArray[np.int64]
    logit_E: NDArray[np.float64]
    probability_E: NDArray[np.float64]
    margin_E: NDArray[np.float64]
    chance_E: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: Sequence[NDArray[np.float64]]) -> "FoundSpans":
        """From tables with these columns, in order of the words."""
        table = np.concatenate(parts) if parts else np.empty((0, 7))
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        start_E, end_E, label_E = (table[:, i].astype(np.int64) for i in range(3))
        return cls(start_E, end_E, label_E, *table[:, 3:].T)

    def above(self, bias: float, *, flat: bool, chance: float = 0.0) -> list[tuple[int, int, int]]:
        """Words and class of the spans with this bias for "none" and this chance at least; flat: without overlap, the
        best first."""
        return self._places(self._chosen(bias, flat=flat, chance=chance))

    def beside(self, entities: Sequence[Span], blocked_W: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Numbers of the spans that may be entities of doc.ents, without overlap, the best first: beside these, and
        without blocked words."""
        blocked = np.concatenate([[0], np.cumsum(blocked_W)])
        free = blocked[self.start_E] == blocked[self.end_E]
        for entity in entities:
            free &= (self.end_E <= entity.start) | (self.start_E >= entity.end)
        chosen: NDArray[np.int64] = np.flatnonzero(free)
        best = greedy_flat(self.start_E[chosen], self.end_E[chosen], self.logit_E[chosen])
        return np.asarray(chosen[best], dtype=np.int64)

    def shown(
        self, bias: float, *, before: float, flat: bool, chance: float = 0.0
    ) -> tuple[list[tuple[int, int, int]], list[float]]:
        """The spans that are `above` this bias, and the probability that each has with it. before: the bias that the
        probabilities were read with."""
        chosen = self._chosen(bias, flat=flat, chance=chance)
        probability = self.probability_E[chosen]
        none = probability * np.exp(before - self.margin_E[chosen])  # the probability of "none", before
        return self._places(chosen), (probability / (1 + none * np.expm1(bias - before))).tolist()

    def _chosen(self, bias: float, *, flat: bool, chance: float) -> NDArray[np.int64]:
        chosen = np.flatnonzero((self.margin_E > bias) & (self.chance_E >= chance))
        return chosen[greedy_flat(self.start_E[chosen], self.end_E[chosen], self.logit_E[chosen])] if flat else chosen

    def _places(self, chosen: NDArray[np.int64]) -> list[tuple[int, int, int]]:
        return list(zip(*(x[chosen].tolist() for x in (self.start_E, self.end_E, self.label_E)), strict=True))


def make_spans(doc: Doc, found: FoundSpans, chosen: NDArray[np.int64], labels: Sequence[str]) -> list[Span]:
    """Spans of a Doc for the chosen ones of what is found."""
    rows = zip(*(x[chosen].tolist() for x in (found.start_E, found.end_E, found.label_E)), strict=True)
    return [Span(doc, start, end, label=labels[number - 1]) for start, end, number in rows]


def give_scores(
    spans: Sequence[Span], scores: NDArray[np.float64], *, taken: Set[tuple[int, int]] = frozenset()
) -> None:
    """Write `span._.luke_score`, which spaCy keeps for a place in the text, whatever spans are there. taken: words
    [start, end) whose score is that of another span."""
    for span, score in zip(spans, scores.tolist(), strict=True):
        if (span.start, span.end) not in taken:
            set_score(span, score)


def write_group(doc: Doc, key: str, spans: Sequence[Span], scores: NDArray[np.float64]) -> None:
    """Write doc.spans[key], and the scores of its spans. Call it when doc.ents are as they will be."""
    give_scores(spans, scores, taken={(x.start, x.end) for x in doc.ents})
    doc.spans[key] = SpanGroup(doc, name=key, spans=list(spans), attrs={"scores": scores.astype("float32")})


def begin_scores(batch: SpanBatch, scores: SpanScores, docs: Sequence[Doc], *, name: str) -> Callable[[], SpanScores]:
    """What is returned gives the scores of a batch, on the host, with the proposals of the encoded spans alone (K,); of
    the rest it is asked only whether they are numbers: a GPU is waited for once. Spans of the same pieces have the
    logits of the first one of them. It raises ValueError, naming the component `name`, where a score is no number."""
    proposals_E, asked = scores.proposals_E, [scores.kept_K, scores.logits_KL]
    if proposals_E is not None:
        asked += [proposals_E[scores.kept_K], torch.isfinite(proposals_E).all()]
    arriving = begin_to_host(asked)

    def finish() -> SpanScores:
        kept_K, logits_KL, *proposed = arriving()
        if proposals_E is not None and not proposed[1]:
            check_scores(proposals_E, batch.owner_E, docs, name=name)
        check_scores(logits_KL, lambda: batch.owner_E()[kept_K.numpy()], docs, name=name)
        equal_K = first_equal(*(x[kept_K.numpy()] for x in (batch.window_E(), batch.first_E, batch.last_E)))
        if equal_K is not None:
            logits_KL = logits_KL[torch.from_numpy(equal_K)]
        return SpanScores(kept_K, logits_KL, proposed[0] if proposed else None)

    return finish


def read_spans(batch: SpanBatch, scores: SpanScores, *, none_bias: float) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """For each document of the batch a row (start, end, class, logit, probability, margin, chance) for each span found.

    scores: of `begin_scores`.
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
    proposals_K = scores.proposals_E
    chance = np.ones(len(kept)) if proposals_K is None else proposals_K[some_K].double().sigmoid().numpy()
    rows = np.stack([batch.start_E[kept], batch.end_E[kept], label, logit, probability, margin, chance], 1)
    owner = batch.owner_E()[kept]
    for i in np.unique(owner).tolist():
        yield i, rows[owner == i]


def best_settings(
    found: Sequence[FoundSpans], golds: Sequence[ScoredGold], labels: Sequence[str], *, flat: bool
) -> dict[str, float]:
    """The none_bias with the best F1 (of equal ones the nearest to 0); where spans are proposed, the highest
    proposal_threshold that costs at most _MOST_LOSS of it and _MOST_LOST of the right spans; and ents_f, the F1 of
    both.

    found: with the bias -BIAS_LIMIT and without threshold. labels: of the classes from 1. Raises ValueError where no
    gold spans count.
    """
    total = sum(gold.total for gold in golds)
    if not total:
        raise ValueError("Expected examples with gold entities to tune on, but found none.")

    def measure(bias: float, chance: float) -> tuple[float, int]:
        """F1, and how many are right."""
        chosen = [one.above(bias, flat=flat, chance=chance) for one in found]
        said = [{(start, end, labels[number - 1]) for start, end, number in spans} for spans in chosen]
        scored = [scored_spans(one.scope, one.spans, spans, nested=not flat) for one, spans in zip(golds, said)]
        right = sum(len(gold & spans) for gold, spans in scored)
        return 2 * right / (sum(len(spans) for _, spans in scored) + total), right

    biases = np.arange(-BIAS_LIMIT, BIAS_LIMIT + 0.1, 0.25).round(2).tolist()
    best, _, bias = max((measure(bias, 0.0)[0], -abs(bias), bias) for bias in biases)
    if all((one.chance_E == 1).all() for one in found):
        return {"none_bias": bias, "ents_f": best}
    least = (1 - _MOST_LOST) * measure(bias, 0.0)[1]
    scores = ((chance, *measure(bias, chance)) for chance in CHANCES)
    chance, score, _ = next(one for one in scores if one[1] >= best - _MOST_LOSS and one[2] >= least)
    return {"none_bias": bias, "proposal_threshold": chance, "ents_f": score}


def judged_spans(
    found: Sequence[FoundSpans],
    golds: Sequence[ScoredGold],
    labels: Sequence[str],
    settings: Mapping[str, float],
    *,
    before: float,
    flat: bool,
) -> tuple[list[float], list[bool]]:
    """The probabilities of the spans that are shown with the settings that `best_settings` has found, and whether each
    is gold; without those of which the gold says nothing. labels: of the classes from 1; before: the bias that the
    spans were found with."""
    bias, chance = settings["none_bias"], settings.get("proposal_threshold", 0.0)
    scores: list[float] = []
    right: list[bool] = []
    for one, gold in zip(found, golds, strict=True):
        places, probabilities = one.shown(bias, before=before, flat=flat, chance=chance)
        score_of = {(a, b, labels[number - 1]): x for (a, b, number), x in zip(places, probabilities, strict=True)}
        gold_spans, known = scored_spans(gold.scope, gold.spans, set(score_of), nested=not flat)
        scores += [score_of[span] for span in sorted(known)]
        right += [span in gold_spans for span in sorted(known)]
    return scores, right
