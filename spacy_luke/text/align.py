"""Words <-> pieces: which pieces of a text belong to which word."""

import unicodedata
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from .tokenizer import PieceTokenizer

# Shapes: N pieces, W words.


Cores = Mapping[int, tuple[int, int]]  # words of which a part is what counts for mentions: characters [start, end)
_NO_CORES: Cores = MappingProxyType({})


def align_text(
    tokenizer: PieceTokenizer,
    text: str,
    word_starts_W: np.ndarray,
    word_ends_W: np.ndarray,
    cores: Cores = _NO_CORES,
) -> "Pieces":
    """Pieces of a real text, and the pieces of each of its words.

    word_starts_W, word_ends_W: character offsets [start, end), in text order, not overlapping. Characters may lie
    between words. A piece may belong to several words (a word boundary inside the piece), and a word to several pieces.
    A piece that is nothing but the blank before a word belongs to that word, as in `LukeTokenizer`, which gives the
    blank before a mention to the mention's first piece. ValueError for offsets that are not as said, with their index.

    cores: of words of which only a part is what mentions begin and end with; characters are those of the word, and the
    same of all words that are alike.
    """
    ids_N, starts_N, ends_N = tokenizer.recent.encoded(text, tokenizer.encode)
    first_W, last_W = pieces_of_spans(tokenizer, text, (starts_N, ends_N), word_starts_W, word_ends_W)
    if not cores:
        return Pieces(ids_N=ids_N, first_W=first_W, last_W=last_W)
    edges = core_edges(word_starts_W, word_ends_W, cores)
    return Pieces(ids_N, first_W, last_W).with_cores(*pieces_of_spans(tokenizer, text, (starts_N, ends_N), *edges))


def core_edges(starts_W: np.ndarray, ends_W: np.ndarray, cores: Cores) -> tuple[np.ndarray, np.ndarray]:
    """Characters [start, end) of words, or of their cores where they have some."""
    first_W, last_W = starts_W.copy(), ends_W.copy()
    for i, (start, end) in cores.items():
        first_W[i], last_W[i] = starts_W[i] + start, starts_W[i] + end
    return first_W, last_W


def pieces_of_spans(
    tokenizer: PieceTokenizer,
    text: str,
    offsets: tuple[np.ndarray, np.ndarray],
    word_starts_W: np.ndarray,
    word_ends_W: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """first_W, last_W of `align_text`, where the characters [start, end) of each piece, int64 (N,) and (N,), are
    known."""
    starts_W, ends_W = _checked_offsets(word_starts_W, word_ends_W, len(text))
    starts_N, ends_N = offsets
    starts_N = np.maximum.accumulate(starts_N)  # normalisation may swap neighbouring marks; words need an order
    ends_N = np.maximum.accumulate(ends_N)
    first_W = np.searchsorted(ends_N, starts_W, side="right")
    last_W = np.maximum(first_W, np.searchsorted(starts_N, ends_W, side="left"))
    before_W = np.maximum(first_W - 1, 0)
    if len(starts_N):
        blank = " " if tokenizer.kind == "byte_bpe" else None  # SentencePiece makes blanks of all whitespace
        for w in np.flatnonzero((ends_N[before_W] == starts_W) & (last_W > first_W) & (first_W > 0)):
            before = text[starts_N[before_W[w]] : starts_W[w]]
            if (before == blank or (blank is None and before.isspace())) and not text[starts_W[w]].isspace():
                first_W[w] -= 1
    return first_W, last_W


def align_words(tokenizer: PieceTokenizer, words: Iterable[str], cores: Cores = _NO_CORES) -> "Pieces":
    """Pieces of words that have no text (CoNLL), each word on its own.

    Byte-level BPE: with a blank before the word, unless it begins with "'", is a single punctuation character, or
    begins with whitespace (the rule of the original NER code, studio-ousia/luke examples/ner). WordPiece, unigram: the
    word as it is.

    cores: as of `align_text`.
    """
    ids, ends = array("q"), array("q", [0])  # compact, since a document may have millions of words
    known, own = tokenizer.word_pieces, dict[int, tuple[int, ...]]()
    parts: dict[str, tuple[int, int]] = {}  # of words that have cores
    for i, word in enumerate(words):
        pieces = known.get(word)
        if pieces is None:
            pieces = tokenizer.encode_word(word, blank=has_blank(word))
        if i in cores:
            if word not in parts:
                parts[word] = _core_of_word(tokenizer, word, *cores[i])
            own[i] = tuple(len(ids) + n for n in parts[word])
        ids.extend(pieces)
        ends.append(len(ids))
    ends_W = np.array(ends, dtype=np.int64)
    whole = Pieces(ids_N=np.array(ids, dtype=np.int64), first_W=ends_W[:-1], last_W=ends_W[1:])
    if not own:
        return whole
    first_W, last_W = whole.first_W.copy(), whole.last_W.copy()
    first_W[list(own)], last_W[list(own)] = zip(*own.values())
    return whole.with_cores(first_W, last_W)


def _core_of_word(tokenizer: PieceTokenizer, word: str, start: int, end: int) -> tuple[int, int]:
    """Which of the pieces of a word on its own have its characters [start, end)."""
    blank = " " if tokenizer.kind == "byte_bpe" and has_blank(word) else ""
    text, edges = blank + word, np.array([[start], [end]]) + len(blank)
    (first,), (last,) = pieces_of_spans(tokenizer, text, tokenizer.encode(text)[1:], *edges)
    return int(first), int(last)


def has_blank(word: str) -> bool:
    """Whether a word of a text without blanks is taken to have one before it."""
    return bool(word) and word[0] != "'" and not (len(word) == 1 and is_punctuation(word)) and not word[0].isspace()


def is_punctuation(char: str) -> bool:
    """As in BERT: Unicode punctuation, and every ASCII character that is no letter, digit, blank or control."""
    code = ord(char)
    ascii_symbol = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_symbol or unicodedata.category(char).startswith("P")


def _checked_offsets(starts: np.ndarray, ends: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    starts_W = np.asarray(starts, dtype=np.int64)
    ends_W = np.asarray(ends, dtype=np.int64)
    if starts_W.shape != ends_W.shape or starts_W.ndim != 1:
        raise ValueError(f"Expected as many word ends as starts, but got shapes {ends_W.shape} and {starts_W.shape}.")
    wrong = (starts_W > ends_W) | (ends_W > length) | (starts_W < 0)
    wrong[1:] |= starts_W[1:] < ends_W[:-1]
    if wrong.any():
        w = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"Expected word offsets in text order within a text of {length} characters, but word {w} is "
            f"[{starts_W[w]}, {ends_W[w]})" + (f" after [{starts_W[w - 1]}, {ends_W[w - 1]})." if w else ".")
        )
    return starts_W, ends_W


@dataclass(frozen=True)
class Pieces:
    """Pieces of a text and where its words are among them.

    ids_N: int64, piece ids of the whole text, no [CLS] or [SEP].
    first_W, last_W: int64, word w has the pieces [first, last). first == last for a word with no pieces (both are the
    place where it would stand). Both never decrease; neighbouring words may share a piece.
    cores: the same of what mentions begin and end with, where that is not always the whole word.
    """

    ids_N: np.ndarray
    first_W: np.ndarray
    last_W: np.ndarray
    cores: tuple[np.ndarray, np.ndarray] | None = None

    def with_cores(self, first_W: np.ndarray, last_W: np.ndarray) -> "Pieces":
        """The same with these cores, but of words whose cores have no pieces."""
        whole_W = last_W <= first_W
        return replace(self, cores=(np.where(whole_W, self.first_W, first_W), np.where(whole_W, self.last_W, last_W)))

    @property
    def core_first_W(self) -> np.ndarray:
        """First piece of a mention that begins with the word."""
        return self.first_W if self.cores is None else self.cores[0]

    @property
    def core_last_W(self) -> np.ndarray:
        """One past the last piece of a mention that ends with the word."""
        return self.last_W if self.cores is None else self.cores[1]

    def of_mentions(self, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pieces [first, last) of mentions with the words [start, end)."""
        return self.core_first_W[starts], self.core_last_W[ends - 1]
