"""Searching entities where no name is as it was written: names with a slip, beginnings of names, vectors near one."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from ..text.forms import key_of, loose_form_of
from ..vectors.store import EntityVectors
from .segment import Segment

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_MARKED = "".join(chr(code) for code in range(0xDF, 0x180) if chr(code).islower())  # Latin letters with marks
_SCRIPTS = range(0x370, 0x1100)  # from Greek to Georgian: alphabets, each within some blocks of so many characters
_BLOCK_LETTERS = 0x80
_LEAST_LETTERS = 4  # of a text that names with a slip are looked for: most names of fewer are one slip apart
_MOST_LETTERS = 64  # few names have more, and slips are as many as letters, each as long as the text
_BEGINNINGS = 1000  # names with one beginning that are looked at, of which the best come first
_BLOCK = 1 << 15  # vectors in memory at once


class Hit(NamedTuple):
    """An entity that was found. how: "name", "fuzzy", "prefix" or "dense", the first that found it; score: its prior
    under `name`, and of "dense" the cosine."""

    row: int
    how: str
    name: str
    score: float


class Searched(Protocol):
    """What of an `EntityKB` is searched."""

    path: Path
    segments: list[Segment]
    vectors: EntityVectors | None

    def find_name(self, name: str) -> str | None: ...
    def names_beginning(self, text: str) -> Iterator[str]: ...
    def candidate_rows(self, name: str) -> list[tuple[int, float]]: ...
    def row(self, entity: str) -> int: ...
    def count(self, row: int) -> int: ...


def search_kb(kb: Searched, text: str, *, top: int, vector: np.ndarray | None) -> list[Hit]:
    """See `EntityKB.search`."""
    if top < 1:
        raise ValueError(f"top must be at least 1, but it is {top}.")
    hits: dict[int, Hit] = {}
    own = kb.find_name(text)
    _add(hits, kb, "name", [] if own is None else [own])
    _add(hits, kb, "fuzzy", sorted(set(fuzzy_names(kb, text))))
    if len(hits) < top:
        _add(hits, kb, "prefix", list(islice(kb.names_beginning(text), _BEGINNINGS)))
    if vector is not None:
        for row, score in nearest_entities(kb, vector, top=top):
            hits.setdefault(row, Hit(row, "dense", "", score))
    return list(hits.values())[:top]


def fuzzy_names(kb: Searched, text: str) -> Iterator[str]:
    """Names that differ from a text in one slip, whatever their case and punctuation are; none for texts of fewer than
    4 letters and digits, or of more than 64."""
    letters = loose_form_of(key_of(text, case="exact"))
    if not _LEAST_LETTERS <= len(letters) <= _MOST_LETTERS:
        return
    for other in sorted(_slips(letters)):
        for segment in kb.segments:
            yield from (name for name in segment.loose_names(other) if loose_form_of(name) != letters)


def nearest_entities(kb: Searched, vector_S: np.ndarray, *, top: int) -> list[tuple[int, float]]:
    """Rows and cosines of the entities whose vectors are nearest to one, the nearest first: exact, block by block.
    ValueError where the knowledge base has no vectors, or of another width."""
    if kb.vectors is None:
        raise ValueError(f"{kb.path} has no vectors. Make them with `spacy luke embed-entities`.")
    vector_S = np.asarray(vector_S, np.float32).ravel()
    if len(vector_S) != kb.vectors.size:
        raise ValueError(f"Expected a vector of {kb.vectors.size} numbers, but got {len(vector_S)}.")
    vector_S = vector_S / max(float(np.linalg.norm(vector_S)), 1e-12)
    found: list[tuple[float, int]] = []
    for start in range(0, len(kb.vectors), _BLOCK):
        vectors_ES = kb.vectors.gather(np.arange(start, min(start + _BLOCK, len(kb.vectors))))
        lengths_E = np.maximum(np.linalg.norm(vectors_ES, axis=1), 1e-12)
        scores_E = vectors_ES @ vector_S / lengths_E
        best = np.argpartition(-scores_E, min(top, len(scores_E)) - 1)[:top]
        found = sorted([*found, *((-float(scores_E[i]), start + int(i)) for i in best)])[:top]
    names = kb.vectors.names_of([row for _, row in found])
    return [(row, -score) for (score, _), name in zip(found, names, strict=True) if (row := kb.row(name)) >= 0]


def _add(hits: dict[int, Hit], kb: Searched, how: str, names: list[str]) -> None:
    """Their candidates; of several names the most linked entities first."""
    found = [Hit(row, how, name, prior) for name in names for row, prior in kb.candidate_rows(name)]
    if how != "name":
        found.sort(key=lambda hit: (-kb.count(hit.row), -hit.score, hit.row))
    for hit in found:
        hits.setdefault(hit.row, hit)


def _slips(letters: str) -> set[str]:
    halves = [(letters[:i], letters[i:]) for i in range(len(letters) + 1)]
    alphabet = _alphabet(letters)
    slips = {a + b[1:] for a, b in halves if b}
    slips |= {a + b[1] + b[0] + b[2:] for a, b in halves if len(b) > 1}
    slips |= {a + letter + b[1:] for a, b in halves if b for letter in alphabet}
    slips |= {a + letter + b for a, b in halves for letter in alphabet}
    return slips - {letters}


def _alphabet(letters: str) -> list[str]:
    """Letters that may stand in the place of one of these: Latin ones, digits, and those of their own alphabets. Of
    scripts with thousands of signs none but these, and none that its loose form has not ("ŀ" is read as "l")."""
    starts = {ord(letter) // _BLOCK_LETTERS * _BLOCK_LETTERS for letter in letters if ord(letter) in _SCRIPTS}
    further = (chr(code) for start in starts for code in range(start, start + _BLOCK_LETTERS))
    found = {*_LETTERS, *_MARKED, *letters, *(x for x in further if x.isalpha())}
    return sorted(x for x in found if loose_form_of(x) == x)
