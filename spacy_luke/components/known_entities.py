"""Entities of a Doc that have a vector, as ERNIE's encoder reads them: one at the first piece of a mention.

E entities of a Doc or a window.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from spacy.tokens import Doc

from ..batch.windows import Document
from ..vectors.store import EntityVectors
from .knowledge import KnownGetter, align_known


@dataclass(frozen=True)
class KnownPieces:
    """pieces_E: pieces of the document, ascending, each once; rows_E: rows of the store of vectors."""

    pieces_E: np.ndarray
    rows_E: np.ndarray

    def inside(self, number: Callable[[int], int], window_N: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and places of those whose pieces are in a window: only these are looked at, as a text may have as many
        windows as entities. number: a piece as the window counts it, never less than that of one before; window_N:
        numbers of its pieces, ascending, -1 of markers. Of several at one piece, as words between marks may share one
        that they do not share in the document, the last wins."""
        at_N = np.flatnonzero(window_N >= 0)
        row_at: dict[int, int] = {}
        for stretch in np.split(at_N, np.flatnonzero(np.diff(window_N[at_N]) != 1) + 1):
            place = dict(zip(window_N[stretch].tolist(), stretch.tolist(), strict=True))
            if not place:
                continue
            e = bisect_left(self.pieces_E, window_N[stretch[0]], key=number)
            while e < len(self.pieces_E) and (n := number(int(self.pieces_E[e]))) <= window_N[stretch[-1]]:
                row_at[place[n]] = int(self.rows_E[e])
                e += 1
        rows_E, at_E = np.array([(row, at) for at, row in row_at.items()], dtype=np.int64).reshape(-1, 2).T
        return np.ascontiguousarray(rows_E), np.ascontiguousarray(at_E)


@dataclass(frozen=True)
class KnownEntities:
    """Finds the entities of Docs.

    getter: entities of a Doc, such as spacy-luke.linked_ents.v1. alignment: see `align_known`. vectors: those that have
    a row count. strip_accents: whether the tokenizer takes accents away, which "whitespace" depends on.
    """

    getter: KnownGetter
    alignment: str
    vectors: EntityVectors
    strip_accents: bool = True

    def find(
        self,
        doc: Doc,
        document: Document,
        *,
        marked: Sequence[tuple[int, int]] = (),
        counts: Counter[str] | None = None,
    ) -> KnownPieces:
        """The entities of a Doc. marked: characters of the mentions between marks. counts: gets what becomes of each
        entity, for reports."""
        counts = Counter() if counts is None else counts
        aligned = align_known(
            doc, self.getter(doc), alignment=self.alignment, marked=marked, strip_accents=self.strip_accents
        )
        rows = self.vectors.rows([known.id for _, known in aligned.placed])
        first_W, last_W = document.pieces.first_W, document.pieces.last_W
        row_of = {}
        for (word, _), row in zip(aligned.placed, rows.tolist()):
            if row < 0:
                counts["have no vector"] += 1
            elif first_W[word] >= last_W[word]:
                counts["have no pieces"] += 1
            else:
                counts["have a vector"] += 1
                row_of[int(first_W[word])] = row
        counts.update(f"have no place ({reason})" for _, reason in aligned.lost)
        pieces = sorted(row_of)
        return KnownPieces(np.array(pieces, dtype=np.int64), np.array([row_of[p] for p in pieces], dtype=np.int64))


class KnownFinder:
    """The entities of one Doc, for each unit that is marked in it: found once where marks change nothing."""

    def __init__(self, known: KnownEntities | None, doc: Doc, document: Document):
        self.known, self.doc, self.document = known, doc, document
        self.found: KnownPieces | None = None

    def find(self, places: Sequence[tuple[int, int]]) -> KnownPieces:
        """places: words [start, end) of the marked mentions."""
        if self.known is None:
            return KnownPieces(np.empty(0, np.int64), np.empty(0, np.int64))
        if self.known.alignment == "whitespace":
            marked = [(self.doc[a:b].start_char, self.doc[a:b].end_char) for a, b in places]
            return self.known.find(self.doc, self.document, marked=marked)
        if self.found is None:
            self.found = self.known.find(self.doc, self.document)
        return self.found
