"""The Thinc model of `luke_ner`, which configs name: it classifies spans of words.

N packed pieces, E spans, K spans that were kept, L labels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from spacy.util import registry
from thinc.api import Model
from torch import Tensor

from ..batch.batches import SpanBatch
from ..bridge.wrapper import to_tensor
from ..encoders.kind import EncoderShim
from ..encoders.luke import encode_words
from ..encoders.nodes import EncoderModel
from ..model.heads import FEATURES, SpanHead, keep_best
from ..model.luke import LukeEncoder, Mentions, Windows
from .heads import backprop_into, check_attention, create_head, make_head, run_head


@dataclass(frozen=True)
class SpanScores:
    """What a span classifier says of a batch. kept_K: which spans of the batch were encoded; logits_KL of these;
    proposals_E: logits of all spans before the choice, None where all were encoded."""

    kept_K: Tensor
    logits_KL: Tensor
    proposals_E: Tensor | None


NERModel = Model[SpanBatch, SpanScores]


@registry.architectures("spacy-luke.SpanClassifier.v1")
def build_span_classifier(
    encoder: EncoderModel,
    attention: str = "one_way",
    features: str = "all",
    spans_per_word: float | None = 0.5,
    proposer_size: int = 150,
    spans_per_pass: int = 128,
) -> NERModel:
    """Classifies spans of words by entity tokens (LUKE's NER, section 4.3).

    attention: "full" is the paper's: words and spans see one another, and a window's spans are encoded in passes of at
    most `spans_per_pass`, cut as the reference cuts them, because spans that share a pass influence each other.
    "one_way": words do not see spans, and a span sees the words and itself, so that the words are encoded once and
    results do not depend on which other spans there are.
    features: "all" is [first word; last word; entity], "words" the first two, "entity" the last.
    spans_per_word: with one_way, how many spans per word a learned scorer keeps for encoding; null keeps all.
    proposer_size: width of that scorer's hidden layer.
    """
    check_attention(attention)
    if features not in FEATURES:
        raise ValueError(f"features must be one of {sorted(FEATURES)}, but it is {features!r}.")
    if spans_per_word is not None and spans_per_word <= 0:
        raise ValueError(f"spans_per_word must be above 0, or null to encode every span, but it is {spans_per_word}.")
    if spans_per_pass < 1:
        raise ValueError(f"spans_per_pass must be at least 1, but it is {spans_per_pass}.")
    proposes = attention == "one_way" and spans_per_word is not None
    attrs = {
        "attention": attention,
        "features": features,
        "spans_per_word": spans_per_word if proposes else None,
        "proposer_size": proposer_size if proposes else 0,
        "spans_per_pass": spans_per_pass if attention == "full" else None,
    }
    return make_head(_classify_spans, _build_span_head, encoder, attrs)


def create_span_head(
    model: NERModel, n_labels: int, *, seed: int = 0, shares: tuple[float, float] | None = None
) -> None:
    """Fresh head parameters for an encoder that has its sizes.

    shares: how many of the encoded spans, and of the spans that the proposer sees, are gold. The biases then begin
    where a head ends up that knows nothing else, so that few steps are not spent on learning that most spans are none.
    """
    features, width = model.attrs["features"], model.attrs["proposer_size"]
    head: SpanHead = create_head(model, seed=seed, n_labels=n_labels, features=features, proposer_size=width)
    if shares is not None:
        encoded, proposed = (math.log(share / (1 - share)) for share in shares)
        with torch.no_grad():
            head.classifier.bias[0] = math.log(n_labels - 1) - encoded
            if head.proposer is not None:
                head.proposer.score.bias.fill_(proposed)


def _build_span_head(settings: dict[str, Any]) -> SpanHead:
    settings = dict(settings)
    return SpanHead(settings.pop("hidden_size"), settings.pop("n_labels"), **settings)


def _classify_spans(model: NERModel, batch: SpanBatch, is_train: bool) -> tuple[SpanScores, Callable[..., None]]:
    scores = run_head(model, batch, is_train, _run_full if model.attrs["attention"] == "full" else _run_one_way)
    return scores, backprop_into(scores.logits_KL, scores.proposals_E)


def _run_full(shim: EncoderShim[LukeEncoder], head: SpanHead, batch: SpanBatch) -> SpanScores:
    device, mask_row = shim.device, shim.settings["mask_row"]
    windows = Windows(to_tensor(batch.pieces_N, device), batch.lengths)
    with shim.gradients():
        words_ND, entities_ED = shim.module(windows, _mentions(batch, device, mask_row))
    first_E, last_E = (to_tensor(batch.rows(x), device) for x in (batch.first_E, batch.last_E))
    logits_EL = head(words_ND, first_E, last_E, entities_ED).float()
    return SpanScores(torch.arange(len(batch.first_E), device=device), logits_EL, None)


def _run_one_way(shim: EncoderShim[LukeEncoder], head: SpanHead, batch: SpanBatch) -> SpanScores:
    device, mask_row = shim.device, shim.settings["mask_row"]
    with shim.gradients():
        words = encode_words(shim, batch.pieces_N, batch.lengths)
    first_E, last_E = (to_tensor(batch.rows(x), device) for x in (batch.first_E, batch.last_E))
    proposals_E = None
    if head.proposer is None:
        kept_K = torch.arange(len(batch.first_E), device=device)
    else:
        proposals_E = head.proposer(
            words.states_ND, first_E, last_E, to_tensor(batch.end_E - batch.start_E, device)
        ).float()
        kept_K = keep_best(proposals_E.detach(), batch.counts, batch.budget_B.tolist())
    kept = kept_K.cpu().numpy()
    if batch.gold_E is not None and proposals_E is not None:  # in training the gold spans are always among them
        kept = np.union1d(kept, np.flatnonzero(batch.gold_E > 0))
        kept_K = to_tensor(kept, device)
    mentions = _mentions(batch, device, mask_row, kept)
    with shim.gradients():
        entities_ED = shim.module.encode_entities(words, mentions)
    logits_KL = head(words.states_ND, first_E[kept_K], last_E[kept_K], entities_ED).float()
    return SpanScores(kept_K, logits_KL, proposals_E)


def _mentions(batch: SpanBatch, device: torch.device, mask_row: int, kept_K: np.ndarray | None = None) -> Mentions:
    first_E, last_E, counts = batch.first_E, batch.last_E, batch.counts
    if kept_K is not None:
        first_E, last_E = first_E[kept_K], last_E[kept_K]
        counts = np.bincount(batch.window_E()[kept_K], minlength=len(counts)).tolist()
    masks = torch.full((len(first_E),), mask_row, dtype=torch.long, device=device)
    return Mentions(masks, to_tensor(first_E, device), to_tensor(last_E, device), counts)
