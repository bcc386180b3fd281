"""The Thinc model of entity linking: it scores the candidates of masked entity tokens.

E entity tokens of a batch, S those that are scored, C their candidates, D model width, V entity width.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from spacy.util import registry
from thinc.api import Model
from torch import Tensor

from ..batch.linking import MASKED, LinkBatch
from ..bridge.wrapper import shim_of
from ..encoders.kind import EncoderShim
from ..encoders.luke_kind import encode_sent, encode_words
from ..encoders.nodes import EncoderModel, encoder_of, number_format
from ..model.linking import MATCH, PRIOR, CandidateHead, FeatureHead
from ..model.luke import LukeEncoder, Mentions, Windows, WordStates, make_windows
from ..model.transfer import to_device
from .run_head import check_attention, create_head, make_head, read_mentions, run_head

LinkerModel = Model[LinkBatch, Tensor]


@registry.architectures("spacy-luke.EntityLinker.v2")
def build_entity_linker(
    encoder: EncoderModel,
    attention: str = "one_way",
    prior: bool = True,
    match: bool = False,
    nil: bool = True,
    context: bool = True,
) -> LinkerModel:
    """Scores candidates of mentions by the states of their masked entity tokens (Yamada et al., NAACL 2022).

    attention: "full" is the paper's: words and entities of a window see one another. "one_way": entities see the words
    and one another, but words see words only, so that they are encoded once however many steps the decisions take.
    prior: whether a learned linear function of log p(entity | mention) and log in-links is added to the score; the
    papers have none. match: whether one of how the candidate's name, description and types agree with the mention, its
    text and its label is added. nil: whether NIL is a candidate of each mention, whose score is learned; scores of the
    others are those above NIL's then. context: whether the state of a mention counts, which is compared with the
    vectors of entities. Without it no vectors are needed and the encoder is not run: prior, match and nil alone decide.
    """
    if not (context or prior or match):
        raise ValueError("A linker without context needs prior or match: nothing else tells candidates apart.")
    return _make_linker(encoder, attention=attention, prior=prior, match=match, nil=nil, context=context)


@registry.architectures("spacy-luke.EntityLinker.v1")
def build_entity_linker_v1(encoder: EncoderModel, attention: str = "one_way", prior: bool = True) -> LinkerModel:
    """Scores candidates as `spacy-luke.EntityLinker.v2` does, without NIL, for pipelines of earlier versions: a mention
    with one candidate is always linked, with a score of 1.

    attention: "full" or "one_way". prior: whether a learned linear function of log p(entity | mention) and log in-links
    is added to the score; the papers have none.
    """
    return _make_linker(encoder, attention=attention, prior=prior, match=False, nil=False, context=True)


def _make_linker(encoder: EncoderModel, *, attention: str, **attrs: bool) -> LinkerModel:
    check_attention(attention)
    return make_head(_score_candidates, _build_head, encoder, {"attention": attention, **attrs})


def create_candidate_head(model: LinkerModel, *, seed: int = 0) -> CandidateHead | FeatureHead:
    """Fresh head parameters for an encoder that has its sizes."""
    config, attrs = encoder_of(model.layers[0]).module.config, model.attrs
    parts = {"features": len(PRIOR) * attrs["prior"], "match": len(MATCH) * attrs["match"], "nil": attrs["nil"]}
    states = (
        {"entity_size": config.entity_size, "norm_eps": config.norm_eps} if attrs["context"] else {"context": False}
    )
    head: CandidateHead | FeatureHead = create_head(model, seed=seed, **parts, **states)
    head.reset_prior()
    return head


def fill_candidate_head(model: LinkerModel, tensors: Mapping[str, Tensor]) -> None:
    """Take the head's parameters from a checkpoint's tensors (`entity_head.NAME`); what these lack stays as it is."""
    shim = shim_of(model)
    state = shim.module.state_dict()
    state.update({n: tensors[f"entity_head.{n}"] for n in state if f"entity_head.{n}" in tensors})
    shim.fill(state)


def encode_link_words(model: LinkerModel, batch: LinkBatch) -> WordStates | None:
    """The word states of a batch's windows, for all steps over them; None where words see entities."""
    if model.attrs["attention"] != "one_way":
        return None
    shim = encoder_of(model.layers[0])
    with shim.running(is_train=False), number_format(model.layers[0], is_train=False):
        return encode_words(shim, batch.pieces_N, batch.lengths, states=False)


def _build_head(*, context: bool = True, **settings: Any) -> CandidateHead | FeatureHead:
    if context:
        return CandidateHead(**settings)
    return FeatureHead(**{name: settings[name] for name in ("features", "match", "nil")})


@dataclass(frozen=True)
class _Inputs:
    """A batch as the model reads it. windows: None where the words' states are there; scored_S: entity tokens that are
    scored; owner_C: which of these a candidate is of; place_C: its row among the U vectors and biases."""

    windows: Windows | None
    mentions: Mentions
    scored_S: Tensor
    owner_C: Tensor
    place_C: Tensor
    features_CF: Tensor
    vectors_UV: Tensor
    bias_U: Tensor


def _score_candidates(model: LinkerModel, batch: LinkBatch, is_train: bool) -> tuple[Tensor, Callable[..., None]]:
    def run(encoder: EncoderShim[LukeEncoder], head: CandidateHead | FeatureHead, batch: LinkBatch) -> Tensor:
        if isinstance(head, FeatureHead):
            return cast(Tensor, head(to_device(torch.from_numpy(batch.features_CF), encoder.device)))
        inputs = _read(encoder, batch, model.attrs["attention"])
        with encoder.gradients():
            states_ED = _entity_states(encoder, batch, inputs, model.attrs["attention"])
        vectors_CV, bias_C = inputs.vectors_UV[inputs.place_C], inputs.bias_U[inputs.place_C]
        states_SD = states_ED.index_select(0, inputs.scored_S)
        scores_C: Tensor = head(states_SD, inputs.owner_C, vectors_CV, bias_C, inputs.features_CF)
        return scores_C

    return run_head(model, batch, is_train, run)


def _read(shim: EncoderShim[LukeEncoder], batch: LinkBatch, attention: str) -> _Inputs:
    """Made on the host, and sent."""
    device, full = shim.device, attention == "full"
    windows = None
    if full or batch.words is None:
        windows = make_windows(batch.pieces_N, batch.lengths, device=device, counts=batch.counts if full else None)
    unique, place_C = np.unique(batch.rows_C, return_inverse=True)
    arrays = (
        batch.scored_S,
        batch.owner_C,
        place_C.reshape(-1),
        batch.features_CF,
        batch.vectors.vectors_UV[unique],
        batch.vectors.bias_U[unique],
    )
    mentions = _mentions(batch, shim.settings["mask_row"])
    return to_device(_Inputs(windows, mentions, *map(torch.from_numpy, arrays)), device)


def _mentions(batch: LinkBatch, mask_row: int) -> Mentions:
    known_E = batch.entities_E >= 0
    vectors_EV = None
    if known_E.any():
        vectors_EV = np.zeros((len(known_E), batch.vectors.vectors_UV.shape[1]), dtype=np.float32)
        vectors_EV[known_E] = batch.vectors.vectors_UV[batch.entities_E[known_E]]
    rows_E = np.where(batch.entities_E == MASKED, mask_row, -1)
    return read_mentions(rows_E, batch.first_E, batch.last_E, batch.counts, vectors_EV=vectors_EV)


def _entity_states(shim: EncoderShim[LukeEncoder], batch: LinkBatch, inputs: _Inputs, attention: str) -> Tensor:
    windows, mentions = inputs.windows, inputs.mentions
    if attention == "one_way":
        words = batch.words
        if windows is not None:
            words = encode_sent(shim, batch.pieces_N, windows, states=False)
        assert words is not None
        return shim.module.encode_entities(words, mentions, group_size=None)
    assert windows is not None
    return shim.module.entity_states(windows, mentions)
