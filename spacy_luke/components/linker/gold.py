"""What `luke_linker` learns from and is tuned on: mentions with the ids of their entities."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from spacy.tokens import Doc
from spacy.training import Example

from ...annotations import LINKS, NIL, gold_words_finder
from ...kb.knowledge_base import EntityKB
from ..mentions import MentionGetter, WordRange
from ..thresholds import check_positives
from .candidates import Found
from .entity_table import Candidates, EntityTable
from .matching import Matcher
from .outputs import Linked
from .records import to_kb_ids

FindCandidates = Callable[[Doc, Sequence[WordRange]], list[Found]]
LinkMentions = Callable[[Doc, list[WordRange]], list[Linked]]
GoldRow = tuple[float, bool, bool]  # see `gold_rows`

_NO_CANDIDATES, _WITHOUT_ENTITY = "have no candidates", "have candidates without the gold entity"
NO_ENTITY = -1  # in place of the number of a gold entity: NIL is right
_TINY = 1e-30  # in place of a probability of 0, whose logarithm is taken


class GoldLink(NamedTuple):
    """A mention that can be learned: its candidates, and the number of its entity, which is among them, or
    NO_ENTITY."""

    mention: WordRange
    candidates: Candidates
    number: int


def gold_links(example: Example, ignore: Sequence[str] = ()) -> tuple[list[WordRange], list[str], Counter[str]]:
    """Mentions of the predicted Doc that have gold entities, these ("NIL" among them), and why others are missing.
    ignore: labels of mentions that are left out."""
    reference = example.reference
    spans = reference.spans[LINKS] if LINKS in reference.spans else reference.ents
    places: dict[WordRange, str] = {}
    missing: Counter[str] = Counter()
    find = gold_words_finder(example)
    for span in spans:
        if not span.kb_id_ or span.label_ in ignore:
            continue
        place = find(span.start_char, span.end_char)
        if place is None:
            missing["do not fall on word boundaries"] += 1
        else:
            places[place] = span.kb_id_
    return list(places), list(places.values()), missing


def count_links(examples: Iterable[Example], least: int, *, name: str, ignore: Sequence[str]) -> int:
    """How many gold mentions have an entity that is not NIL, see `gold_links`. Raises ValueError for fewer than
    `least`, from which no threshold is chosen. name: of the component."""
    total = sum(gold != NIL for example in examples for gold in gold_links(example, ignore)[1])
    check_positives(total, least, name=name, what="gold mentions with an entity")
    return total


def learnable_links(
    example: Example,
    table: EntityTable,
    find: FindCandidates,
    *,
    nil: bool = False,
    ignore: Sequence[str] = (),
) -> tuple[list[GoldLink], Counter[str]]:
    """Gold mentions whose entity has a vector and is among the candidates, as in the reference code; and why others are
    none of them. nil: those that have candidates, none of them right, are learned as NIL; of them those whose gold is
    an entity are counted among the others all the same. ignore: labels of mentions that are left out."""
    mentions, golds, missing = gold_links(example, ignore)
    golds = to_kb_ids(table.kb, golds)
    links: list[GoldLink] = []
    for mention, one, gold in zip(mentions, find(example.predicted, mentions), golds, strict=True):
        number = NO_ENTITY
        if gold == NIL:
            missing["are NIL"] += 1
        elif gold not in (entity for entity, _ in one.named):
            missing[_WITHOUT_ENTITY if one.named else _NO_CANDIDATES] += 1
        elif table.rows[number := table.number(gold)] in (-1, table.unknown):
            missing["have a gold entity without a vector"] += 1
            continue
        if number != NO_ENTITY or (nil and one.named):
            links.append(GoldLink(mention, table.candidates(one), number))
    return links, missing


def typed_candidates(
    example: Example, find: FindCandidates, match: Matcher, getter: MentionGetter
) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """Of each candidate of gold mentions that the getter gives, too, the label of the mention in the predicted Doc, the
    candidate's types, and whether it is right."""
    labels = {(x.start, x.end): x.label_ for x in getter(example.predicted)}
    mentions, golds, _ = gold_links(example)
    for mention, one, gold in zip(mentions, find(example.predicted, mentions), golds, strict=True):
        for entity, _ in one.named if mention in labels else ():
            yield labels[mention], match.describe(entity).types, entity == gold


def survey_links(
    examples: Iterable[Example], table: EntityTable, find: FindCandidates, *, ignore: Sequence[str] = ()
) -> tuple[Counter[str], int]:
    """Why gold mentions cannot be learned, and how many gold mentions there are. Those of NIL are not counted, which
    the threshold decides."""
    missing: Counter[str] = Counter()
    total = 0
    for example in examples:
        links, reasons = learnable_links(example, table, find, ignore=ignore)
        missing.update(reasons)
        total += len(links) + reasons.total()
    return missing, total - missing.pop("are NIL", 0)


def check_learnable(name: str, missing: Counter[str], total: int) -> None:
    """Raises ValueError where all of `total` gold mentions of a component are missing, with the reasons."""
    if total and total == missing.total():
        raise ValueError(
            f"'{name}' cannot learn from any of {total} gold mentions: "
            + ", ".join(f"{n} {what}" for what, n in missing.items())
            + ". Are the ids of the gold mentions those of the knowledge base?"
        )


def advice_on(missing: Counter[str], *, nil: bool) -> str:
    """What to do about gold mentions whose entity can never be predicted. nil: whether NIL is a candidate."""
    if not nil or not (missing[_NO_CANDIDATES] or missing[_WITHOUT_ENTITY]):
        return "Correct the data."
    return (
        "A mention without the gold entity is NIL, and teaches NIL where it has candidates: that is right where the "
        "knowledge base is to lack the entity. Where it is not, add to it what it lacks, the entity or this name of it."
    )


def gold_rows(
    examples: Iterable[Example],
    link: LinkMentions,
    *,
    above_nil: bool = False,
    ignore: Sequence[str] = (),
    kb: EntityKB | None = None,
) -> Iterator[GoldRow]:
    """Of each gold mention the score of its best candidate, whether this is right, and whether the gold is NIL. Where
    the best is NIL, the score is below any threshold.

    above_nil: NIL is a candidate, and in place of the score stands how much more likely than NIL the best one of the
    others is, as a difference of log-probabilities. ignore: labels of mentions that are left out. kb: any id that it
    has of an entity is right.
    """
    for example in examples:
        mentions, golds, missing = gold_links(example, ignore)
        golds = to_kb_ids(kb, golds)
        yield from [(-math.inf if above_nil else 0.0, False, False)] * missing.total()
        for linked, gold in zip(link(example.predicted, mentions), golds, strict=True):
            best, score = _best_above_nil(linked) if above_nil else _best(linked)
            yield score, best == gold and gold != NIL, gold == NIL


def _best(linked: Linked) -> tuple[str, float]:
    return (linked[0].id, linked[0].score) if linked and linked[0].id != NIL else (NIL, -1.0)


def _best_above_nil(linked: Linked) -> tuple[str, float]:
    nil = next((x.score for x in linked if x.id == NIL), 0.0)
    best = next((x for x in linked if x.id != NIL and x.score > 0), None)
    return (NIL, -math.inf) if best is None else (best.id, math.log(best.score) - math.log(max(nil, _TINY)))
