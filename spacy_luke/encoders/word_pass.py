"""The pass over words that the listeners of an update share, until they have given back their gradients."""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from spacy.tokens import Doc
from thinc.api import get_array_module
from thinc.types import Floats2d
from torch import Tensor

from ..bridge.arrays import from_xp
from ..bridge.finite import check_squares
from ..text.tokenizer import PieceTokenizer
from .doc_windows import DocWindows, encode_docs, pool_words
from .listeners import Listener, split_pieces, split_words, wants_pieces, wants_words
from .nodes import EncoderModel, encoder_of, number_format
from .sharing import SharedEncoder


class WordPass:
    """The one pass over the words of an update, for all listeners.

    Each listener gives back the gradient of its component's loss. When the last one has, or when no other can come any
    more, the encoder's gradients are computed once, of their sum times `weight`, and added to what the encoder has
    learned (`SharedEncoder.add`). losses: gets the squared gradients under the owner's name, as spaCy's Tok2Vec has
    them. names: of the listeners' components, by their `id`. then: what waits for that, such as the optimizer's step.
    """

    closed = False
    then: Callable[[], None] | None = None

    def __init__(
        self,
        node: EncoderModel,
        sharing: SharedEncoder,
        docs: Sequence[DocWindows],
        *,
        size: int,
        weight: float,
        losses: dict[str, float],
        names: dict[int, str],
    ):
        """size: pieces encoded at once."""
        self.sharing, self.owner, self.names = sharing, sharing.owner, names
        self.docs, self.weight, self.losses = docs, weight, losses
        shim = encoder_of(node)
        with (
            shim.running(is_train=shim.trainable),
            number_format(node, is_train=True),
            contextlib.nullcontext() if shim.trainable else torch.no_grad(),
        ):
            self.states_ND = encode_docs(shim, docs, size=size)
            self.words_WD = pool_words(self.states_ND, docs)
        self.gradients: dict[str, Tensor] = {}
        self.listeners: list[Listener] = []
        self.waiting: list[Listener] = []

    def __getstate__(self) -> dict[str, Any]:
        return {"closed": True, "owner": self.owner}  # a graph cannot be copied

    def feed(self, listeners: Sequence[Listener], docs: Sequence[Doc], tokenizer: PieceTokenizer) -> None:
        """Hand the listeners what their components will ask for."""
        self.listeners, self.waiting = list(listeners), list(listeners)
        words = split_words(self.words_WD, self.docs)
        pieces = split_pieces(self.states_ND, self.docs, tokenizer) if any(map(wants_pieces, listeners)) else []
        for listener in listeners:
            batch = listener.get_batch_id(docs)
            if wants_words(listener):
                listener.receive(batch, words, partial(self.take_words, listener))
            else:
                listener.receive(batch, pieces, partial(self.take_pieces, listener))
        self.sharing.wait(self)

    @property
    def begun(self) -> bool:
        """Whether gradients have come."""
        return len(self.waiting) < len(self.listeners)

    def take_words(self, listener: Listener, d_words: Sequence[Floats2d]) -> list[Doc]:
        """The callback of spaCy's listener. d_words: for each Doc (words, D)."""
        self._expect(listener)
        rows = [x.reshape((-1, self.words_WD.shape[1])) for x in d_words]
        gradient = self._tensor(get_array_module(rows[0]).concatenate(rows)) if rows else self.words_WD.new_zeros(0)
        return self._take(listener, "words", gradient)

    def take_pieces(self, listener: Listener, d_pieces: Sequence[Any]) -> list[Doc]:
        """The callback of spacy-transformers' listener. d_pieces: for each Doc that is not empty a TransformerData with
        gradients (B, L, D)."""
        self._expect(listener)
        docs = [doc for doc in self.docs if doc.words]
        parts = [
            x[i, :length]
            for doc, data in zip(docs, d_pieces, strict=True)
            for x in [self._tensor(data.model_output["last_hidden_state"])]
            for i, length in enumerate(doc.lengths)
        ]
        return self._take(listener, "pieces", torch.cat(parts) if parts else torch.zeros_like(self.states_ND))

    def _tensor(self, array: Any) -> Tensor:
        return from_xp(array).to(self.states_ND.device)

    def _expect(self, listener: Listener) -> None:
        if self.closed or listener not in self.waiting:
            raise ValueError(
                f"A listener of '{self.owner}' gave back a gradient twice, or after the step. Expected one backprop "
                "for each update of its component, before the pipeline's finish_update."
            )

    def _take(self, listener: Listener, kind: str, gradient: Tensor) -> list[Doc]:
        squared = float((gradient**2).sum())
        check_squares(squared, name=self.names.get(id(listener), "a component"), owner=self.owner)
        self.losses[self.owner] += squared
        self.gradients[kind] = self.gradients[kind] + gradient if kind in self.gradients else gradient
        self.waiting.remove(listener)
        listener.receive(None, None, None)
        if not self.waiting:
            self.close()
        return []

    def close(self) -> None:
        """Compute the encoder's gradients from those that have come, forget the graph, and do what waits for it."""
        if self.closed:
            return
        self.closed = True
        self.sharing.end()
        for listener in self.waiting:  # of components that learned nothing from these examples
            listener.receive(None, None, None)
        self._backprop()
        del self.states_ND, self.words_WD
        if self.then is not None:
            self.then()

    def _backprop(self) -> None:
        outputs = {"pieces": self.states_ND, "words": self.words_WD}
        kinds = [kind for kind in self.gradients if outputs[kind].requires_grad]
        if not kinds or not self.weight:
            return
        names, parameters = zip(*self.sharing.shim.named_parameters())
        found = torch.autograd.grad(
            [outputs[kind] for kind in kinds],
            parameters,
            [self.gradients[kind] * self.weight for kind in kinds],
            allow_unused=True,
        )
        self.sharing.add((name, gradient) for name, gradient in zip(names, found) if gradient is not None)
