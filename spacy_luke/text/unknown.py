"""Words that have a piece which an encoder's vocabulary lacks: of a script that it was not made for, most of them."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .align import align_words
from .tokenizer import PieceTokenizer

_FEW = 0.05  # of the words or pieces; of WNUT17's tweets and Wikigold MiniLM lacks 0.0001, of Chinese texts 0.75
_ADVICE = "Take an encoder of the texts' language, or a multilingual one, such as studio-ousia/mluke-base."


class UnknownWords(NamedTuple):
    """words: how many words with letters or digits were looked at; unknown: those with an unknown piece; example: the
    first of these; unk: the piece that stands for what is unknown."""

    words: int
    unknown: int
    example: str
    unk: str

    @property
    def many(self) -> bool:
        """Whether these are more than names and signs that are rare."""
        return self.unknown > max(2, _FEW * self.words)

    def __str__(self) -> str:
        return (
            f"{self.unknown / max(self.words, 1):.0%} of {self.words:,} words of the training data have a piece that "
            f"the encoder's vocabulary lacks, such as {self.example[:80]!r}. It reads all such pieces as the same "
            f"{self.unk}, so that words of them can be neither told apart nor learned. {_ADVICE}"
        )


class UnknownPieces(NamedTuple):
    """pieces: how many there are of texts; unknown: those that stand for what the vocabulary lacks."""

    pieces: int
    unknown: int

    @property
    def many(self) -> bool:
        return self.unknown > _FEW * self.pieces

    def __str__(self) -> str:
        said = f"{self.unknown / max(self.pieces, 1):.1%} of the pieces are unknown to the encoder"
        return f"{said}, which cannot learn what they say. {_ADVICE}" if self.many else f"{said}."


def count_unknown(tokenizer: PieceTokenizer, texts: Iterable[Iterable[str]], *, most: int = 20_000) -> UnknownWords:
    """Look at the words of texts, of whole texts until there are `most`. Signs and emoji alone, which many vocabularies
    lack and few labels depend on, are no words."""
    words = unknown = 0
    example = ""
    for text in texts:
        if words >= most:
            break
        found = [word for word in text if any(char.isalnum() for char in word)][: most - words]
        pieces = align_words(tokenizer, found)
        before_N = np.cumsum([0, *tokenizer.is_unknown(pieces.ids_N)])
        unknown_W = np.flatnonzero(before_N[pieces.last_W] > before_N[pieces.first_W])
        if not unknown and len(unknown_W):
            example = found[unknown_W[0]]
        words, unknown = words + len(found), unknown + len(unknown_W)
    return UnknownWords(words, unknown, example, tokenizer.special[3])
