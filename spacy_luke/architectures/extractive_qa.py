"""The Thinc model of `luke_qa`, which configs name: it scores each piece of a passage as start and end of the answer.

N packed pieces.
"""

from collections.abc import Callable

from spacy.util import registry
from thinc.api import Model
from torch import Tensor

from ..batch.passages import PassageBatch
from ..encoders.kind import EncoderShim
from ..encoders.luke_kind import encode_words
from ..encoders.nodes import EncoderModel
from ..model.answers import AnswerHead
from ..model.luke import LukeEncoder, make_windows
from ..model.transfer import to_device
from .run_head import check_attention, create_head, make_head, read_mentions, run_head

QAModel = Model[PassageBatch, Tensor]


@registry.architectures("spacy-luke.ExtractiveQA.v1")
def build_extractive_qa(encoder: EncoderModel, attention: str = "full") -> QAModel:
    """Scores starts and ends of answers (LUKE, section 4.5).

    attention: "full" is the paper's: words and the known entities of the input see one another. "one_way": words do not
    see entities, which then change nothing and are not encoded.
    """
    check_attention(attention)
    return make_head(_score_pieces, AnswerHead, encoder, {"attention": attention})


def create_answer_head(model: QAModel, *, seed: int = 0) -> None:
    """Fresh head parameters for an encoder that has its sizes."""
    create_head(model, seed=seed)


def _score_pieces(model: QAModel, batch: PassageBatch, is_train: bool) -> tuple[Tensor, Callable[..., None]]:
    def run(encoder: EncoderShim[LukeEncoder], head: AnswerHead, batch: PassageBatch) -> Tensor:
        with encoder.gradients():
            words_ND = _encode(encoder, batch, model.attrs["attention"])
        logits_N2: Tensor = head(words_ND)
        return logits_N2.float()

    return run_head(model, batch, is_train, run)


def _encode(shim: EncoderShim[LukeEncoder], batch: PassageBatch, attention: str) -> Tensor:
    if attention == "one_way" or not len(batch.rows_E):
        return encode_words(shim, batch.pieces_N, batch.lengths, batch.types_N).states_ND
    windows = make_windows(batch.pieces_N, batch.lengths, batch.types_N, device=shim.device, counts=batch.counts)
    mentions = read_mentions(batch.rows_E, batch.first_E, batch.last_E, batch.counts, types_E=batch.types_E)
    words_ND: Tensor = shim.module(*to_device((windows, mentions), shim.device))[0]
    return words_ND
