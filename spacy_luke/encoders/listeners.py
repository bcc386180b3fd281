"""Word states for spaCy's own components: what their listeners are given, and the gradients that they give back.

N packed pieces of all windows, W words of all Docs, D model width, B windows of a Doc, L pieces of the longest.
spacy-transformers is never imported here unless a pipeline has one of its listeners, which have imported it then.
"""

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model, get_array_module
from thinc.types import Floats2d, Ragged
from thinc.util import torch2xp
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..bridge.arrays import to_floats2d
from ..text.tokenizer import PieceTokenizer
from .doc_windows import DocWindows
from .nodes import EncoderModel, unshare

Backprop = Callable[[Any], list[Doc]]


class Listener(Protocol):
    """A node of another component's model that is given what this one has encoded, and hands back the gradient."""

    upstream_name: str

    def get_batch_id(self, docs: Sequence[Doc]) -> int: ...

    def receive(self, batch_id: int | None, outputs: list[Any] | None, backprop: Backprop | None) -> None:
        """What it answers when its component asks; None: nothing any more."""

    def has_dim(self, name: str) -> bool | None: ...

    def get_dim(self, name: str) -> int: ...

    def set_dim(self, name: str, value: int) -> None: ...


def wants_words(node: object) -> TypeGuard[Listener]:
    """Whether a node is spaCy's listener, which is given one vector for each word."""
    return isinstance(node, Tok2VecListener)


def wants_pieces(node: object) -> TypeGuard[Listener]:
    """Whether a node is spacy-transformers' listener, which is given the states of all pieces."""
    module = sys.modules.get("spacy_transformers.layers.listener")
    return module is not None and isinstance(node, module.TransformerListener)


def listens_to(node: object, name: str) -> bool:
    """Whether a node is a listener of the component with this name."""
    return (wants_words(node) or wants_pieces(node)) and node.upstream_name in ("*", name)


class Owner(Protocol):
    """The component that is listened to."""

    name: str


def install_extensions() -> None:
    """doc._.trf_data, which must be there in every process."""
    if not Doc.has_extension("trf_data"):
        Doc.set_extension("trf_data", default=None)


def fit_width(listener: Listener, width: int, *, component: str, owner: str) -> None:
    """Tell a listener how wide its vectors are. Raises ValueError where its component was built for another width."""
    if listener.has_dim("nO") is None:
        listener.set_dim("nO", width)
    elif listener.get_dim("nO") != width:
        raise ValueError(
            f"'{component}' listens to '{owner}' with width = {listener.get_dim('nO')}, but the word states of that "
            f"encoder have {width} numbers. Set width = {width} in the listener of '{component}' (most often "
            f"[components.{component}.model.tok2vec]) and add the component anew."
        )


def warn_of_renaming(component: str, *, former: str, owner: str) -> None:
    warnings.warn(
        f"'{component}' listens to '{former}', as its config says (upstream), but that encoder is called '{owner}' "
        f"now: '{component}' reads zeros, unless another component is called '{former}'. Rename it back: "
        f"nlp.rename_pipe({owner!r}, {former!r}).",
        stacklevel=4,
    )


def refuse_copy(model: EncoderModel, listener: Model[Any, Any], owner: "Owner") -> EncoderModel:
    """For `nlp.replace_listeners`: components of this package can get a copy of the encoder, others cannot."""
    if wants_words(listener) or wants_pieces(listener):
        raise ValueError(
            f"The listeners of spaCy's components cannot be replaced by a copy of '{owner.name}', which encodes "
            f"windows and not Docs. Keep '{owner.name}' in the pipeline, and freeze it (frozen_components, with "
            "annotating_components) where it must stay as it is."
        )
    return unshare(model)


def split_words(words_WD: Tensor, docs: Sequence[DocWindows]) -> list[Floats2d]:
    """The rows of each Doc, as views."""
    rows_WD, ends = to_floats2d(words_WD.detach()), np.cumsum([doc.words for doc in docs]).tolist()
    return [rows_WD[end - doc.words : end] for doc, end in zip(docs, ends, strict=True)]


def split_pieces(states_ND: Tensor, docs: Sequence[DocWindows], tokenizer: PieceTokenizer) -> list[Any]:
    """A TransformerData for each Doc, as spacy-transformers' own component makes them."""
    parts = states_ND.detach().split([sum(doc.lengths) for doc in docs])
    return [_transformer_data(x, doc, tokenizer) for x, doc in zip(parts, docs)]


def _transformer_data(states_ND: Tensor, doc: DocWindows, tokenizer: PieceTokenizer) -> Any:
    from spacy_transformers.data_classes import TransformerData, WordpieceBatch

    if not doc.words:
        return TransformerData.empty()
    if not doc.windows:  # words, but none with pieces
        return TransformerData.zeros(doc.words, states_ND.shape[1], xp=get_array_module(torch2xp(states_ND)))
    longest = max(doc.lengths)
    ids_BL = np.full((len(doc.windows), longest), tokenizer.pad_id)
    mask_BL = np.arange(longest) < np.array(doc.lengths)[:, None]
    ids_BL[mask_BL] = np.concatenate(doc.windows)
    names = {i: tokenizer.backend.id_to_token(i) for i in np.unique(ids_BL).tolist()}
    data = TransformerData.empty()
    data.wordpieces = WordpieceBatch(
        strings=[[names[i] for i in row] for row in ids_BL.tolist()],
        input_ids=ids_BL,
        attention_mask=mask_BL.astype(np.float32),
        lengths=doc.lengths,
        token_type_ids=None,
    )
    data.model_output["last_hidden_state"] = torch2xp(pad_sequence(states_ND.split(doc.lengths), batch_first=True))
    rows_A = doc.places.rows(np.arange(len(doc.windows)) * longest)
    counts_W = doc.places.counts_W.astype("i")
    data.align = Ragged(rows_A.astype("i"), counts_W)  # type: ignore[arg-type]  # Thinc's arrays are no np.ndarray
    return data
