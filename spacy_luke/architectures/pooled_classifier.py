"""The Thinc model that classifies whole windows by their [CLS], as ERNIE does (Zhang et al., section 3.5), or by the
marks around their mentions.

U units, K mentions of a unit, L labels.
"""

from collections.abc import Callable
from typing import Any

import torch
from spacy.util import registry
from thinc.api import Model
from torch import Tensor

from ..batch.entities import EntityBatch
from ..encoders.kind import EncoderShim, WindowBatch
from ..encoders.nodes import EncoderModel
from ..model.ernie import ErnieEncoder
from ..model.ernie_heads import PooledHead
from ..model.luke import first_rows
from ..model.transfer import to_device
from .run_head import POOLED, make_head, run_head

PooledModel = Model[EntityBatch, Tensor]


@registry.architectures("spacy-luke.PooledClassifier.v1")
def build_pooled_classifier(encoder: EncoderModel, bias: bool = True, features: str = "pooled") -> PooledModel:
    """Classifies marked mentions or pairs by the pooled state of their window's [CLS], for an encoder that is ERNIE's
    (spacy-luke.ErnieEncoder.v1, or spacy-luke.SharedEncoder.v1 after an `ernie_encoder`).

    bias: whether the classifier has one; the original's relation head has, its typing head has none.
    features: "pooled" is the paper's; "marks" joins the states of the marks before the mentions, for encoders whose
    pooled state says little.
    """
    if features not in POOLED:
        raise ValueError(f"features must be one of {POOLED}, but it is {features!r}.")
    attrs = {"attention": "full", "features": features, "bias": bias}
    return make_head(_classify_windows, _build_pooled_head, encoder, attrs)


def _build_pooled_head(*, features: str = "pooled", states: int = 1, **settings: Any) -> PooledHead:
    return PooledHead(**settings, states=states if features == "marks" else 1)


def _classify_windows(model: PooledModel, batch: EntityBatch, is_train: bool) -> tuple[Tensor, Callable[..., None]]:
    return run_head(model, batch, is_train, _run_marks if model.attrs["features"] == "marks" else _run)


def _run_marks(encoder: EncoderShim[ErnieEncoder], head: PooledHead, batch: EntityBatch) -> Tensor:
    assert batch.marks_UK is not None
    with encoder.gradients():
        states_ND = encoder.kind.word_states(encoder, _windows(batch))
        rows_UK = to_device(torch.from_numpy(batch.marks_UK), encoder.device)
        states_UX = states_ND.index_select(0, rows_UK.flatten()).unflatten(0, rows_UK.shape).flatten(1)
    logits_UL: Tensor = head(states_UX)
    return logits_UL.float()


def _windows(batch: EntityBatch) -> WindowBatch:
    return WindowBatch(batch.pieces_N, batch.lengths, batch.rows_E, batch.first_E, batch.counts, batch.types_N)


def _run(encoder: EncoderShim[ErnieEncoder], head: PooledHead, batch: EntityBatch) -> Tensor:
    with encoder.gradients():
        states_ND = encoder.kind.word_states(encoder, _windows(batch))
        first_B, window_U = to_device((first_rows(batch.lengths), torch.from_numpy(batch.window_U())), encoder.device)
        pooled_BD = encoder.module.pool_rows(states_ND, first_B)
    logits_UL: Tensor = head(pooled_BD[window_U])
    return logits_UL.float()
