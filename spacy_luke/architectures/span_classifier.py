"""The Thinc model of `luke_ner`, which configs name: it classifies spans of words.

N packed pieces, E spans, K spans that were kept, L labels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.util import registry
from thinc.api import Model
from torch import Tensor

from ..batch.batches import SpanBatch
from ..batch.decode import first_equal
from ..encoders.kind import EncoderShim
from ..encoders.luke_kind import encode_sent
from ..encoders.nodes import EncoderModel
from ..model.luke import LukeEncoder, Mentions, Windows, make_windows
from ..model.packing import Packing, entity_rows
from ..model.span_heads import FEATURES, LENGTHS, Choice, SpanHead, choose_best, plan_choice
from ..model.transfer import to_device
from .run_head import check_attention, create_head, make_head, run_head


@dataclass(frozen=True)
class SpanScores:
    """What a span classifier says of a batch. kept_K: which spans of the batch were encoded; logits_KL of these;
    proposals_E: logits of all spans before the choice, None where all were encoded."""

    kept_K: Tensor
    logits_KL: Tensor
    proposals_E: Tensor | None

    @property
    def outputs(self) -> tuple[Tensor, Tensor | None]:
        return self.logits_KL, self.proposals_E


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
    features: "all" is [first word; last word; entity], "words" the first two, "entity" the last. With "words" there are
    no entity tokens at all that words could see, as with the original's `no_entity_feature` (table 6).
    spans_per_word: with one_way, how many spans per word a learned scorer keeps for encoding; null keeps all.
    proposer_size: width of that scorer's hidden layer.
    spans_per_pass: with full, the most spans that share a pass; the original's number.
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
        "spans_per_pass": spans_per_pass if attention == "full" and features != "words" else None,
    }
    return make_head(_classify_spans, SpanHead, encoder, attrs)


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


def _classify_spans(model: NERModel, batch: SpanBatch, is_train: bool) -> tuple[SpanScores, Callable[..., None]]:
    seen = model.attrs["attention"] == "full" and model.attrs["features"] != "words"  # words see the spans
    return run_head(model, batch, is_train, _run_full if seen else _run_one_way)


@dataclass(frozen=True)
class _Inputs:
    """A batch as the model reads it. first_E, last_E: rows of the packed words; mentions: entity tokens, of all spans
    in full attention; choice, length_E, equal_E: of one-way attention with a proposer. length_E: in words; equal_E: the
    first span that has the proposal of each, None where all differ."""

    windows: Windows
    first_E: Tensor
    last_E: Tensor
    mentions: Mentions
    choice: Choice | None = None
    length_E: Tensor | None = None
    equal_E: Tensor | None = None


def _read(
    batch: SpanBatch, mask_row: int, *, device: torch.device, choice: Choice | None, full: bool, known: bool = True
) -> tuple[_Inputs, Packing]:
    """Made on the host, and sent. full: words see the spans; known: whether it is known yet which spans are encoded.
    RETURNS: the inputs, and the packing as it is on the host."""
    counts = batch.counts
    windows = make_windows(batch.pieces_N, batch.lengths, device=device, counts=counts if full else None)
    masks_E = torch.full((len(batch.first_E),), mask_row, device="cpu")
    mentions = Mentions(masks_E, torch.from_numpy(batch.first_E), torch.from_numpy(batch.last_E), counts)
    assert windows.plan is not None
    if not full and known:
        rows = entity_rows(windows.plan.packing, counts if choice is None else choice.counts)
        mentions = replace(mentions, rows=rows)
    first_E, last_E = (torch.from_numpy(batch.rows(x)) for x in (batch.first_E, batch.last_E))
    length_E = equal_E = None
    if choice is not None:
        words_E = batch.end_E - batch.start_E
        length_E = torch.from_numpy(words_E)
        told_apart_E = np.minimum(words_E, LENGTHS)
        if (equal := first_equal(batch.window_E(), batch.first_E, batch.last_E, told_apart_E)) is not None:
            equal_E = torch.from_numpy(equal)
    inputs = _Inputs(windows, first_E, last_E, mentions, choice, length_E, equal_E)
    return to_device(inputs, device), windows.plan.packing


def _run_full(shim: EncoderShim[LukeEncoder], head: SpanHead, batch: SpanBatch) -> SpanScores:
    inputs, _ = _read(batch, shim.settings["mask_row"], device=shim.device, choice=None, full=True)
    with shim.gradients():
        words_ND, entities_ED = shim.module(inputs.windows, inputs.mentions)
    logits_EL = head(words_ND, inputs.first_E, inputs.last_E, entities_ED).float()
    return SpanScores(torch.arange(len(batch.first_E), device=shim.device), logits_EL, None)


def _run_one_way(shim: EncoderShim[LukeEncoder], head: SpanHead, batch: SpanBatch) -> SpanScores:
    device, proposer = shim.device, head.proposer
    choice = None if proposer is None else plan_choice(batch.counts, batch.budget_B.tolist())
    known = choice is None or (batch.gold_E is None and batch.chance == 0)
    inputs, packing = _read(batch, shim.settings["mask_row"], device=device, choice=choice, full=False, known=known)
    with shim.gradients():
        words = encode_sent(shim, batch.pieces_N, inputs.windows)
    first_E, last_E, mentions = inputs.first_E, inputs.last_E, inputs.mentions
    if proposer is None or inputs.choice is None:
        proposals_E, kept_K = None, torch.arange(len(batch.first_E), device=device)
    else:
        proposals_E = proposer(words.states_ND, first_E, last_E, inputs.length_E).float()
        ranks_E = proposals_E.detach() if inputs.equal_E is None else proposals_E.detach()[inputs.equal_E]
        if known:
            kept_K = choose_best(ranks_E, inputs.choice)
            mentions = replace(mentions, counts=inputs.choice.counts)
        else:
            kept = _choose_on_host(ranks_E, batch, inputs.choice)
            kept_K, mentions = _send_kept(kept, batch, packing, mentions)
        first_E, last_E = first_E[kept_K], last_E[kept_K]
        mentions = replace(
            mentions,
            entities_E=mentions.entities_E[kept_K],
            first_E=mentions.first_E[kept_K],
            last_E=mentions.last_E[kept_K],
        )
    entities_ED = words.states_ND[:0]
    if len(kept_K) and head.features != "words":
        with shim.gradients():
            entities_ED = shim.module.encode_entities(words, mentions)
    logits_KL = head(words.states_ND, first_E, last_E, entities_ED).float()
    return SpanScores(kept_K, logits_KL, proposals_E)


def _choose_on_host(proposals_E: Tensor, batch: SpanBatch, choice: Choice) -> NDArray[np.int64]:
    """Spans that are encoded (K,), where their number follows from their scores. In training the gold ones are always
    among them; in predictions those without a chance are not."""
    if batch.gold_E is not None:
        best_K = choose_best(proposals_E, choice).cpu().numpy()
        return np.union1d(best_K, np.flatnonzero(batch.gold_mentions_E()))
    scores_E, window_E = proposals_E.cpu(), batch.window_E()
    able_K = np.flatnonzero(scores_E.numpy() >= math.log(batch.chance / (1 - batch.chance)))
    counts_B = np.bincount(window_E[able_K], minlength=len(batch.counts))
    if (counts_B <= batch.budget_B).all():
        return able_K
    best = plan_choice(counts_B.tolist(), batch.budget_B.tolist())
    chosen: NDArray[np.int64] = able_K[choose_best(scores_E[torch.from_numpy(able_K)], best).numpy()]
    return chosen


def _send_kept(
    kept: NDArray[np.int64], batch: SpanBatch, packing: Packing, mentions: Mentions
) -> tuple[Tensor, Mentions]:
    counts = np.bincount(batch.window_E()[kept], minlength=len(batch.counts)).tolist()
    rows = entity_rows(packing, counts)
    kept_K, rows = to_device((torch.from_numpy(kept), rows), mentions.first_E.device)
    return kept_K, replace(mentions, counts=counts, rows=rows)
