"""Texts of questions: a passage that is asked, a question, and the marked texts of cloze questions.

All follow the original code (examples/legacy/reading_comprehension and entity_span_qa): which blanks a piece gets
depends on it. N pieces, C candidates.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .tokenizer import PieceTokenizer

_WORD = re.compile("[^ \t\r\n\u202f]+")  # what the original code takes for words


@dataclass(frozen=True)
class Passage:
    """Pieces of a text and their characters [start, end) in it, both ascending. A piece that is nothing but the blank
    before a word has no characters and stands where the word begins."""

    ids_N: np.ndarray
    starts_N: np.ndarray
    ends_N: np.ndarray

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Pieces [first, last) that hold characters of [start, end); first == last where none does."""
        first = int(np.searchsorted(self.ends_N, start, side="right"))
        while first > 0 and self.starts_N[first - 1] >= start:  # the blank before a word belongs to it
            first -= 1
        return first, max(first, int(np.searchsorted(self.starts_N, end, side="left")))


def encode_passage(tokenizer: PieceTokenizer, text: str) -> Passage:
    """Pieces of a passage: of its words with one blank before each, whatever stands between them."""
    words = [match.span() for match in _WORD.finditer(text)]
    prefix = 1 if tokenizer.kind == "byte_bpe" else 0
    normal = " " * prefix + " ".join(text[a:b] for a, b in words)
    ids_N, starts_N, ends_N = tokenizer.encode(normal if words else "")
    if not len(ids_N):
        return Passage(ids_N, starts_N, ends_N)
    lengths = np.array([b - a for a, b in words])
    before_W = np.cumsum(lengths + 1) - lengths - 1 + prefix  # where each word begins in `normal`
    shift_W = np.array([a for a, _ in words]) - before_W
    blank_N = np.array([normal[a:b] == " " for a, b in zip(starts_N.tolist(), ends_N.tolist())])
    starts_N = starts_N + blank_N
    last_N = np.where(blank_N, starts_N, ends_N - 1)
    starts_N = starts_N + shift_W[np.searchsorted(before_W, starts_N, side="right") - 1]
    ends_N = last_N + shift_W[np.searchsorted(before_W, last_N, side="right") - 1] + ~blank_N
    # Normalisation may swap neighbouring marks.
    return Passage(ids_N, np.maximum.accumulate(starts_N), np.maximum.accumulate(ends_N))


def encode_question(tokenizer: PieceTokenizer, text: str) -> Passage:
    """Pieces of a question, as it is, with a blank before its first word."""
    prefix = 1 if tokenizer.kind == "byte_bpe" and text and not text[0].isspace() else 0
    ids_N, starts_N, ends_N = tokenizer.encode(" " * prefix + text)
    starts_N = np.maximum.accumulate(np.maximum(starts_N - prefix, 0)) if len(ids_N) else starts_N
    ends_N = np.maximum.accumulate(np.maximum(ends_N - prefix, 0)) if len(ids_N) else ends_N
    return Passage(ids_N, starts_N, ends_N)


def encode_as_written(tokenizer: PieceTokenizer, text: str) -> Passage:
    """Pieces of a passage or a question as transformers makes them: of the text as it is, with no blank before it."""
    ids_N, starts_N, ends_N = tokenizer.encode(text)
    blank_N = np.array([text[a:b].isspace() for a, b in zip(starts_N.tolist(), ends_N.tolist())], dtype=bool)
    starts_N = np.where(blank_N, ends_N, starts_N)
    return Passage(ids_N, np.maximum.accumulate(starts_N), np.maximum.accumulate(ends_N))


@dataclass(frozen=True)
class MarkedText:
    """Pieces of a text with markers; candidate c has the pieces [first_C[c], last_C[c]), its markers included."""

    ids_N: np.ndarray
    first_C: np.ndarray
    last_C: np.ndarray


def encode_query(tokenizer: PieceTokenizer, query: str, *, placeholder: str, piece: int) -> tuple[np.ndarray, int]:
    """Pieces of a query, and which of them stands for the placeholder, which the query has exactly once."""
    before, after = query.replace("\n", " ").split(placeholder)
    parts = [_segment(tokenizer, before, blank=True), np.array([piece]), _segment(tokenizer, after, blank=False)]
    return np.concatenate(parts), len(parts[0])


def mark_candidates(
    tokenizer: PieceTokenizer,
    text: str,
    candidates: Sequence[tuple[int, int]],
    *,
    marker: int,
    highlight: str,
    highlight_piece: int,
) -> MarkedText:
    """A passage with a marker before and after each candidate, and a piece in the place of each `highlight`.

    candidates: characters [start, end); they may lie inside one another. Every stretch between markers is tokenised by
    itself, without the blanks at its end. The original code (entity_span_qa/utils.py) repeats a stretch that does not
    begin with a blank and holds a highlight; that is a mistake of it, and not done here.
    """
    text = text.replace("\n", " ")
    places = sorted(set(candidates))
    inserts = sorted(
        [(start, 1, start - end, place) for place, (start, end) in enumerate(places)]
        + [(end, 0, -start, place) for place, (start, end) in enumerate(places)]
    )  # at one place those that end come first, and of those that begin the longest
    parts: list[np.ndarray] = []
    first, last = [0] * len(places), [0] * len(places)
    done, size = 0, 0
    for at, begins, _, place in [*inserts, (len(text), 0, 0, -1)]:
        if at > done:
            parts.append(_stretch(tokenizer, text, done, at, highlight=highlight, piece=highlight_piece))
            size, done = size + len(parts[-1]), at
        if place < 0:
            break
        parts.append(np.array([marker]))
        size += 1
        if begins:
            first[place] = size - 1
        else:
            last[place] = size
    which = {place: i for i, place in enumerate(places)}
    index_C = np.array([which[place] for place in candidates], dtype=np.int64)
    ids_N = np.concatenate(parts) if parts else np.empty(0, np.int64)
    return MarkedText(ids_N, np.array(first, dtype=np.int64)[index_C], np.array(last, dtype=np.int64)[index_C])


def _stretch(tokenizer: PieceTokenizer, text: str, start: int, end: int, *, highlight: str, piece: int) -> np.ndarray:
    begin, *rest = text[start:end].split(highlight)
    parts = [_segment(tokenizer, begin, blank=start == 0 or text[start - 1] == " ")]
    for part in rest:
        parts += [np.array([piece]), _segment(tokenizer, part, blank=False)]
    return np.concatenate(parts)


def _segment(tokenizer: PieceTokenizer, text: str, *, blank: bool) -> np.ndarray:
    """Pieces of a stretch of text. blank: there is one before its first word, whether it is part of it or not."""
    text = text.rstrip()
    if blank and tokenizer.kind == "byte_bpe" and text and not text[0].isspace():
        text = " " + text
    return tokenizer.encode(text)[0]
