"""Rows of the tables that show findings: what is found several times is one row."""

from collections.abc import Sequence
from dataclasses import dataclass

from .answer_key import Judgement
from .findings import Findings, FoundMention, Link, type_list
from .style import one_line


@dataclass(frozen=True)
class ShownEntity:
    """Mentions with the same words, label and link. first: number of the first one; count: how many; score: the
    highest; types: of all of them, with the highest scores; right: whether all of this is, None where nobody knows."""

    name: str
    label: str
    first: int
    count: int
    score: float | None
    types: str
    link: Link | None
    right: bool | None


@dataclass(frozen=True)
class ShownRelation:
    """Relations with the same words and label. id: what the label is elsewhere, "" where nobody says."""

    head: str
    label: str
    tail: str
    count: int
    score: float
    right: bool | None
    id: str


def shown_entities(found: Findings, judged: Judgement | None = None) -> list[ShownEntity]:
    """In the order of the text. A mention without a link is in the row of those that have its words, label and one
    link."""
    words = [(one_line(mention.span.text), mention.span.label_) for mention in found.mentions]
    links: dict[tuple[str, str], set[str]] = {}
    for key, mention in zip(words, found.mentions, strict=True):
        links.setdefault(key, set()).update([] if mention.link is None else [mention.link.id])
    groups: dict[tuple[str, str, str], list[int]] = {}
    for i, (key, mention) in enumerate(zip(words, found.mentions, strict=True)):
        entity = next(iter(links[key]), "") if len(links[key]) < 2 else "" if mention.link is None else mention.link.id
        groups.setdefault((*key, entity), []).append(i)
    rows = []
    for (name, label, _), numbers in groups.items():
        some = [found.mentions[i] for i in numbers]
        right = None if judged is None else _all_right(judged, numbers)
        types = type_list(x.span for x in some)
        rows.append(ShownEntity(name, label, numbers[0], len(some), _best(some), types, _best_link(some), right))
    return rows


def shown_relations(found: Findings, judged: Judgement | None = None) -> list[ShownRelation]:
    """The most probable first."""
    groups: dict[tuple[str, str, str], list[int]] = {}
    for i, relation in enumerate(found.relations):
        key = (one_line(relation.head.text), relation.label, one_line(relation.tail.text))
        groups.setdefault(key, []).append(i)
    rows = []
    for (head, label, tail), numbers in groups.items():
        score = max(found.relations[i].score for i in numbers)
        right = None if judged is None else all(judged.relations[i] for i in numbers)
        rows.append(ShownRelation(head, label, tail, len(numbers), score, right, found.properties.get(label, "")))
    return sorted(rows, key=lambda row: -row.score)


def _all_right(judged: Judgement, numbers: Sequence[int]) -> bool | None:
    """None where a mention among them is not judged."""
    rights = [judged.is_right(i) for i in numbers]
    return None if None in rights else all(rights)


def _best(mentions: Sequence[FoundMention]) -> float | None:
    scores = [x.score for x in mentions if x.score is not None]
    return max(scores) if scores else None


def _best_link(mentions: Sequence[FoundMention]) -> Link | None:
    links = [x.link for x in mentions if x.link is not None]
    return max(links, key=lambda link: link.score or 0.0) if links else None
