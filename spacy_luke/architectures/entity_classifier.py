"""The Thinc model of typing, relations and cloze questions: it classifies entity tokens that the task asks for.

N packed pieces, E entity tokens, U units (what is classified), K entity tokens of a unit, L labels.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from spacy.util import registry
from thinc.api import Model
from torch import Tensor

from ..batch.entities import EntityBatch
from ..encoders.kind import EncoderShim
from ..encoders.luke_kind import encode_sent
from ..encoders.nodes import EncoderModel
from ..model.luke import LukeEncoder, Mentions, Windows, make_windows
from ..model.packing import Packing, entity_rows
from ..model.span_heads import FEATURES, EntityHead
from ..model.transfer import to_device
from .run_head import check_attention, create_head, make_head, read_mentions, run_head

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
    return make_head(_classify_entities, EntityHead, encoder, attrs)


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


@dataclass(frozen=True)
class _Inputs:
    """A batch as the model reads it. parts: its entity tokens, all of them or in parts that are encoded at once;
    first_E, last_E: rows of the packed words; units_UK: entity tokens of each unit."""

    windows: Windows
    parts: tuple[Mentions, ...]
    first_E: Tensor
    last_E: Tensor
    units_UK: Tensor


def _classify_entities(model: EntityModel, batch: EntityBatch, is_train: bool) -> tuple[Tensor, Callable[..., None]]:
    def run(encoder: EncoderShim[LukeEncoder], head: EntityHead, batch: EntityBatch) -> Tensor:
        attention, features = model.attrs["attention"], model.attrs["features"]
        with encoder.gradients():
            inputs = _read(batch, attention, features, device=encoder.device)
            words_ND, entities_ED = _encode(encoder, batch, inputs, attention, features)
        logits_UL: Tensor = head(words_ND, inputs.first_E, inputs.last_E, entities_ED, inputs.units_UK)
        return logits_UL.float()

    return run_head(model, batch, is_train, run)


def _read(batch: EntityBatch, attention: str, features: str, *, device: torch.device) -> _Inputs:
    """Made on the host, and sent."""
    full = attention == "full" and features != "words"
    counts = batch.counts if full else None
    windows = make_windows(batch.pieces_N, batch.lengths, batch.types_N, device=device, counts=counts)
    assert windows.plan is not None
    parts = tuple(_parts(batch, None if full else windows.plan.packing)) if features != "words" else ()
    first_E, last_E = (torch.from_numpy(batch.rows(x)) for x in (batch.first_E, batch.last_E))
    return to_device(_Inputs(windows, parts, first_E, last_E, torch.from_numpy(batch.units_UK)), device)


def _parts(batch: EntityBatch, packing: Packing | None) -> Iterator[Mentions]:
    """packing: of the words, where these do not see the entities, so that these can be encoded in parts."""
    total = len(batch.rows_E)
    size = total
    if packing is not None and not torch.is_grad_enabled():
        size = TOKENS_AT_ONCE - TOKENS_AT_ONCE % batch.group
    for first in range(0, total, max(size, 1)):
        mentions = _mentions(batch, first, min(first + size, total))
        yield mentions if packing is None else replace(mentions, rows=entity_rows(packing, mentions.counts))


def _encode(
    shim: EncoderShim[LukeEncoder], batch: EntityBatch, inputs: _Inputs, attention: str, features: str
) -> tuple[Tensor | None, Tensor | None]:
    windows, parts = inputs.windows, inputs.parts
    if attention == "one_way" or features == "words":
        words = encode_sent(shim, batch.pieces_N, windows, states=features != "entity")
        states = [shim.module.encode_entities(words, part, group_size=batch.group) for part in parts]
        return words.states_ND, torch.cat(states) if len(states) > 1 else next(iter(states), None)
    (mentions,) = parts
    if features == "entity":
        return None, shim.module.entity_states(windows, mentions)
    words_ND, entities_ED = shim.module(windows, mentions)
    return words_ND, entities_ED


def _mentions(batch: EntityBatch, first: int, last: int) -> Mentions:
    """The packed entity tokens [first, last) with how many of them each window has."""
    counts = batch.counts
    if last - first < len(batch.rows_E):
        window_E = np.repeat(np.arange(len(counts)), counts)[first:last]
        counts = np.bincount(window_E, minlength=len(counts)).tolist()
    begin_E, end_E, types_E = batch.first_E[first:last], batch.last_E[first:last], None
    if batch.types_N is not None:  # an entity token has the type of its first piece
        types_E = batch.types_N[batch.rows(batch.first_E)[first:last]]
    return read_mentions(batch.rows_E[first:last], begin_E, end_E, counts, types_E=types_E)
