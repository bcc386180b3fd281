"""What is true of a text, written down beside it, and how much of what a pipeline found in it is right."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Span

from ..annotations import Relation, get_types
from ..stores.plain_text import read_object, single_keys
from .findings import Findings, FoundMention


class Entity(NamedTuple):
    """An entity of the text. ids: what knowledge bases call it, none where it is in none; mentions: where it
    stands, characters [start, end); types: all that hold, None where the key does not say."""

    name: str
    label: str
    ids: Sequence[str]
    mentions: Sequence[tuple[int, int]]
    types: Sequence[str] | None = None


@dataclass(frozen=True)
class Judgement:
    """Which findings are right, in their order; None of a mention where the key leaves that open, and of a link where
    there is none. types: of each mention, none where the key leaves them open. missed: mentions of the key that were
    not found, or with another label."""

    mentions: Sequence[bool | None]
    types: Sequence[Sequence[bool]]
    links: Sequence[bool | None]
    relations: Sequence[bool]
    missed: Sequence[str]

    def is_right(self, mention: int) -> bool | None:
        """Whether all that is shown of a mention is right; None where the key leaves the mention open."""
        known = self.mentions[mention]
        return known and self.links[mention] is not False and all(self.types[mention])

    def verdict(self) -> list[tuple[str, str]]:
        """What was found, and how much of it is right, in words."""
        known = [x for x in self.mentions if x is not None]
        right = sum(known)
        found = f"; {right} of the {right + len(self.missed)} in the text were found"
        rows = [("entities", _share(known) + found)]
        links = [x for x in self.links if x is not None]
        others = (("types", list(chain.from_iterable(self.types))), ("links", links), ("relations", self.relations))
        return [*rows, *((name, _share(x)) for name, x in others if x)]


class AnswerKey:
    """The entities of a text and the relations that hold between them.

    relations: names of head and tail with a property between them; properties: what a property, such as P159, is
    called. A relation holds between entities: whichever of their mentions a pipeline relates, and under either name.
    open_places: of what is an entity by some guidelines alone, such as numbers; a mention there is not judged.
    """

    def __init__(
        self,
        entities: Sequence[Entity],
        relations: Sequence[tuple[str, str, str]],
        properties: dict[str, str],
        open_places: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.entities = entities
        self.relations = set(relations)
        self.properties = {name: number for number, name in properties.items()}
        self.open_places = open_places
        self._places = {place: entity for entity in entities for place in entity.mentions}

    def judge(self, found: Findings) -> Judgement:
        """Compare what a pipeline found in the text. A mention is right where place and label are; a relation where it
        holds between the entities that its head and tail stand for."""
        kept = {(*_place(x.span), x.span.label_) for x in found.mentions}
        text = found.doc.text
        missed = [
            text[start:end]
            for entity in self.entities
            for start, end in entity.mentions
            if (start, end, entity.label) not in kept
        ]
        return Judgement(
            [self._is_right(x.span) for x in found.mentions],
            [self._are_typed(x.span) for x in found.mentions],
            [None if x.link is None else self._is_linked(x) for x in found.mentions],
            [self._holds(x) for x in found.relations],
            missed,
        )

    def _is_right(self, span: Span) -> bool | None:
        start, end = _place(span)
        if any(a <= start and end <= b for a, b in self.open_places):
            return None
        entity = self._places.get((start, end))
        return entity is not None and entity.label == span.label_

    def _are_typed(self, span: Span) -> list[bool]:
        start, end = _place(span)
        entity = self._places.get((start, end))
        is_open = entity.types is None if entity else any(a <= start and end <= b for a, b in self.open_places)
        types = () if entity is None else entity.types or ()
        return [] if is_open else [one in types for one in get_types(span)]

    def _is_linked(self, mention: FoundMention) -> bool:
        entity = self._places.get(_place(mention.span))
        return entity is not None and mention.link is not None and mention.link.id in entity.ids

    def _holds(self, relation: Relation) -> bool:
        head, tail = (self._entity_of(span) for span in (relation.head, relation.tail))
        label = self.properties.get(relation.label.replace("_", " "), relation.label)
        return head is not None and tail is not None and (head.name, label, tail.name) in self.relations

    def _entity_of(self, span: Span) -> Entity | None:
        """The entity whose mention is here, or lies across; of several the one with the longest."""
        start, end = _place(span)
        across = [(place[1] - place[0], x) for place, x in self._places.items() if place[0] < end and start < place[1]]
        return self._places.get((start, end)) or (max(across, key=lambda x: x[0])[1] if across else None)


def read_answer_key(path: Path, text: str) -> AnswerKey:
    """The key of a text: a JSON object with

    - "entities": objects with "name", "label", perhaps "ids" and "types", and "mentions", a list of [start, end] in
      characters;
    - "relations": lists of three, the name of the head, a property, the name of the tail;
    - "properties": an object with what each property is called;
    - perhaps "open": a list of [start, end], where nothing is judged.

    Raises ValueError where the file is something else, or does not fit the text.
    """
    data = read_object(path, object_pairs_hook=single_keys)
    try:
        entities = [_read_entity(item) for item in data["entities"]]
        relations = [(head, label, tail) for head, label, tail in data["relations"]]
        properties: dict[str, str] = dict(data["properties"])
        open_places = [(int(start), int(end)) for start, end in data.get("open", ())]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: expected 'entities' (name, label, mentions), 'relations' ([head, property, tail]) and "
            f"'properties', but reading them fails by {error!r}."
        ) from error
    names = {entity.name for entity in entities}
    for head, label, tail in relations:
        if unknown := [x for x in (head, tail) if x not in names]:
            raise ValueError(
                f"{path}: the relation {[head, label, tail]} names {unknown[0]!r}, which is no entity of it."
            )
    for entity in entities:
        first = text[slice(*entity.mentions[0])]
        if entity.name != first:
            raise ValueError(
                f"{path} is the key of another text: where {entity.name!r} should be first, there is {first!r:.60}."
            )
    return AnswerKey(entities, relations, properties, open_places)


def _read_entity(item: dict[str, Any]) -> Entity:
    mentions = [(int(start), int(end)) for start, end in item["mentions"]]
    if not mentions:
        raise ValueError(f"no mention of {item['name']!r}")
    return Entity(str(item["name"]), str(item["label"]), item.get("ids", ()), mentions, item.get("types"))


def _place(span: Span) -> tuple[int, int]:
    return span.start_char, span.end_char


def _share(right: Sequence[bool]) -> str:
    share = f" ({sum(right) / len(right):.0%})" if right else ""
    return f"{sum(right)} of {len(right)} that are shown are right{share}"
