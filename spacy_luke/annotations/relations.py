"""Relations of a Doc, and the pairs of mentions that shall be classified."""

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from .keys import PAIRS, RELATIONS
from .rows import get_rows, get_standing_rows, set_rows
from .spans import entities_at, place_of, span_at


class RelationRow(NamedTuple):
    """A relation as it is stored, places in characters of the Doc's text."""

    head_start: int
    head_end: int
    tail_start: int
    tail_end: int
    label: str
    score: float


class PairRow(NamedTuple):
    """A given pair as it is stored, places in characters of the Doc's text."""

    head_start: int
    head_end: int
    tail_start: int
    tail_end: int


@dataclass(frozen=True)
class Relation:
    """A directed, labelled pair of mentions; score is the label's probability (1.0 of gold ones)."""

    head: Span
    tail: Span
    label: str
    score: float = 1.0


def get_relation_rows(doc: Doc) -> list[RelationRow] | None:
    """None where nothing is said about relations, [] where there are none."""
    rows = get_rows(doc, RELATIONS)
    return None if rows is None else [RelationRow(*row) for row in rows]


def add_relation_rows(doc: Doc, rows: Iterable[RelationRow], *, labels: Container[str | None]) -> None:
    """Put rows in the place of those with these labels; others stay, which another component has found."""
    others = [RelationRow(*row) for row in get_standing_rows(doc, RELATIONS)]
    set_relation_rows(doc, [*(row for row in others if row.label not in labels), *rows])


def set_relation_rows(doc: Doc, rows: Iterable[RelationRow] | None) -> None:
    set_rows(doc, RELATIONS, rows)


def get_pair_rows(doc: Doc) -> list[PairRow] | None:
    """None where no pairs are given."""
    rows = get_rows(doc, PAIRS)
    return None if rows is None else [PairRow(*row) for row in rows]


def set_pair_rows(doc: Doc, rows: Iterable[PairRow] | None) -> None:
    set_rows(doc, PAIRS, rows)


def get_relations(doc: Doc) -> list[Relation]:
    """Relations of a Doc. Head and tail are the Doc's entities where these have the same words, and plain spans
    elsewhere."""
    known = entities_at(doc)
    return [
        Relation(
            span_at(doc, row.head_start, row.head_end, known),
            span_at(doc, row.tail_start, row.tail_end, known),
            row.label,
            row.score,
        )
        for row in get_relation_rows(doc) or []
    ]


def set_relations(doc: Doc, relations: Iterable[Any] | None) -> None:
    """relations: `Relation`s, or tuples (head Span, tail Span, label) with or without a score; None takes all away.
    ValueError for anything else."""
    rows = []
    if relations is not None and not isinstance(relations, Iterable):
        raise ValueError(f"Expected relations, each (head Span, tail Span, label), or None, but got {relations!r:.80}.")
    for i, relation in enumerate(() if relations is None else relations):
        if isinstance(relation, Relation):
            relation = (relation.head, relation.tail, relation.label, relation.score)
        if not isinstance(relation, (tuple, list)) or len(relation) not in (3, 4):
            raise ValueError(
                f"Relation {i} must be (head Span, tail Span, label), perhaps with a score as the fourth, but it is "
                f"{relation!r:.80}."
            )
        head, tail, label, score = relation if len(relation) == 4 else (*relation, 1.0)
        if not isinstance(label, str) or not label or not _is_finite(score):
            raise ValueError(
                f"Relation {i} must have a label that is a string, not empty, and a number as its score, but they are "
                f"{label!r:.80} and {score!r:.80}."
            )
        rows.append(RelationRow(*place_of(doc, head), *place_of(doc, tail), label, float(score)))
    set_relation_rows(doc, None if relations is None else rows)


def _is_finite(score: Any) -> bool:
    return isinstance(score, (int, float)) and math.isfinite(score)


def get_pairs(doc: Doc) -> list[tuple[Span, Span]] | None:
    """Given pairs (head, tail), or None where none are given."""
    rows = get_pair_rows(doc)
    if rows is None:
        return None
    known = entities_at(doc)
    return [(span_at(doc, a, b, known), span_at(doc, c, d, known)) for a, b, c, d in rows]


def set_pairs(doc: Doc, pairs: Iterable[tuple[Span, Span]] | None) -> None:
    """Give the pairs (head, tail) that are to be classified; they replace earlier ones. None takes all away."""
    rows = []
    for i, pair in enumerate(() if pairs is None else pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"Pair {i} must be (head Span, tail Span), but it is {pair!r:.80}.")
        rows.append(PairRow(*place_of(doc, pair[0]), *place_of(doc, pair[1])))
    set_pair_rows(doc, None if pairs is None else rows)
