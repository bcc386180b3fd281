"""The Thinc model of entity linking: it scores the candidates of masked entity tokens.

E entity tokens of a batch, S those that are scored, C their candidates, D model width, V entity width.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from spacy.util import registry
from thinc.api import Model
from torch import Tensor

from ..batch.linking import MASKED, LinkBatch
from ..bridge.documents import refuse_docs
from ..bridge.wrapper import TorchShim, to_tensor
from ..encoders.cache import encode_words
from ..encoders.nodes import init_with_example, number_format
from ..model.config import LukeConfig
from ..model.linking import FEATURES, CandidateHead
from ..model.luke import Mentions, Windows, WordStates, initialize
from .entity_classifier import MAX_MENTION
from .span_classifier import ATTENTION


@registry.architectures("spacy-luke.EntityLinker.v1")
def build_entity_linker(encoder: Model, attention: str = "full", prior: bool = False) -> Model[LinkBatch, Tensor]:
    """Scores candidates of mentions by the states of their masked entity tokens (Yamada et al., NAACL 2022).

    attention: "full" is the paper's: words and entities of a window see one another. "one_way": entities see the words
    and one another, but words see words only, so that they are encoded once however many steps the decisions take.
    prior: whether a learned linear function of log p(entity | mention) and log in-links is added to the score; the
    papers have none.
    """
    if attention not in ATTENTION:
        raise ValueError(f"attention must be one of {ATTENTION}, but it is {attention!r}.")
    attrs = {"attention": attention, "prior": prior}
    shim = TorchShim(_build_head)
    return Model("head", _score_candidates, layers=[encoder], attrs=attrs, shims=[shim], init=init_with_example)


def create_candidate_head(model: Model, *, seed: int = 0) -> CandidateHead:
    """Fresh head parameters for an encoder that has its sizes."""
    shim = model.shims[0]
    config: LukeConfig = model.layers[0].shims[0].module.config
    settings = {"hidden_size": config.hidden_size, "entity_size": config.entity_size, "norm_eps": config.norm_eps}
    head = shim.create({**settings, "features": len(FEATURES) if model.attrs["prior"] else 0})
    initialize(head, std=config.initializer_range, generator=torch.Generator(device=shim.device).manual_seed(seed))
    head.reset_prior()
    return head


def fill_candidate_head(model: Model, tensors: Mapping[str, Tensor]) -> None:
    """Take the head's parameters from a checkpoint's tensors (`entity_head.NAME`); what these lack stays as it is."""
    shim = model.shims[0]
    state = shim.module.state_dict()
    state.update({n: tensors[f"entity_head.{n}"] for n in state if f"entity_head.{n}" in tensors})
    shim.fill(state)


def encode_link_words(model: Model, batch: LinkBatch) -> WordStates | None:
    """The word states of a batch's windows, for all steps over them; None where words see entities."""
    if model.attrs["attention"] != "one_way":
        return None
    shim = model.layers[0].shims[0]
    with shim.running(is_train=False), number_format(model.layers[0], shim, is_train=False):
        return encode_words(shim, batch.pieces_N, batch.lengths)


def _build_head(settings: dict[str, Any]) -> CandidateHead:
    return CandidateHead(**settings)


def _score_candidates(model: Model, batch: LinkBatch, is_train: bool) -> tuple[Tensor, Callable[[Tensor], None]]:
    refuse_docs(batch)
    encoder, shim = model.layers[0].shims[0], model.shims[0]
    device = encoder.device
    with (
        encoder.running(is_train=is_train and encoder.learning),
        shim.running(is_train=is_train) as head,
        number_format(model.layers[0], encoder, is_train=is_train),
    ):
        with encoder.gradients():
            states_ED = _entity_states(encoder, batch, model.attrs["attention"])
        unique, place_C = np.unique(batch.rows_C, return_inverse=True)
        vectors_UV = to_tensor(batch.vectors.vectors_UV[unique], device)
        bias_U = to_tensor(batch.vectors.bias_U[unique], device)
        place = to_tensor(place_C.reshape(-1), device)
        states_SD = states_ED[to_tensor(batch.scored_S, device)]
        owner_C, features_CF = to_tensor(batch.owner_C, device), to_tensor(batch.features_CF, device)
        scores_C = head(states_SD, owner_C, vectors_UV[place], bias_U[place], features_CF)

    def backprop(d_scores: Tensor) -> None:
        torch.autograd.backward([scores_C], [d_scores])

    return scores_C, backprop


def _entity_states(shim: TorchShim, batch: LinkBatch, attention: str) -> Tensor:
    device = shim.device
    known_E = batch.entities_E >= 0
    vectors_EV = None
    if known_E.any():
        vectors = np.zeros((len(known_E), batch.vectors.vectors_UV.shape[1]), dtype=np.float32)
        vectors[known_E] = batch.vectors.vectors_UV[batch.entities_E[known_E]]
        vectors_EV = to_tensor(vectors, device)
    rows_E = np.where(batch.entities_E == MASKED, shim.settings["mask_row"], -1)
    mentions = Mentions(
        to_tensor(rows_E, device),
        to_tensor(batch.first_E, device),
        to_tensor(np.minimum(batch.last_E, batch.first_E + MAX_MENTION - 1), device),
        batch.counts,
        vectors_EV=vectors_EV,
    )
    if attention == "one_way":
        words = batch.words
        if words is None:
            words = encode_words(shim, batch.pieces_N, batch.lengths)
        return shim.module.encode_entities(words, mentions, group_size=None)
    windows = Windows(to_tensor(batch.pieces_N, device), batch.lengths)
    return shim.module.entity_states(windows, mentions)
