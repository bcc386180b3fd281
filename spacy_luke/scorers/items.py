"""Everything that is gold or found, item by item: what reports count, and what they show of it.

An item is a label at a place (an entity, a type of a mention, a link, an answer) or at a pair of places (a relation),
counted as the scorers count: what the gold says nothing about is left out.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from spacy.training import Example

from ..annotations import (
    NIL,
    QUERIES,
    Place,
    get_gold_entities,
    get_linked,
    gold_place_finder,
    scored_spans,
    unknown_places,
)
from .counts import get_scores, get_spans, gold_key
from .entity_types import read_types
from .linking import read_links
from .questions import read_asked
from .relations import read_relations

Places = tuple[Place, ...]


class ScoredItem(NamedTuple):
    """A label at one or two places, characters of the predicted text of document number `doc`. score: of what is found,
    None where it has none."""

    doc: int
    places: Places
    label: str
    gold: bool
    found: bool
    score: float | None = None


ItemReader = Callable[[Iterable[Example]], list[ScoredItem]]


def entity_items(examples: Iterable[Example], *, spans_key: str | None = None, ents: bool = False) -> list[ScoredItem]:
    """Of doc.ents, or of doc.spans[spans_key]. ents: predictions are doc.ents also where gold is in a group, and gold
    is doc.ents where no Doc has the group (see `gold_key`)."""
    items: list[ScoredItem] = []
    examples, shown = list(examples), None if ents else spans_key
    spans_key = gold_key((x.reference for x in examples), spans_key, ents=ents)
    for i, example in enumerate(examples):
        doc, entities = example.predicted, get_gold_entities(example.reference, spans_key)
        if entities is None:
            continue
        find = gold_place_finder(example)
        gold = {(*find(x.start_char, x.end_char), x.label_) for x in entities.spans}
        unknown = [] if entities.in_group else unknown_places(example.reference, find)
        scores = {
            (x.start_char, x.end_char, x.label_): score
            for x, score in zip_longest(get_spans(doc, shown), get_scores(doc, shown))
            if not any(start < x.end_char and x.start_char < end for start, end in unknown)
        }
        right, known = scored_spans(entities.scope, gold, set(scores), nested=shown is not None)
        items += [
            ScoredItem(i, ((a, b),), label, (a, b, label) in right, (a, b, label) in known, scores.get((a, b, label)))
            for a, b, label in sorted(right | known)
        ]
    return items


def type_items(examples: Iterable[Example]) -> list[ScoredItem]:
    """Of the mentions of the gold doc.spans["luke_types"]."""
    items: list[ScoredItem] = []
    for x in sorted(read_types(examples), key=lambda x: (x.doc, x.place)):
        items += _labelled(x.doc, (x.place,), x.gold, x.predicted, x.scores)
    return items


def relation_items(examples: Iterable[Example], *, none: str | None = None) -> list[ScoredItem]:
    """Of all pairs, or of those that the gold gives. none: the label for "no relation", which is none."""
    return [
        ScoredItem(x.doc, key[:2], key[2], key in x.gold, key in x.predicted, x.scores.get(key))
        for x in read_relations(examples, none=none)
        for key in sorted(x.gold | x.predicted)
    ]


def link_items(examples: Iterable[Example], *, spans_key: str | None = None) -> list[ScoredItem]:
    """Of mentions whose entity the gold says, NIL apart; the label is the entity's id, the gold's where another one of
    the same entity was found. A gold mention without an id says nothing, and so does a Doc with no others; a link of
    what is no gold mention is wrong."""
    items: list[ScoredItem] = []
    for i, example in enumerate(examples):
        links, doc = read_links(example, spans_key), example.predicted
        if links is None or (links.unknown and not links.gold):
            continue
        scores = {(x.start, x.end, one.id): one.score for x in get_linked(doc) or [] for one in x.candidates}
        own = {(x.start_char, x.end_char): x.kb_id_ for x in get_spans(doc, spans_key)}
        for place in sorted((links.gold.keys() | links.predicted.keys()) - links.unknown):
            labels = set(links.gold.get(place, ())) - {NIL}
            score = scores.get((*place, own.get(place, "")))
            found = dict.fromkeys(sorted(links.predicted.get(place, ())), score)
            items += _labelled(i, (place,), labels, set(found), found)
    return items


def answer_items(examples: Iterable[Example], *, asked: str) -> list[ScoredItem]:
    """Of questions (asked QUESTIONS) or queries (QUERIES), whose text is the label: an answer is right where its text
    is one of the gold's (exact match); one that is wrong, and the first of the gold that it misses, are two items. "No
    answer" is no item where the gold has none, and a miss where it has one."""
    examples = list(examples)
    finders: dict[int, Callable[[int, int], Place]] = {}
    items: list[ScoredItem] = []
    for one in read_asked(examples, asked)[0]:
        if asked == QUERIES and not one.golds:
            continue  # as ReCoRD's script
        right = bool(one.prediction and one.golds and one.is_exact)
        if one.prediction and one.found is not None:
            place = (one.found.start, one.found.end)
            items.append(ScoredItem(one.doc, (place,), one.question, right, True, one.found.score))
        if one.golds and not right:
            if one.doc not in finders:
                finders[one.doc] = gold_place_finder(examples[one.doc])
            items.append(ScoredItem(one.doc, (finders[one.doc](*one.gold_places[0]),), one.question, True, False))
    return items


def _labelled(
    doc: int, places: Places, gold: set[str], found: set[str], scores: dict[str, float] | dict[str, float | None]
) -> Iterator[ScoredItem]:
    for label in sorted(gold | found):
        yield ScoredItem(doc, places, label, label in gold, label in found, scores.get(label))
