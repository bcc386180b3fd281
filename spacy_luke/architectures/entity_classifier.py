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
from ..bridge.documents import refuse_docs
from ..bridge.wrapper import TorchShim, to_tensor
from ..encoders.cache import encode_words
from ..encoders.nodes import init_with_example, number_format
from ..model.config import LukeConfig
from ..model.heads import FEATURES, EntityHead
from ..model.luke import Mentions, Windows, WordStates, initialize
from .span_classifier import ATTENTION

MAX_MENTION = 30  # pieces of a mention whose positions count, as in the original code and in Hugging Face's
TOKENS_AT_ONCE = 8192  # entity tokens of one-way attention without gradients, so that memory is bounded


@registry.architectures("spacy-luke.EntityClassifier.v1")
def build_entity_classifier(
    encoder: Model,
    attention: str = "full",
    features: str = "entity",
    bias: bool = True,
) -> Model[EntityBatch, Tensor]:
    """Classifies mentions or pairs of mentions by their entity tokens (LUKE, sections 4.1, 4.2 and 4.4).

    attention: "full" is the paper's: a window has the markers and the entity tokens of one mention or pair, and words
    and entities see one another. "one_way": words do not see entities, windows have no markers, and the words are
    encoded once for all that is asked of them.
    features: "entity" is the paper's; "all" joins the states of the mention's first and last piece to it; "words" are
    these alone, without entity tokens, the usual baseline.
    bias: whether the classifier has one; the paper's relation head has none.
    """
    if attention not in ATTENTION:
        raise ValueError(f"attention must be one of {ATTENTION}, but it is {attention!r}.")
    if features not in FEATURES:
        raise ValueError(f"features must be one of {sorted(FEATURES)}, but it is {features!r}.")
    attrs = {"attention": attention, "features": features, "bias": bias}
    shim = TorchShim(_build_entity_head)
    return Model("head", _classify_entities, layers=[encoder], attrs=attrs, shims=[shim], init=init_with_example)


def create_entity_head(
    model: Model, n_labels: int, *, states: int, seed: int = 0, prior_L: np.ndarray | None = None
) -> None:
    """Fresh head parameters for an encoder that has its sizes. states: entity tokens of a unit; prior_L: biases to
    begin with, such as the log-odds of each label."""
    shim = model.shims[0]
    config: LukeConfig = model.layers[0].shims[0].module.config
    settings = {"hidden_size": config.hidden_size, "n_labels": n_labels, "states": states}
    head = shim.create({**settings, "features": model.attrs["features"], "bias": model.attrs["bias"]})
    initialize(head, std=config.initializer_range, generator=torch.Generator(device=shim.device).manual_seed(seed))
    if prior_L is not None and head.classifier.bias is not None:
        with torch.no_grad():
            head.classifier.bias.copy_(torch.from_numpy(prior_L))


def _build_entity_head(settings: dict[str, Any]) -> EntityHead:
    settings = dict(settings)
    return EntityHead(settings.pop("hidden_size"), settings.pop("n_labels"), **settings)


def _classify_entities(model: Model, batch: EntityBatch, is_train: bool) -> tuple[Tensor, Callable[[Tensor], None]]:
    refuse_docs(batch)
    encoder, shim = model.layers[0].shims[0], model.shims[0]
    with (
        encoder.running(is_train=is_train and encoder.learning),
        shim.running(is_train=is_train) as head,
        number_format(model.layers[0], encoder, is_train=is_train),
    ):
        with encoder.gradients():
            words_ND, entities_ED = _encode(encoder, batch, model.attrs["attention"], model.attrs["features"])
        first_E, last_E = (to_tensor(batch.rows(x), encoder.device) for x in (batch.first_E, batch.last_E))
        logits_UL = head(words_ND, first_E, last_E, entities_ED, to_tensor(batch.units_UK, encoder.device)).float()

    def backprop(d_logits: Tensor) -> None:
        torch.autograd.backward([logits_UL], [d_logits])

    return logits_UL, backprop


def _encode(shim: TorchShim, batch: EntityBatch, attention: str, features: str) -> tuple[Tensor | None, Tensor | None]:
    if features == "words":
        return encode_words(shim, batch.pieces_N, batch.lengths, batch.types_N).states_ND, None
    if attention == "one_way":
        words = encode_words(shim, batch.pieces_N, batch.lengths, batch.types_N)
        return words.states_ND, _encode_entities(shim, words, batch)
    types_N = to_tensor(batch.types_N, shim.device)
    windows = Windows(to_tensor(batch.pieces_N, shim.device), batch.lengths, types_N)
    mentions = _mentions(batch, shim.device, 0, len(batch.rows_E))
    if features == "entity":
        return None, shim.module.entity_states(windows, mentions)
    return shim.module(windows, mentions)


def _encode_entities(shim: TorchShim, words: WordStates, batch: EntityBatch) -> Tensor:
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
