"""The case of words, for encoders that read small letters only: "apple" and "Apple" are one piece to them.

Such an encoder may have a row for each piece in each case: the row `piece + case * pieces`, whose vector is that of the
piece plus that of the case (`WordEmbeddings.look_up`). A piece has the case of the word that it is in. A word is here
what stands between blanks, hyphens, slashes and apostrophes, whatever a tokenizer makes of it, so that texts, lists of
words and questions give the same. N pieces.
"""

import re
from functools import lru_cache
from typing import Any

import numpy as np

from .recent import RecentTexts
from .tokenizer import CACHED_WORDS, PieceTokenizer

CASES = ("lower", "title", "upper", "mixed", "digits")  # the first also of what has neither letters nor digits
_LOWER, _TITLE, _UPPER, _MIXED, _DIGITS = range(len(CASES))
_WORD = re.compile(r"[^\s\-\u2010-\u2015/'\u2019]+")


@lru_cache(maxsize=100_000)
def case_of(word: str) -> int:
    """The place of a word's case in CASES: "iPhone" and "McCoy" are mixed, "A" is title, "U.S." upper, "3rd" lower."""
    letters = [char for char in word if char.isupper() or char.islower() or char.istitle()]
    if not letters:
        return _DIGITS if any(char.isdigit() for char in word) else _LOWER
    if all(char.islower() for char in letters):
        return _LOWER
    first, *rest = letters
    if not first.islower() and all(char.islower() for char in rest):
        return _TITLE
    return _UPPER if all(char.isupper() for char in letters) else _MIXED


def cases_at(text: str, starts_N: np.ndarray) -> np.ndarray:
    """The case of the word that holds each of these characters, 0 where none does: int64 (N,)."""
    words = [(*match.span(), case_of(match[0])) for match in _WORD.finditer(text)]
    if not words:
        return np.zeros(len(starts_N), np.int64)
    first_W, end_W, case_W = np.array(words, dtype=np.int64).T
    word_N = np.searchsorted(first_W, starts_N, side="right") - 1
    inside_N = (word_N >= 0) & (starts_N < end_W[word_N])
    found_N: np.ndarray = np.where(inside_N, case_W[word_N], 0)
    return found_N


class CasedTokenizer(PieceTokenizer):
    """A tokenizer whose pieces of texts and words are rows that say the case too. pieces: of a case, as many as the
    encoder's table has."""

    def __init__(self, tokenizer: PieceTokenizer, pieces: int):
        self.__dict__.update(tokenizer.__dict__)
        self.word_pieces = {}
        self.recent = RecentTexts()
        self.pieces = pieces

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (self.to_json(), self.pieces))

    def is_unknown(self, ids_N: np.ndarray) -> np.ndarray:
        return super().is_unknown(ids_N % self.pieces)

    def encode(self, text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ids_N, starts_N, ends_N = super().encode(text)
        return ids_N + self.pieces * cases_at(text, starts_N), starts_N, ends_N

    def encode_word(self, word: str, *, blank: bool) -> tuple[int, ...]:
        rows = self.word_pieces.get(word)
        if rows is None:
            rows = tuple(self.encode(" " + word if blank and self.kind == "byte_bpe" else word)[0].tolist())
            if len(self.word_pieces) >= CACHED_WORDS:
                self.word_pieces.clear()
            self.word_pieces[word] = rows
        return rows


def _restore(text: str, pieces: int) -> CasedTokenizer:
    return CasedTokenizer(PieceTokenizer.from_json(text), pieces)
