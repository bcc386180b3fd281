"""Where the pieces of each word of a document stand in its windows.

W words of a document, B windows, A places: one for each piece of each word.
"""

from dataclasses import dataclass

import numpy as np

from .windows import Document, WindowPlan


@dataclass(frozen=True)
class WordPlaces:
    """Places of the words' pieces, word after word. A piece that two words share has two places."""

    window_A: np.ndarray
    column_A: np.ndarray  # piece of that window, [CLS] is 0
    counts_W: np.ndarray  # places of each word; 0: it has no pieces

    def rows(self, starts_B: np.ndarray) -> np.ndarray:
        """The places as rows of an array of all windows, in which each begins at its start. (A,)"""
        rows_A: np.ndarray = starts_B[self.window_A] + self.column_A
        return rows_A


def place_words(document: Document, windows: WindowPlan) -> WordPlaces:
    """Each word in the window whose core holds its first piece; only the pieces of a word that is too long for what
    that window holds of it stand in the windows whose cores hold them."""
    first_W, counts_W = document.pieces.first_W, document.pieces.last_W - document.pieces.first_W
    if not len(windows):
        return WordPlaces(np.empty(0, np.int64), np.empty(0, np.int64), np.zeros_like(counts_W))
    begin_A = np.repeat(np.cumsum(counts_W) - counts_W, counts_W)
    first_A = np.repeat(first_W, counts_W)
    piece_A = first_A + np.arange(len(first_A)) - begin_A
    home_A, own_A = (np.searchsorted(windows.core_start_B, x, side="right") - 1 for x in (first_A, piece_A))
    window_A = np.maximum(np.where(piece_A < windows.end_B[home_A], home_A, own_A), 0)
    return WordPlaces(window_A, piece_A - windows.start_B[window_A] + 1, counts_W)
