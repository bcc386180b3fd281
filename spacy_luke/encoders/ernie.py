"""Passes of an ERNIE encoder, and the Thinc model that classifies whole windows by their [CLS] (Zhang et al., section
3.6).

N packed pieces, E known entities of all windows, U units, L labels.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d, Ints1d
from torch import Tensor

from ..batch.entities import EntityBatch
from ..bridge.documents import refuse_docs
from ..bridge.wrapper import TorchShim, to_tensor
from ..model.ernie import ErnieConfig, ErnieEncoder, Knowledge
from ..model.ernie_heads import PooledHead
from ..model.luke import Windows
from ..model.precision import choose_precision
from .nodes import ENCODER, encode_windows, init_with_example, number_format


@registry.architectures("spacy-luke.ErnieEncoder.v1")
def build_ernie_encoder(
    trainable: bool = True,
    train_precision: str = "auto",
    predict_precision: str = "float32",
) -> Model[list[Ints1d], list[Floats2d]]:
    """An ERNIE encoder (Zhang et al., ACL 2019), for components that give it known entities. Its sizes, parameters,
    tokenizer and entity vectors come from a checkpoint when the pipeline is initialised
    (spacy-luke.ernie_checkpoint.v1). Settings as those of spacy-luke.LukeEncoder.v1.

    Alone it maps piece ids of windows, [CLS] and [SEP] included, to word states, without entities.
    """
    for name in (train_precision, predict_precision):
        choose_precision(name, torch.device("cpu"))
    shim = TorchShim(_build_ernie_encoder, trainable=trainable)
    attrs = {"kind": "ernie", "train_precision": train_precision, "predict_precision": predict_precision}
    return Model(ENCODER, encode_windows, attrs=attrs, shims=[shim], init=init_with_example)


@registry.architectures("spacy-luke.PooledClassifier.v1")
def build_pooled_classifier(encoder: Model, bias: bool = True) -> Model[EntityBatch, Tensor]:
    """Classifies marked mentions or pairs by the pooled state of their window's [CLS], for an encoder that is ERNIE's
    (spacy-luke.ErnieEncoder.v1, or spacy-luke.SharedEncoder.v1 after an `ernie_encoder`).

    bias: whether the classifier has one; the original's relation head has, its typing head has none.
    """
    attrs = {"attention": "full", "features": "pooled", "bias": bias}
    shim = TorchShim(_build_pooled_head)
    return Model("head", _classify_windows, layers=[encoder], attrs=attrs, shims=[shim], init=init_with_example)


def _build_ernie_encoder(settings: dict[str, Any]) -> ErnieEncoder:
    return ErnieEncoder(ErnieConfig.from_dict(settings["config"]))


def _build_pooled_head(settings: dict[str, Any]) -> PooledHead:
    return PooledHead(settings["hidden_size"], settings["n_labels"], bias=settings["bias"])


def encode_known(
    shim: TorchShim,
    pieces_N: np.ndarray,
    lengths: Sequence[int],
    rows_E: np.ndarray,
    at_E: np.ndarray,
    counts: Sequence[int],
    types_N: np.ndarray | None = None,
) -> Tensor:
    """Word states (N, D) of windows with their known entities. rows_E: of the shim's vectors; at_E: piece of each in
    its window, [CLS] is 0; counts: entities of each window."""
    device = shim.device
    windows = Windows(to_tensor(pieces_N, device), lengths, to_tensor(types_N, device))
    size = shim.module.config.entity_size
    vectors = shim.vectors.gather(rows_E) if len(rows_E) else np.zeros((0, size), dtype=np.float32)
    knowledge = Knowledge(to_tensor(vectors, device), to_tensor(at_E, device), counts)
    return shim.module(windows, knowledge)[0]


def _classify_windows(model: Model, batch: EntityBatch, is_train: bool) -> tuple[Tensor, Callable[[Tensor], None]]:
    refuse_docs(batch)
    encoder, shim = model.layers[0].shims[0], model.shims[0]
    with (
        encoder.running(is_train=is_train and encoder.learning),
        shim.running(is_train=is_train) as head,
        number_format(model.layers[0], encoder, is_train=is_train),
    ):
        with encoder.gradients():
            states_ND = encode_known(
                encoder, batch.pieces_N, batch.lengths, batch.rows_E, batch.first_E, batch.counts, batch.types_N
            )
            pooled_BD = encoder.module.pool(states_ND, batch.lengths)
        logits_UL = head(pooled_BD[to_tensor(batch.window_U(), encoder.device)]).float()

    def backprop(d_logits: Tensor) -> None:
        torch.autograd.backward([logits_UL], [d_logits])

    return logits_UL, backprop
