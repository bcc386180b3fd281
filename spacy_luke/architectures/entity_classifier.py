"""The Thinc model of typing, relations and cloze questions: it classifies entity tokens that the task asks for.

N packed pieces, E entity tokens, U units (what is classified), K entity tokens of a unit, L labels.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from spacy.util import registry
from thinc.api import Model
from torch import Tensor

from ..batch.entities import EntityBatch
from ..bridge.wrapper import optional_tensor, to_tensor
from ..encoders.kind import EncoderShim
from ..encoders.luke import encode_words
from ..encoders.nodes import EncoderModel
from ..model.heads import FEATURES, EntityHead
from ..model.luke import LukeEncoder, Mentions, Windows, WordStates
from .heads import MAX_MENTION, backprop_into, check_attention, create_head, make_head, run_head

EntityModel = Model[EntityBatch, Tensor]

TOKENS_AT_ONCE = 8192  # entity tokens of one-way attention without gradients, so that memory is bounded


@registry.architectures("spacy-luke.EntityClassifier.v1")
def build_entity_classifier(
    encoder: EncoderModel,
    attention: str = "one_way",
    features: str = "all",
    bias: bool = True,
) -> EntityModel:
    """Classifies mentions or pairs of mentions by their entity tokens (LUKE, sections 4.1, 4.2 and 4.4).

    attention: "full" is the paper's: a window has the markers and the entity tokens of one mention or pair, and words
    and entities see one another. "one_way": words do not see entities, windows have no markers, and the words are
    encoded once for all that is asked of them.
    features: "entity" is the paper's; "all" joins the states of the mention's first and last piece to it; "words" are
    these alone, without entity tokens, the usual baseline.
    bias: whether the classifier has one; the paper's relation head has none.
    """
    check_attention(attention)
    if features not in FEATURES:
        raise ValueError(f"features must be one of {sorted(FEATURES)}, but it is {features!r}.")
    attrs = {"attention": attention, "features": features, "bias": bias}
    return make_head(_classify_entities, _build_entity_head, encoder, attrs)


def create_entity_head(
    model: EntityModel, n_labels: int, *, states: int, seed: int = 0, prior_L: np.ndarray | None = None
) -> None:
    """Fresh head parameters for an encoder that has its sizes. states: entity tokens of a unit; prior_L: biases to
    begin with, such as the log-odds of each label."""
    features, bias = model.attrs["features"], model.attrs["bias"]
    head: EntityHead = create_head(model, seed=seed, n_labels=n_labels, states=states, features=features, bias=bias)
    if prior_L is not None and head.classifier.bias is not None:
        with torch.no_grad():
            head.classifier.bias.copy_(torch.from_numpy(prior_L))


def _build_entity_head(settings: dict[str, Any]) -> EntityHead:
    settings = dict(settings)
    return EntityHead(settings.pop("hidden_size"), settings.pop("n_labels"), **settings)


def _classify_entities(model: EntityModel, batch: EntityBatch, is_train: bool) -> tuple[Tensor, Callable[..., None]]:
    def run(encoder: EncoderShim[LukeEncoder], head: EntityHead, batch: EntityBatch) -> Tensor:
        with encoder.gradients():
            words_ND, entities_ED = _encode(encoder, batch, model.attrs["attention"], model.attrs["features"])
        first_E, last_E = (to_tensor(batch.rows(x), encoder.device) for x in (batch.first_E, batch.last_E))
        logits_UL: Tensor = head(words_ND, first_E, last_E, entities_ED, to_tensor(batch.units_UK, encoder.device))
        return logits_UL.float()

    logits_UL = run_head(model, batch, is_train, run)
    return logits_UL, backprop_into(logits_UL)


def _encode(
    shim: EncoderShim[LukeEncoder], batch: EntityBatch, attention: str, features: str
) -> tuple[Tensor | None, Tensor | None]:
    if features == "words":
        return encode_words(shim, batch.pieces_N, batch.lengths, batch.types_N).states_ND, None
    if attention == "one_way":
        words = encode_words(shim, batch.pieces_N, batch.lengths, batch.types_N)
        return words.states_ND, _encode_entities(shim, words, batch)
    types_N = optional_tensor(batch.types_N, shim.device)
    windows = Windows(to_tensor(batch.pieces_N, shim.device), batch.lengths, types_N)
    mentions = _mentions(batch, shim.device, 0, len(batch.rows_E))
    if features == "entity":
        return None, shim.module.entity_states(windows, mentions)
    words_ND, entities_ED = shim.module(windows, mentions)
    return words_ND, entities_ED


def _encode_entities(shim: EncoderShim[LukeEncoder], words: WordStates, batch: EntityBatch) -> Tensor:
    total = len(batch.rows_E)
    size = total if torch.is_grad_enabled() else TOKENS_AT_ONCE - TOKENS_AT_ONCE % batch.group
    states = [
        shim.module.encode_entities(
            words, _mentions(batch, shim.device, a, min(a + size, total)), group_size=batch.group
        )
        for a in range(0, total, max(size, 1))
    ]
    return states[0] if len(states) == 1 else torch.cat(states)


def _mentions(batch: EntityBatch, device: torch.device, first: int, last: int) -> Mentions:
    """The packed entity tokens [first, last) with how many of them each window has."""
    counts = batch.counts
    if last - first < len(batch.rows_E):
        window_E = np.repeat(np.arange(len(counts)), counts)[first:last]
        counts = np.bincount(window_E, minlength=len(counts)).tolist()
    begin_E, end_E = batch.first_E[first:last], batch.last_E[first:last]
    end_E = np.minimum(end_E, begin_E + MAX_MENTION - 1)
    types_E = None  # an entity token has the type of its first piece
    if batch.types_N is not None:
        types_E = to_tensor(batch.types_N[batch.rows(batch.first_E)[first:last]], device)
    rows_E = to_tensor(batch.rows_E[first:last], device)
    return Mentions(rows_E, to_tensor(begin_E, device), to_tensor(end_E, device), counts, types_E)
