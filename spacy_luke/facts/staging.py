"""One document as a line: what of it goes into a graph, so that documents can be sorted on disk.

A line is "ORDER<tab>ID<tab>CONTENT", all in JSON without a tab or a line feed in it.
"""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from ..pages.schema import AnnotatedText, EntityForm, LinkForm, RelationForm
from .clusters import order_of
from .forms import Evidence, TextPlace
from .referents import Referent, find_referents, linked_id
from .settings import FactSettings

_BESIDE = 500  # characters of a sentence before and behind a mention that evidence shows
_UNCUT = 200  # the same where there are no sentences

Attributes = tuple[str, str, str, str, tuple[str, ...]]  # wikidata, title, description, url, types


class StagedMention(NamedTuple):
    """link_score: of the link that it has; entity: the knowledge base's id that it is linked to, "" of none."""

    start: int
    end: int
    text: str
    label: str
    score: float | None
    link_score: float | None
    entity: str


class StagedRelation(NamedTuple):
    """head, tail: numbers of mentions."""

    head: int
    label: str
    property: str
    tail: int
    evidence: dict[str, Any]


class StagedDocument(NamedTuple):
    """digest: of the text. known: what the knowledge base says of linked nodes. counts: what was read, and what was
    left out."""

    order: str
    id: str
    digest: str
    mentions: Sequence[StagedMention]
    referents: Sequence[Referent]
    relations: Sequence[StagedRelation]
    known: dict[str, Attributes]
    counts: dict[str, int]

    def as_line(self) -> str:
        content = [self.digest, self.mentions, self.referents, self.relations, self.known, self.counts]
        return f"{json.dumps(self.order)}\t{json.dumps(self.id)}\t{json.dumps(content)}\n"

    @classmethod
    def of_line(cls, line: str) -> "StagedDocument":
        order, id, content = line.split("\t")
        digest, mentions, referents, relations, known, counts = json.loads(content)
        return cls(
            json.loads(order),
            json.loads(id),
            digest,
            [StagedMention(*x) for x in mentions],
            [Referent(*x) for x in referents],
            [StagedRelation(*x) for x in relations],
            known,
            counts,
        )


def stage(found: AnnotatedText, settings: FactSettings) -> StagedDocument:
    """What the settings let through of a document."""
    assert found.id is not None
    counts: Counter[str] = Counter()
    entities = []
    for entity in found.entities:
        counts["entities"] += 1
        if _is_low(entity.score, settings.min_score):
            counts["entities of a low score, left out"] += 1
        elif settings.labels is not None and entity.label not in settings.labels:
            counts["entities of other labels, left out"] += 1
        else:
            entities.append(_with_link(entity, settings, counts))
    numbers = {entity.id: number for number, entity in enumerate(entities)}
    relations = []
    for relation in found.relations:
        counts["relations"] += 1
        if _is_low(relation.score, settings.min_relation_score):
            counts["relations of a low score, left out"] += 1
        elif settings.relations is not None and relation.label not in settings.relations:
            counts["relations of other labels, left out"] += 1
        elif (head := numbers.get(_entity(relation.head.entity))) is None or (
            tail := numbers.get(_entity(relation.tail.entity))
        ) is None:
            counts["relations of what is no entity here, left out"] += 1
        else:
            evidence = _evidence(found, relation).model_dump()
            relations.append(StagedRelation(head, relation.label, relation.property, tail, evidence))
    return StagedDocument(
        order_of(found.id),
        found.id,
        blake2b(found.text.encode("utf8"), digest_size=16).hexdigest(),
        [_staged(x) for x in entities],
        find_referents(found.text, entities, settings),
        relations,
        {linked_id(x.link, settings): _attributes(x.link) for x in entities if x.link is not None},
        dict(sorted(counts.items())),
    )


def _entity(number: int | None) -> int:
    return -1 if number is None else number


def _is_low(score: float | None, least: float) -> bool:
    return score is not None and score < least


def _with_link(entity: EntityForm, settings: FactSettings, counts: Counter[str]) -> EntityForm:
    if entity.link is None or not _is_low(entity.link.score, settings.min_link_score):
        return entity
    counts["links of a low score, left out"] += 1
    return entity.model_copy(update={"link": None})


def _staged(entity: EntityForm) -> StagedMention:
    score, id = (None, "") if entity.link is None else (entity.link.score, entity.link.id)
    return StagedMention(entity.start, entity.end, entity.text, entity.label, entity.score, score, id)


def _attributes(link: LinkForm) -> Attributes:
    return link.wikidata, link.title, link.description, link.url, tuple(sorted(link.types))


def _evidence(found: AnnotatedText, relation: RelationForm) -> Evidence:
    head, tail = relation.head, relation.tail
    places = sorted({_sentence_of(found, x.start, x.end) for x in (head, tail)})
    if len(places) == 2 and places[1][0] < places[0][1]:  # excerpts of one sentence
        places = [(places[0][0], max(places[0][1], places[1][1]))]
    assert found.id is not None
    return Evidence(
        document=found.id,
        score=relation.score,
        head=TextPlace(start=head.start, end=head.end, text=head.text),
        tail=TextPlace(start=tail.start, end=tail.end, text=tail.text),
        sentences=[TextPlace(start=a, end=b, text=found.text[a:b]) for a, b in places],
    )


def _sentence_of(found: AnnotatedText, start: int, end: int) -> tuple[int, int]:
    """The sentence of a mention, of a very long one the part around it."""
    first, last, reach = 0, len(found.text), _UNCUT
    if found.sentences:
        number = max(bisect_right(found.sentences, (start, last)) - 1, 0)
        first, reach = found.sentences[number][0], _BESIDE
        last = max(found.sentences[number][1], end)
    return max(first, start - reach), min(last, end + reach)
