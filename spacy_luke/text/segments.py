"""Pieces of a text that is cut around mentions, each stretch tokenised by itself, as `LukeTokenizer` does it.

A cut changes pieces only between two places where every tokenizer starts anew, so only there the text is encoded again.
N pieces, W words, K mentions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .align import Pieces
from .tokenizer import PieceTokenizer

Edit = tuple[int, int, np.ndarray]  # pieces [first, last) of the whole text, and those that stand there instead


@dataclass(frozen=True)
class CutText:
    """A text cut around mentions. Pieces are numbered anew; of mention k they are [first_K[k], last_K[k]).

    base: pieces of the text without cuts; edits: what the cuts change of them, in order.
    """

    base: np.ndarray
    edits: Sequence[Edit]
    first_K: Sequence[int]
    last_K: Sequence[int]

    def __len__(self) -> int:
        return len(self.base) + sum(len(ids) - (last - first) for first, last, ids in self.edits)

    def number(self, piece: int) -> int:
        """New number of a piece of the text without cuts; inside an edit, that of its beginning."""
        shift = 0
        for first, last, ids in self.edits:
            if piece < last:
                return min(piece, first) + shift
            shift += len(ids) - (last - first)
        return piece + shift

    def ids(self, first: int, last: int) -> np.ndarray:
        """Pieces [first, last) in the new numbers."""
        parts, done, old = [], 0, 0
        for begin, end, ids in [*self.edits, (len(self.base), len(self.base), self.base[:0])]:
            for part in (self.base[old:begin], ids):
                parts.append(part[max(first - done, 0) : max(last - done, 0)])
                done += len(part)
            old = end
            if done >= last:
                break
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class WordCutter:
    """Cuts a text of which only the words are known: they are pieces on their own, so that cuts between them change
    nothing."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces

    def cut(self, mentions: Sequence[tuple[int, int]]) -> CutText:
        """mentions: words [start, end)."""
        first_K, last_K = self.pieces.of_mentions(*np.array(mentions).T)
        return CutText(self.pieces.ids_N, (), first_K.tolist(), last_K.tolist())


class TextCutter:
    """Cuts one text around any mentions.

    pieces: of the whole text, whose words, or the cores of these, have the characters [starts_W, ends_W).
    """

    def __init__(
        self, tokenizer: PieceTokenizer, pieces: Pieces, text: str, starts_W: np.ndarray, ends_W: np.ndarray
    ) -> None:
        self.tokenizer = tokenizer
        self.pieces = pieces
        self.text = text
        self.known: dict[tuple[int, int, tuple[int, ...]], tuple[np.ndarray, list[int]]] = {}
        self.starts: list[int] = starts_W.tolist()
        self.ends: list[int] = ends_W.tolist()
        self.anew = [w for w, start in enumerate(self.starts) if w == 0 or tokenizer.starts_anew(text, start - 1)]
        # The character before which the text is cut there: the blank belongs to the word.
        self.anew_at = np.array([0 if w == 0 else self.starts[w] - 1 for w in self.anew], dtype=np.int64)

    def cut(self, mentions: Sequence[tuple[int, int]]) -> CutText:
        """mentions: words [start, end)."""
        first_W = self.pieces.core_first_W
        places = [(self._before_blank(self.starts[a]), self._before_blank(self.ends[b - 1])) for a, b in mentions]
        regions: dict[int, list[int]] = {}
        clean: dict[int, int] = {}
        for place in sorted({x for pair in places for x in pair}):
            i = int(np.searchsorted(self.anew_at, place, side="right")) - 1
            if self.anew_at[i] == place:
                clean[place] = int(first_W[self.anew[i]]) if place else 0
            elif place == len(self.text):
                clean[place] = len(self.pieces.ids_N)
            else:
                regions.setdefault(i, []).append(place)
        edits: list[Edit] = []
        inside: dict[int, int] = {}
        shift, shifts = 0, []
        for i, cuts in regions.items():
            (first, last), ids, at = self._region(i, cuts)
            inside.update((place, first + shift + offset) for place, offset in zip(cuts, at))
            if len(ids) != last - first or (ids != self.pieces.ids_N[first:last]).any():
                edits.append((first, last, ids))
            shift += len(ids) - (last - first)
            shifts.append((last, shift))
        for place, piece in clean.items():
            inside[place] = piece + next((s for end, s in reversed(shifts) if piece >= end), 0)
        return CutText(self.pieces.ids_N, edits, [inside[a] for a, _ in places], [inside[b] for _, b in places])

    def _before_blank(self, place: int) -> int:
        """A blank before a cut belongs to what follows."""
        return place - 1 if place and self.text[place - 1] == " " else place

    def _region(self, i: int, cuts: list[int]) -> tuple[tuple[int, int], np.ndarray, list[int]]:
        """The i-th stretch between two places where tokenisation starts anew, cut: its pieces in the whole text
        [first, last), those it has now, and how many of these stand before each cut."""
        begin = int(self.anew_at[i])
        end = int(self.anew_at[i + 1]) if i + 1 < len(self.anew) else len(self.text)
        first = int(self.pieces.core_first_W[self.anew[i]]) if i else 0
        last = int(self.pieces.core_first_W[self.anew[i + 1]]) if i + 1 < len(self.anew) else len(self.pieces.ids_N)
        key = (begin, end, tuple(cuts))
        if key not in self.known:
            edges = [begin, *cuts, end]
            parts = [self.tokenizer.encode(self.text[a:b])[0] for a, b in zip(edges, edges[1:])]
            self.known[key] = (np.concatenate(parts), np.cumsum([len(part) for part in parts[:-1]]).tolist())
        ids, at = self.known[key]
        return (first, last), ids, at
