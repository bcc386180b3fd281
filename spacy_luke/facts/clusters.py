"""Mentions of things that no knowledge base has, of one name in many documents: which are of one thing.

The pair of name and context decides. Those of one name and label are looked at in the order of their documents' ids.
Each joins the thing that most of its context was seen with, or is a new one, named after it, where too little was:

    similarity = weight of what of its context was seen with the thing / weight of its context

where names weigh 3 and words 1. Names of one word need `similarity`, longer ones a fifth of it. Nothing of this depends
on the order of files or on statistics of all documents: documents whose ids come behind all others join what is there,
or add to it.
"""

import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .referents import nil_id

_NAME_WEIGHT = 3
_LONGER = 0.2  # of the similarity, for names of several words
MOST_FEATURES = 2000  # of a thing: those that were seen last
MOST_THINGS = 1000  # of one name that are compared: those that were seen last
_NUMBER = re.compile(r"[0-9]+")


class Unlinked(NamedTuple):
    """What a document calls by a name. order: of its document; number: of the referent in it; start: of the first
    mention; known: the id that it had in an earlier graph, "" where it had none."""

    key: str
    label: str
    known: str
    order: str
    document: str
    number: int
    start: int
    context: Sequence[str]


def order_of(document: str) -> str:
    """What documents are sorted by: their ids, in which numbers count as such: "a:9" comes before "a:10"."""
    return _NUMBER.sub(lambda x: f"{len(x[0]):04d}{x[0]}", document)


def cluster(found: Iterable[Unlinked], similarity: float) -> Iterator[tuple[Unlinked, str]]:
    """found: by key and label, of these those first that an earlier graph knows, and then by order and number. RETURNS:
    each with the id of its node."""
    block: _Block | None = None
    for one in found:
        if block is None or (block.key, block.label) != (one.key, one.label):
            block = _Block(one.key, one.label, similarity * (_LONGER if " " in one.key else 1.0))
        yield one, block.place(one)


class _Thing:
    """The features of a thing's mentions, those that were seen last. number: of things that were found before it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.features: OrderedDict[str, None] = OrderedDict()


class _Block:
    """The things of one name and label. Ids are in the order in which the things were last seen."""

    def __init__(self, key: str, label: str, least: float) -> None:
        self.key, self.label, self._least = key, label, least
        self._things: OrderedDict[str, _Thing] = OrderedDict()
        self._found = 0
        self._having: defaultdict[str, dict[str, None]] = defaultdict(dict)  # feature -> ids of things that have it

    def place(self, one: Unlinked) -> str:
        """The id of its thing, which learns its context."""
        node = one.known or self._nearest(one.context) or nil_id(one.key, one.label, one.document, one.start)
        if node not in self._things:
            if len(self._things) >= MOST_THINGS:
                self._forget(next(iter(self._things)))
            self._things[node] = _Thing(self._found)
            self._found += 1
        self._things.move_to_end(node)
        self._learn(node, one.context)
        return node

    def _nearest(self, context: Sequence[str]) -> str:
        """The thing that is most like a context, of equal ones the first; "" where none is like it."""
        if not self._things:
            return ""
        if not context and " " in self.key:  # nothing speaks against the only one
            return next(iter(self._things)) if len(self._things) == 1 else ""
        own = sum(map(_weight, context)) or 1
        shared: Counter[str] = Counter()
        for feature in context:
            for node in self._having.get(feature, ()):
                shared[node] += _weight(feature)
        best, most = "", self._least
        for node in sorted(shared, key=lambda x: self._things[x].number):
            if (like := shared[node] / own) > most or (like == most and not best):
                best, most = node, like
        return best or ("" if self._least else next(iter(self._things)))

    def _learn(self, node: str, context: Sequence[str]) -> None:
        thing = self._things[node]
        for feature in context:
            if feature in thing.features:
                thing.features.move_to_end(feature)
                continue
            thing.features[feature] = None
            self._having[feature][node] = None
        while len(thing.features) > MOST_FEATURES:
            feature, _ = thing.features.popitem(last=False)
            self._drop(feature, node)

    def _forget(self, node: str) -> None:
        for feature in self._things.pop(node).features:
            self._drop(feature, node)

    def _drop(self, feature: str, node: str) -> None:
        having = self._having[feature]
        del having[node]
        if not having:
            del self._having[feature]


def _weight(feature: str) -> int:
    return _NAME_WEIGHT if feature[0] in "@=" else 1
