"""Entities of mentions: those that are given as input, candidates that are given, and those that a linker weighed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from .keys import GIVEN_CANDIDATES, KNOWLEDGE, LINK_EVIDENCE, LINKED_CANDIDATES, LINKED_ENTITIES
from .rows import find_row, get_rows, get_standing_rows, set_rows

CHOICES = ("id", "title", "wikidata", "url")  # what `EntityRecord.choose` can give


class KnownEntity(NamedTuple):
    """An entity of a knowledge graph that is given as input, at characters [start, end) of the text."""

    start: int
    end: int
    id: str
    score: float = 1.0


class GivenCandidate(NamedTuple):
    """An entity that a data set proposes for a mention, with its prior p(entity | mention)."""

    id: str
    prior: float


class GivenMention(NamedTuple):
    """A mention, characters [start, end), and its given candidates, in an order that says nothing."""

    start: int
    end: int
    candidates: list[GivenCandidate]


class LinkCandidate(NamedTuple):
    """An entity that a linker considered for a mention, with its prior p(entity | mention) and the linker's score."""

    id: str
    prior: float
    score: float


class EntityRecord(NamedTuple):
    """What a knowledge base knows of an entity; "" and () where no source told.

    id: what the knowledge base calls it, and all that refers to it; title: what people call it, of a page of Wikipedia
    its title; wikidata: Q and a number; url: of its page in Wikipedia, of its item in Wikidata, or what the source
    gave; types: what it is an instance of, as the source has it.
    """

    id: str
    title: str
    wikidata: str
    url: str
    description: str
    types: tuple[str, ...]

    def ids(self) -> frozenset[str]:
        """All that it is called by data sets: its id, title and Wikidata id."""
        return frozenset({self.id, self.title, self.wikidata} - {""})

    def choose(self, which: str) -> str:
        """The id that `CHOICES` names; the knowledge base's own where this one is not known."""
        value: str = getattr(self, which)
        return value or self.id


class LinkedMention(NamedTuple):
    """A mention, characters [start, end), and what a linker considered for it, the best first."""

    start: int
    end: int
    candidates: Sequence[LinkCandidate]


def get_knowledge(doc: Doc) -> list[KnownEntity]:
    """The given entities of a knowledge graph."""
    return [KnownEntity(*row) for row in get_rows(doc, KNOWLEDGE) or []]


def set_knowledge(doc: Doc, rows: Iterable[Any] | None) -> None:
    """rows: (start, end, id) or (start, end, id, score), characters of the text; a score that is left out is 1. None
    takes them away."""
    size = len(doc.text)
    set_rows(doc, KNOWLEDGE, None if rows is None else [_known_row(size, i, row) for i, row in enumerate(rows)])


def get_candidates_given(doc: Doc) -> list[GivenMention] | None:
    """Each mention with given candidates; None where none are given."""
    rows = get_rows(doc, GIVEN_CANDIDATES)
    return None if rows is None else [GivenMention(a, b, [GivenCandidate(*one) for one in some]) for a, b, some in rows]


def set_candidates_given(doc: Doc, rows: Iterable[Any] | None) -> None:
    """rows: (start, end, [(id, prior), ...]), characters of the text; they are sorted by place and id, and None takes
    them away. A mention may have none ([]); the priors of one need not sum to 1."""
    given = None if rows is None else sorted(_candidates_row(doc, i, row) for i, row in enumerate(rows))
    set_rows(doc, GIVEN_CANDIDATES, given)


class LinkEvidence(NamedTuple):
    """A mention, characters [start, end), and of each candidate what its score is made of: numbers that add up to the
    logarithm of how much more likely it is than NIL, or than the best where NIL is none."""

    start: int
    end: int
    candidates: Sequence[tuple[str, dict[str, float]]]


def get_linked(doc: Doc) -> list[LinkedMention] | None:
    """Each mention that a linker weighed; None where none did."""
    rows = get_rows(doc, LINKED_CANDIDATES)
    return None if rows is None else [LinkedMention(a, b, [LinkCandidate(*one) for one in some]) for a, b, some in rows]


def set_linked(doc: Doc, mentions: Iterable[LinkedMention]) -> None:
    set_rows(doc, LINKED_CANDIDATES, mentions)


def get_candidates(span: Span) -> list[LinkCandidate]:
    """What a linker considered for exactly this mention, best first; [] where it did not link it."""
    row = find_row(span, LINKED_CANDIDATES)
    return [] if row is None else [LinkCandidate(*candidate) for candidate in row[2]]


def get_evidence(span: Span) -> dict[str, dict[str, float]]:
    """Of each candidate of exactly this mention what its score is made of, best first; {} where it was not asked
    for."""
    row = find_row(span, LINK_EVIDENCE)
    return {} if row is None else dict(row[2])


def set_evidence(doc: Doc, mentions: Iterable[LinkEvidence] | None) -> None:
    set_rows(doc, LINK_EVIDENCE, mentions)


def get_all_evidence(doc: Doc) -> list[LinkEvidence]:
    """Of each mention for which it was asked."""
    return [LinkEvidence(*row) for row in get_rows(doc, LINK_EVIDENCE) or []]


def get_entity(span: Span) -> EntityRecord | None:
    """What is known of the entity that exactly this mention is linked to; None where it is not linked, where the linker
    has no knowledge base, or where another component or a person has given the mention another `kb_id_` since."""
    row = find_row(span, LINKED_ENTITIES)
    entity = None if row is None else _entity_of(row[2])
    ids = () if entity is None else ("", entity.id, entity.title, entity.wikidata, entity.url)
    return entity if span.kb_id_ in ids else None


def get_entities(doc: Doc) -> dict[tuple[int, int], EntityRecord]:
    """The entities that mentions are linked to, by their characters [start, end)."""
    return {(start, end): _entity_of(record) for start, end, record in get_rows(doc, LINKED_ENTITIES) or []}


def set_entities(doc: Doc, entities: Mapping[tuple[int, int], EntityRecord] | None) -> None:
    """entities: by the characters [start, end) of their mentions; None takes all away."""
    rows = None if entities is None else [[*place, one._asdict()] for place, one in sorted(entities.items())]
    set_rows(doc, LINKED_ENTITIES, rows)


def forget_links(doc: Doc, places: Collection[tuple[int, int]]) -> None:
    """Take away what linkers wrote of mentions: of those with these characters [start, end), which are linked anew, and
    of all that no span with a `kb_id_` has any more. What else was linked stays as it is."""
    spans = chain(doc.ents, *doc.spans.values())
    standing = {(x.start_char, x.end_char) for x in spans if x.kb_id}.difference(places)
    for kind in (LINKED_CANDIDATES, LINK_EVIDENCE, LINKED_ENTITIES):
        rows = [row for row in get_standing_rows(doc, kind) if (row[0], row[1]) in standing] if standing else []
        set_rows(doc, kind, rows or None)


def _entity_of(record: dict[str, Any]) -> EntityRecord:
    return EntityRecord(**{**record, "types": tuple(record["types"])})


def _known_row(size: int, number: int, row: Any) -> list[Any]:
    try:
        start, end, name, *rest = row
        (score,) = rest or (1.0,)
        good = isinstance(name, str) and bool(name) and 0 <= int(start) < int(end) <= size
        row = [int(start), int(end), name, float(score)]
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(
            f"Given entity {number} must be [start, end, id] or [start, end, id, score] with characters [start, end) "
            f"of the Doc's text, which has {size}, and an id that is not empty; got {row!r:.80}."
        )
    return list(row)


def _candidates_row(doc: Doc, number: int, row: Any) -> list[Any]:
    try:
        start, end, candidates = row
        candidates = sorted([name, float(prior)] for name, prior in candidates)
        names = [name for name, _ in candidates]
        good = 0 <= int(start) < int(end) <= len(doc.text)
        good = good and all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)
        good = good and all(0 <= prior < float("inf") for _, prior in candidates)
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(
            f"Given candidates {number} must be [start, end, [[id, prior], ...]] with characters [start, end) of the "
            f"Doc's text, which has {len(doc.text)}, ids that are not empty and differ, and priors from 0; got "
            f"{row!r:.120}."
        )
    return [int(start), int(end), candidates]
