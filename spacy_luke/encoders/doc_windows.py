"""From Docs to the states of their words, for spaCy's components and whatever else reads whole documents.

N packed pieces of all windows, W words of all Docs, D model width, B windows of a Doc, L pieces of the longest.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from spacy.tokens import Doc
from torch import Tensor

from ..annotations import get_second
from ..batch.windows import Document, plan_windows
from ..batch.words import WordPlaces, place_words
from ..bridge.documents import read_document
from ..model.luke import Encoder
from ..model.transfer import to_device
from ..text.tokenizer import PieceTokenizer
from .kind import EncoderShim, WindowBatch

FindKnown = Callable[[Doc, Document], tuple[np.ndarray, np.ndarray]]  # pieces with an entity, rows of their vectors


@dataclass(frozen=True)
class DocWindows:
    """The windows of a Doc ([CLS] and [SEP] included), and where its words are in them. rows, at: of each window the
    rows of its known entities and their pieces. types: of a pair of texts, the token type of each piece."""

    windows: list[np.ndarray]
    places: WordPlaces
    rows: list[np.ndarray]
    at: list[np.ndarray]
    types: list[np.ndarray] | None = None

    @property
    def lengths(self) -> list[int]:
        return [len(window) for window in self.windows]

    @property
    def words(self) -> int:
        return len(self.places.counts_W)


def read_windows(
    doc: Doc,
    tokenizer: PieceTokenizer,
    *,
    room: int,
    overlap: int,
    find: FindKnown | None = None,
) -> DocWindows:
    """The windows that components in one-way attention with document context have too, so that they are shared.

    find: for an encoder that reads knowledge, what is known of a Doc. Only then a Doc with a
    second text (`luke_second`) is one window [CLS] text [SEP] second [SEP] with the token types 0 and 1, as BERT reads
    pairs; one that is too long for it is read as one text, with a warning.
    """
    document = read_document(doc, tokenizer)
    if find is not None and (split := _second_piece(doc, document, room=room)) is not None:
        return _read_pair(document, tokenizer, split, find(doc, document))
    windows = plan_windows(document, room=room, context="document", share=True, overlap=overlap)
    ids_N = document.pieces.ids_N
    pieces = [
        tokenizer.window(ids_N[start:end]) for start, end in zip(windows.start_B.tolist(), windows.end_B.tolist())
    ]
    places = place_words(document, windows)
    none = np.empty(0, np.int64)
    piece_E, row_E = (none, none) if find is None else find(doc, document)
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
            f"A pair of texts has {total} pieces, but a window holds {room - 1} and the [SEP] between them: it is "
            f"read as one text, without token types. It begins {doc.text[:40]!r}.",
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
    piece_E, row_E = known
    pieces_N = tokenizer.window(ids_N[:split], ids_N[split:])
    types_N = (np.arange(len(pieces_N)) > split + 1).astype(np.int64)
    counts_W = last_W - first_W
    piece_A = np.repeat(first_W - np.cumsum(counts_W) + counts_W, counts_W) + np.arange(counts_W.sum())
    places = WordPlaces(np.zeros_like(piece_A), piece_A + 1 + (piece_A >= split), counts_W)
    return DocWindows([pieces_N], places, [row_E], [piece_E + 1 + (piece_E >= split)], [types_N])


def encode_docs(shim: EncoderShim[Encoder], docs: Sequence[DocWindows], *, size: int) -> Tensor:
    """States of the pieces of all windows, packed: (N, D), float32. size: pieces encoded at once."""
    windows = [window for doc in docs for window in doc.windows]
    rows, at = [x for doc in docs for x in doc.rows], [x for doc in docs for x in doc.at]
    types: list[np.ndarray | None] = []
    for doc in docs:
        types.extend([None] * len(doc.windows) if doc.types is None else doc.types)
    states = []
    for run in _runs([len(window) for window in windows], size):
        batch = WindowBatch(
            np.concatenate(windows[run]),
            [len(x) for x in windows[run]],
            np.concatenate(rows[run]),
            np.concatenate(at[run]),
            [len(x) for x in rows[run]],
            _join_types(types[run], windows[run]),
        )
        states.append(shim.kind.word_states(shim, batch))
    empty = torch.zeros(0, shim.module.config.hidden_size, dtype=torch.float32, device=shim.device)
    return torch.cat(states).float() if states else empty


def _join_types(types: Sequence[np.ndarray | None], windows: Sequence[np.ndarray]) -> np.ndarray | None:
    if all(x is None for x in types):
        return None
    return np.concatenate([np.zeros(len(w), np.int64) if x is None else x for x, w in zip(types, windows)])


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
    arrays = (np.concatenate(rows), np.cumsum(counts_W) - counts_W)
    rows_A, starts_W = to_device(tuple(map(torch.from_numpy, arrays)), device)
    return F.embedding_bag(rows_A, states_ND, starts_W, mode="mean")
