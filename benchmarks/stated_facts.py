"""Facts that passages state, scored as KnowledgeNet's official script does (Mesquita et al., EMNLP 2019).

A gold fact is right where a predicted one of its passage matches it. A prediction is wrong where it matches no gold
fact, matches no prediction that is right, and its passage was read for its property; of properties that a passage was
not read for nothing is known, and such predictions do not count.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from spacy.scorer import PRFScore

Place = tuple[int, int]
Method = Literal["overlap", "exact", "link"]
METHODS: tuple[Method, ...] = ("overlap", "exact", "link")


class StatedFact(NamedTuple):
    """property; characters [start, end) of subject and object; their ids, "" where unknown."""

    property: str
    subject: Place
    object: Place
    subject_id: str = ""
    object_id: str = ""

    def describe(self) -> str:
        """ "0-12,30-38 SPOUSE Q1,Q2" """
        places = ",".join(f"{a}-{b}" for a, b in (self.subject, self.object))
        return f"{places} {self.property} {self.subject_id},{self.object_id}"


class ScoredPassage(NamedTuple):
    """read_for: properties of which the gold facts are all that the passage states."""

    gold: Sequence[StatedFact]
    predicted: Sequence[StatedFact]
    read_for: Collection[str]


def count_facts(
    passages: Iterable[ScoredPassage], method: Method, *, unlinked: Collection[str] = ()
) -> dict[str, PRFScore]:
    """Right, wrong and missed facts of each property, by its name.

    method: when two facts of a property are the same: "overlap", their subjects share a character, and so do their
    objects; "exact", these have the same characters; "link", they have the same ids: then facts without both ids do not
    count, nor those of `unlinked` properties, such as dates, and of a passage each counts once. (There the script
    leaves out properties without any gold fact; here their wrong ones count.)
    """
    counts: dict[str, PRFScore] = {}
    same = _SAME[method]
    for passage in passages:
        gold, predicted = list(passage.gold), list(passage.predicted)
        if method == "link":
            gold, predicted = _linked(gold, unlinked), _linked(predicted, unlinked)
        right: list[StatedFact] = []
        for fact in gold:
            found = [x for x in predicted if same(fact, x)]
            score = counts.setdefault(fact.property, PRFScore())
            score.tp += bool(found)
            score.fn += not found
            right += found
        for fact in predicted:
            if fact.property in passage.read_for and not any(same(fact, x) for x in right):
                counts.setdefault(fact.property, PRFScore()).fp += 1
    return dict(sorted(counts.items()))


def _linked(facts: Iterable[StatedFact], unlinked: Collection[str]) -> list[StatedFact]:
    """Each once, by its ids."""
    kept = {
        (x.property, x.subject_id, x.object_id): x
        for x in facts
        if x.subject_id and x.object_id and x.property not in unlinked
    }
    return list(kept.values())


def _overlap(one: Place, other: Place) -> bool:
    return one[0] < other[1] and other[0] < one[1]


_SAME: dict[Method, Callable[[StatedFact, StatedFact], bool]] = {
    "overlap": lambda x, y: (
        x.property == y.property and _overlap(x.subject, y.subject) and _overlap(x.object, y.object)
    ),
    "exact": lambda x, y: (x.property, x.subject, x.object) == (y.property, y.subject, y.object),
    "link": lambda x, y: (x.property, x.subject_id, x.object_id) == (y.property, y.subject_id, y.object_id),
}
