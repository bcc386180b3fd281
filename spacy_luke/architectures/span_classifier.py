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
from thinc.types import Floats2d, Ints1d
from torch import Tensor

from ..batch.batches import SpanBatch
from ..bridge.documents import refuse_docs
from ..bridge.wrapper import TorchShim, to_tensor
from ..encoders.cache import encode_words
from ..encoders.nodes import init_with_example, number_format
from ..model.config import LukeConfig
from ..model.heads import FEATURES, SpanHead, keep_best
from ..model.luke import Mentions, Windows, initialize

ATTENTION = ("full", "one_way")


@dataclass(frozen=True)
class SpanScores:
    """What a span classifier says of a batch. kept_K: which spans of the batch were encoded; logits_KL of these;
    proposals_E: logits of all spans before the choice, None where all were encoded."""

    kept_K: Tensor
    logits_KL: Tensor
    proposals_E: Tensor | None


@registry.architectures("spacy-luke.SpanClassifier.v1")
def build_span_classifier(
    encoder: Model[list[Ints1d], list[Floats2d]],
    attention: str = "one_way",
    features: str = "all",
    spans_per_word: float | None = 0.5,
    proposer_size: int = 150,
    spans_per_pass: int = 128,
) -> Model[SpanBatch, Any]:
    """Classifies spans of words by entity tokens (LUKE's NER, section 4.3).

    attention: "full" is the paper's: words and spans see one another, and a window's spans are encoded in passes of at
    most `spans_per_pass`, cut as the reference cuts them, because spans that share a pass influence each other.
    "one_way": words do not see spans, and a span sees the words and itself, so that the words are encoded once and
    results do not depend on which other spans there are.
    features: "all" is [first word; last word; entity], "words" the first two, "entity" the last.
    spans_per_word: with one_way, how many spans per word a learned scorer keeps for encoding; null keeps all.
    proposer_size: width of that scorer's hidden layer.
    """
    if attention not in ATTENTION:
        raise ValueError(f"attention must be one of {ATTENTION}, but it is {attention!r}.")
    if features not in FEATURES:
        raise ValueError(f"features must be one of {sorted(FEATURES)}, but it is {features!r}.")
    if spans_per_word is not None and spans_per_word <= 0:
        raise ValueError(f"spans_per_word must be above 0, or null to encode every span, but it is {spans_per_word}.")
    if spans_per_pass < 1:
        raise ValueError(f"spans_per_pass must be at least 1, but it is {spans_per_pass}.")
    proposes = attention == "one_way" and spans_per_word is not None
    shim = TorchShim(_build_span_head)
    attrs = {
        "attention": attention,
        "features": features,
        "spans_per_word": spans_per_word if proposes else None,
        "proposer_size": proposer_size if proposes else 0,
        "spans_per_pass": spans_per_pass if attention == "full" else None,
    }
    return Model("head", _classify_spans, layers=[encoder], attrs=attrs, shims=[shim], init=init_with_example)


def create_span_head(model: Model, n_labels: int, *, seed: int = 0, shares: tuple[float, float] | None = None) -> None:
    """Fresh head parameters for an encoder that has its sizes.

    shares: how many of the encoded spans, and of the spans that the proposer sees, are gold. The biases then begin
    where a head ends up that knows nothing else, so that few steps are not spent on learning that most spans are none.
    """
    shim = model.shims[0]
    config: LukeConfig = model.layers[0].shims[0].module.config
    head = shim.create(
        {
            "hidden_size": config.hidden_size,
            "n_labels": n_labels,
            "features": model.attrs["features"],
            "proposer_size": model.attrs["proposer_size"],
        }
    )
    initialize(head, std=config.initializer_range, generator=torch.Generator(device=shim.device).manual_seed(seed))
    if shares is not None:
        encoded, proposed = (math.log(share / (1 - share)) for share in shares)
        with torch.no_grad():
            head.classifier.bias[0] = math.log(n_labels - 1) - encoded
            if head.proposer is not None:
                head.proposer.score.bias.fill_(proposed)


def _build_span_head(settings: dict[str, Any]) -> SpanHead:
    settings = dict(settings)
    return SpanHead(settings.pop("hidden_size"), settings.pop("n_labels"), **settings)


def _classify_spans(
    model: Model, batch: SpanBatch, is_train: bool
) -> tuple[SpanScores, Callable[[Tensor, Tensor | None], None]]:
    refuse_docs(batch)
    encoder_model = model.layers[0]
    encoder_shim, head_shim = encoder_model.shims[0], model.shims[0]
    with (
        encoder_shim.running(is_train=is_train and encoder_shim.learning),
        head_shim.running(is_train=is_train) as head,
        number_format(encoder_model, encoder_shim, is_train=is_train),
    ):
        run = _run_full if model.attrs["attention"] == "full" else _run_one_way
        scores = run(encoder_shim, head, batch)

    def backprop(d_logits: Tensor, d_proposals: Tensor | None) -> None:
        outputs, gradients = [scores.logits_KL], [d_logits]
        if scores.proposals_E is not None:
            outputs.append(scores.proposals_E)
            gradients.append(d_proposals)
        torch.autograd.backward(outputs, gradients)

    return scores, backprop


def _run_full(shim: TorchShim, head: SpanHead, batch: SpanBatch) -> SpanScores:
    device, mask_row = shim.device, shim.settings["mask_row"]
    windows = Windows(to_tensor(batch.pieces_N, device), batch.lengths)
    with shim.gradients():
        words_ND, entities_ED = shim.module(windows, _mentions(batch, device, mask_row))
    first_E, last_E = (to_tensor(batch.rows(x), device) for x in (batch.first_E, batch.last_E))
    logits_EL = head(words_ND, first_E, last_E, entities_ED).float()
    return SpanScores(torch.arange(len(batch.first_E), device=device), logits_EL, None)


def _run_one_way(shim: TorchShim, head: SpanHead, batch: SpanBatch) -> SpanScores:
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
        kept_K = keep_best(proposals_E.detach(), batch.counts, batch.budget_B)
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
