"""The Thinc model of `luke_qa`, which configs name: it scores each piece of a passage as start and end of the answer.

N packed pieces.
"""

from collections.abc import Callable
from typing import Any

import torch
from spacy.util import registry
from thinc.api import Model
from torch import Tensor

from ..batch.passages import PassageBatch
from ..bridge.documents import refuse_docs
from ..bridge.wrapper import TorchShim, to_tensor
from ..encoders.cache import encode_words
from ..encoders.nodes import init_with_example, number_format
from ..model.answers import AnswerHead
from ..model.config import LukeConfig
from ..model.luke import Mentions, Windows, initialize
from .entity_classifier import MAX_MENTION
from .span_classifier import ATTENTION


@registry.architectures("spacy-luke.ExtractiveQA.v1")
def build_extractive_qa(encoder: Model, attention: str = "full") -> Model[PassageBatch, Tensor]:
    """Scores starts and ends of answers (LUKE, section 4.5).

    attention: "full" is the paper's: words and the known entities of the input see one another. "one_way": words do not
    see entities, which then change nothing and are not encoded.
    """
    if attention not in ATTENTION:
        raise ValueError(f"attention must be one of {ATTENTION}, but it is {attention!r}.")
    shim = TorchShim(_build_answer_head)
    attrs = {"attention": attention}
    return Model("head", _score_pieces, layers=[encoder], attrs=attrs, shims=[shim], init=init_with_example)


def create_answer_head(model: Model, *, seed: int = 0) -> None:
    """Fresh head parameters for an encoder that has its sizes."""
    shim = model.shims[0]
    config: LukeConfig = model.layers[0].shims[0].module.config
    head = shim.create({"hidden_size": config.hidden_size})
    initialize(head, std=config.initializer_range, generator=torch.Generator(device=shim.device).manual_seed(seed))


def _build_answer_head(settings: dict[str, Any]) -> AnswerHead:
    return AnswerHead(settings["hidden_size"])


def _score_pieces(model: Model, batch: PassageBatch, is_train: bool) -> tuple[Tensor, Callable[[Tensor], None]]:
    refuse_docs(batch)
    encoder, shim = model.layers[0].shims[0], model.shims[0]
    with (
        encoder.running(is_train=is_train and encoder.learning),
        shim.running(is_train=is_train) as head,
        number_format(model.layers[0], encoder, is_train=is_train),
    ):
        with encoder.gradients():
            words_ND = _encode(encoder, batch, model.attrs["attention"])
        logits_N2 = head(words_ND).float()

    def backprop(d_logits: Tensor) -> None:
        torch.autograd.backward([logits_N2], [d_logits])

    return logits_N2, backprop


def _encode(shim: TorchShim, batch: PassageBatch, attention: str) -> Tensor:
    if attention == "one_way" or not len(batch.rows_E):
        return encode_words(shim, batch.pieces_N, batch.lengths, batch.types_N).states_ND
    pieces_N, types_N, rows_E, first_E, last_E, types_E = (
        to_tensor(x, shim.device)
        for x in (batch.pieces_N, batch.types_N, batch.rows_E, batch.first_E, batch.last_E, batch.types_E)
    )
    last_E = torch.minimum(last_E, first_E + MAX_MENTION - 1)
    mentions = Mentions(rows_E, first_E, last_E, batch.counts, types_E)
    return shim.module(Windows(pieces_N, batch.lengths, types_N), mentions)[0]
