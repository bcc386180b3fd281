"""Word states for spaCy's own components: what their listeners are given, and the gradients that they give back.

N packed pieces of all windows, W words of all Docs, D model width, B windows of a Doc, L pieces of the longest.
spacy-transformers is never imported here unless a pipeline has one of its listeners, which have imported it then.
"""

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model, get_array_module
from thinc.types import Floats2d, Ragged
from thinc.util import torch2xp, xp2torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..annotations import get_second
from ..batch.windows import Document, plan_windows
from ..batch.words import WordPlaces, place_words
from ..bridge.documents import read_document
from ..bridge.finite import check_squares
from ..bridge.wrapper import TorchShim, to_tensor
from ..text.tokenizer import PieceTokenizer
from .cache import encode_words
from .ernie import encode_known
from .nodes import number_format, unshare


@dataclass(frozen=True)
class DocWindows:
    """The windows of a Doc ([CLS] and [SEP] included), and where its words are in them. rows, at: for an ERNIE encoder,
    of each window the rows of its known entities and their pieces. types: of a pair of texts, the token type of each
    piece."""

    windows: list[np.ndarray]
    places: WordPlaces
    rows: list[np.ndarray] | None = None
    at: list[np.ndarray] | None = None
    types: list[np.ndarray] | None = None

    @property
    def lengths(self) -> list[int]:
        return [len(window) for window in self.windows]

    @property
    def words(self) -> int:
        return len(self.places.counts_W)


# ---- listeners


def wants_words(node: Model) -> bool:
    """Whether a node is spaCy's listener, which is given one vector for each word."""
    return isinstance(node, Tok2VecListener)


def wants_pieces(node: Model) -> bool:
    """Whether a node is spacy-transformers' listener, which is given the states of all pieces."""
    module = sys.modules.get("spacy_transformers.layers.listener")
    return module is not None and isinstance(node, module.TransformerListener)


def install_extensions() -> None:
    """doc._.trf_data, which must be there in every process."""
    if not Doc.has_extension("trf_data"):
        Doc.set_extension("trf_data", default=None)


def fit_width(listener: Model, width: int, *, component: str, owner: str) -> None:
    """Tell a listener how wide its vectors are. Raises ValueError where its component was built for another width."""
    if listener.has_dim("nO") is None:
        listener.set_dim("nO", width)
    elif listener.get_dim("nO") != width:
        raise ValueError(
            f"'{component}' listens to '{owner}' with width = {listener.get_dim('nO')}, but the word states of that "
            f"encoder have {width} numbers. Set width = {width} in the listener of '{component}' (most often "
            f"[components.{component}.model.tok2vec]) and add the component anew."
        )


def refuse_copy(model: Model, listener: Model, owner: Any) -> Model:
    """For `nlp.replace_listeners`: components of this package can get a copy of the encoder, others cannot."""
    if wants_words(listener) or wants_pieces(listener):
        raise ValueError(
            f"The listeners of spaCy's components cannot be replaced by a copy of '{owner.name}', which encodes "
            f"windows "
            f"and not Docs. Keep '{owner.name}' in the pipeline, and freeze it (frozen_components, with "
            "annotating_components) where it must stay as it is."
        )
    return unshare(model)


# ---- from Docs to word states


def read_windows(
    doc: Doc,
    tokenizer: PieceTokenizer,
    *,
    room: int,
    overlap: int,
    find: Callable[[Doc, Document], tuple[np.ndarray, np.ndarray]] | None = None,
) -> DocWindows:
    """The windows that components in one-way attention with document context have too, so that they are shared.

    find: for an ERNIE encoder, the pieces of a Doc that have an entity, and the entities' rows. Only then a Doc with a
    second text (`luke_second`) is one window [CLS] text [SEP] second [SEP] with the token types 0 and 1, as BERT reads
    pairs; one that is too long for it is read as one text, with a warning.
    """
    document = read_document(doc, tokenizer)
    split = None if find is None else _second_piece(doc, document, room=room)
    if find is not None and split is not None:
        return _read_pair(document, tokenizer, split, find(doc, document))
    windows = plan_windows(document, room=room, context="document", share=True, overlap=overlap)
    ids_N = document.pieces.ids_N
    pieces = [
        np.concatenate([[tokenizer.cls_id], ids_N[start:end], [tokenizer.sep_id]])
        for start, end in zip(windows.start_B.tolist(), windows.end_B.tolist())
    ]
    places = place_words(document, windows)
    if find is None:
        return DocWindows(pieces, places)
    piece_E, row_E = find(doc, document)
    edges = list(zip(windows.start_B.tolist(), windows.end_B.tolist()))
    inside = [(piece_E >= start) & (piece_E < end) for start, end in edges]
    at = [piece_E[mask] - start + 1 for mask, (start, _) in zip(inside, edges)]
    return DocWindows(pieces, places, [row_E[mask] for mask in inside], at)


def _second_piece(doc: Doc, document: Document, *, room: int) -> int | None:
    """The piece that the second text of a pair begins with, None for a single text and for a pair that is too long."""
    second = get_second(doc)
    total = len(document.pieces.ids_N)
    if second is None or not total:
        return None
    before = [word for word in doc if word.idx < second]
    if before and before[-1].idx + len(before[-1]) > second:
        raise ValueError(
            f"doc._.luke_second must be a character where a word begins, but {second} lies inside {before[-1].text!r}, "
            f"which begins at {before[-1].idx}. Put a blank between the two texts."
        )
    if total + 1 > room:
        warnings.warn(
            f"A pair of texts has {total} pieces, but a window holds {room - 1} and the [SEP] between them: it is read "
            f"as "
            f"one text, without token types. It begins {doc.text[:40]!r}.",
            stacklevel=2,
        )
        return None
    first_W, last_W = document.pieces.first_W[len(before) :], document.pieces.last_W[len(before) :]
    found = first_W[last_W > first_W]
    return int(found[0]) if len(found) else total


def _read_pair(
    document: Document, tokenizer: PieceTokenizer, split: int, known: tuple[np.ndarray, np.ndarray]
) -> DocWindows:
    """The one window of a pair whose second text begins with the piece `split`."""
    ids_N, first_W, last_W = document.pieces.ids_N, document.pieces.first_W, document.pieces.last_W
    (piece_E, row_E), sep = known, [tokenizer.sep_id]
    pieces_N = np.concatenate([[tokenizer.cls_id], ids_N[:split], sep, ids_N[split:], sep])
    types_N = (np.arange(len(pieces_N)) > split + 1).astype(np.int64)
    counts_W = last_W - first_W
    piece_A = np.repeat(first_W - np.cumsum(counts_W) + counts_W, counts_W) + np.arange(counts_W.sum())
    places = WordPlaces(np.zeros_like(piece_A), piece_A + 1 + (piece_A >= split), counts_W)
    return DocWindows([pieces_N], places, [row_E], [piece_E + 1 + (piece_E >= split)], [types_N])


def encode_docs(shim: TorchShim, docs: Sequence[DocWindows], *, size: int) -> Tensor:
    """States of the pieces of all windows, packed: (N, D), float32. size: pieces encoded at once."""
    windows = [window for doc in docs for window in doc.windows]
    has_known = any(doc.rows is not None for doc in docs)
    rows = [x for doc in docs for x in doc.rows or []]
    at = [x for doc in docs for x in doc.at or []]
    types = [x for doc in docs for x in doc.types or [None] * len(doc.windows)]
    states = []
    for run in _runs([len(window) for window in windows], size):
        pieces, lengths = np.concatenate(windows[run]), [len(x) for x in windows[run]]
        if has_known:
            counts = [len(x) for x in rows[run]]
            known = (np.concatenate(rows[run]), np.concatenate(at[run]), counts)
            types_N = np.concatenate([np.zeros(n, np.int64) if x is None else x for n, x in zip(lengths, types[run])])
            states.append(encode_known(shim, pieces, lengths, *known, types_N))
        else:
            states.append(encode_words(shim, pieces, lengths).states_ND)
    empty = torch.zeros(0, shim.module.config.hidden_size, device=shim.device)
    return torch.cat(states).float() if states else empty


def _runs(lengths: Sequence[int], size: int) -> Iterator[slice]:
    first = held = 0
    for i, length in enumerate(lengths):
        if held and held + length > size:
            yield slice(first, i)
            first, held = i, 0
        held += length
    if held:
        yield slice(first, len(lengths))


def pool_words(states_ND: Tensor, docs: Sequence[DocWindows]) -> Tensor:
    """The mean of each word's pieces, zeros for a word without pieces: (W, D)."""
    rows, start = [], 0
    for doc in docs:
        lengths_B = np.array(doc.lengths, dtype=np.int64)
        rows.append(doc.places.rows(start + np.cumsum(lengths_B) - lengths_B))
        start += int(lengths_B.sum())
    counts_W = np.concatenate([doc.places.counts_W for doc in docs]) if docs else np.empty(0, np.int64)
    if not counts_W.sum():
        return states_ND.new_zeros(len(counts_W), states_ND.shape[1])
    device = states_ND.device
    starts_W = to_tensor(np.cumsum(counts_W) - counts_W, device)
    return F.embedding_bag(to_tensor(np.concatenate(rows), device), states_ND, starts_W, mode="mean")


def split_words(words_WD: Tensor, docs: Sequence[DocWindows]) -> list[Floats2d]:
    return [torch2xp(x.detach()) for x in words_WD.split([doc.words for doc in docs])]


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
    data.align = Ragged(rows_A.astype("i"), doc.places.counts_W.astype("i"))
    return data


# ---- training


class WordPass:
    """The one pass over the words of an update, for all listeners.

    Each listener gives back the gradient of its component's loss. When the last one has, or when no other can come any
    more, the encoder's gradients are computed once, of their sum times `weight`, and added to `shim.sums`. losses: gets
    the squared gradients under `name`, as spaCy's Tok2Vec has them. names: of the listeners' components, by their `id`.
    then: what waits for that, such as the optimizer's step.
    """

    closed = False
    then: Callable[[], None] | None = None

    def __init__(
        self,
        node: Model,
        docs: Sequence[DocWindows],
        *,
        size: int,
        weight: float,
        name: str,
        losses: dict[str, float],
        names: dict[int, str],
    ):
        self.names = names
        self.shim: TorchShim = node.shims[0]
        self.docs, self.weight, self.name, self.losses = docs, weight, name, losses
        learns = self.shim.trainable
        with (
            self.shim.running(is_train=learns),
            number_format(node, self.shim, is_train=True),
            contextlib.nullcontext() if learns else torch.no_grad(),
        ):
            self.states_ND = encode_docs(self.shim, docs, size=size)
            self.words_WD = pool_words(self.states_ND, docs)
        self.gradients: dict[str, Tensor] = {}
        self.listeners: list[Model] = []
        self.waiting: list[Model] = []

    def __getstate__(self) -> dict[str, Any]:
        return {"closed": True}  # a graph cannot be copied

    def feed(self, listeners: Sequence[Model], docs: Sequence[Doc], tokenizer: PieceTokenizer) -> None:
        """Hand the listeners what their components will ask for."""
        self.listeners, self.waiting = list(listeners), list(listeners)
        words = split_words(self.words_WD, self.docs)
        pieces = split_pieces(self.states_ND, self.docs, tokenizer) if any(map(wants_pieces, listeners)) else []
        for listener in listeners:
            outputs, take = (words, self.take_words) if wants_words(listener) else (pieces, self.take_pieces)
            listener.receive(listener.get_batch_id(docs), outputs, partial(take, listener))
        self.shim.pending = self

    @property
    def begun(self) -> bool:
        """Whether gradients have come."""
        return len(self.waiting) < len(self.listeners)

    def take_words(self, listener: Model, d_words: Sequence[Floats2d]) -> list[Doc]:
        """The callback of spaCy's listener. d_words: for each Doc (words, D)."""
        self._expect(listener)
        gradient = torch.cat([self._tensor(x).reshape(-1, self.words_WD.shape[1]) for x in d_words])
        return self._take(listener, "words", gradient)

    def take_pieces(self, listener: Model, d_pieces: Sequence[Any]) -> list[Doc]:
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
        return xp2torch(array, requires_grad=False, device=self.states_ND.device)

    def _expect(self, listener: Model) -> None:
        if self.closed or listener not in self.waiting:
            raise ValueError(
                f"A listener of '{self.name}' gave back a gradient twice, or after the step. Expected one backprop for "
                "each update of its component, before the pipeline's finish_update."
            )

    def _take(self, listener: Model, kind: str, gradient: Tensor) -> list[Doc]:
        squared = float((gradient**2).sum())
        check_squares(squared, name=self.names.get(id(listener), "a component"), owner=self.name)
        self.losses[self.name] += squared
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
        self.closed, self.shim.pending = True, None
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
        names, parameters = zip(*self.shim.named_parameters())
        found = torch.autograd.grad(
            [outputs[kind] for kind in kinds],
            parameters,
            [self.gradients[kind] * self.weight for kind in kinds],
            allow_unused=True,
        )
        sums = self.shim.sums
        for name, gradient in zip(names, found):
            if gradient is not None:
                sums[name] = sums[name] + gradient if name in sums else gradient
