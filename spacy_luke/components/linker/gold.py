"""What `luke_linker` learns from and is tuned on: mentions with the ids of their entities."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from spacy.tokens import Doc
from spacy.training import Example

from ...annotations import LINKS, NIL
from ..mentions import WordRange, align_mention
from .candidates import Named
from .entity_table import Candidates, EntityTable
from .outputs import Linked

FindCandidates = Callable[[Doc, Sequence[WordRange]], list[Named]]
LinkMentions = Callable[[Doc, list[WordRange]], list[Linked]]


class GoldLink(NamedTuple):
    """A mention that can be learned: its candidates, and the number of its entity, which is among them."""

    mention: WordRange
    candidates: Candidates
    number: int


def gold_links(example: Example) -> tuple[list[WordRange], list[str], Counter[str]]:
    """Mentions of the predicted Doc that have gold entities, these ("NIL" among them), and why others are missing."""
    reference = example.reference
    spans = reference.spans[LINKS] if LINKS in reference.spans else reference.ents
    places: dict[WordRange, str] = {}
    missing: Counter[str] = Counter()
    for span in spans:
        if not span.kb_id_:
            continue
        place = align_mention(example.predicted, span.start_char, span.end_char)
        if place is None:
            missing["do not fall on word boundaries"] += 1
        else:
            places[place] = span.kb_id_
    return list(places), list(places.values()), missing


def learnable_links(example: Example, table: EntityTable, find: FindCandidates) -> tuple[list[GoldLink], Counter[str]]:
    """Gold mentions whose entity has a vector and is among the candidates, as in the reference code; and why others are
    none of them."""
    mentions, golds, missing = gold_links(example)
    links: list[GoldLink] = []
    for mention, named, gold in zip(mentions, find(example.predicted, mentions), golds, strict=True):
        if gold == NIL:
            missing["are NIL"] += 1
        elif gold not in (entity for entity, _ in named):
            missing["have no candidates" if not named else "have candidates without the gold entity"] += 1
        elif table.rows[number := table.number(gold)] in (-1, table.unknown):
            missing["have a gold entity without a vector"] += 1
        else:
            links.append(GoldLink(mention, table.candidates(named), number))
    return links, missing


def survey_links(examples: Iterable[Example], table: EntityTable, find: FindCandidates) -> tuple[Counter[str], int]:
    """Why gold mentions cannot be learned, and how many gold mentions there are. Those of NIL are not counted, which
    the threshold decides."""
    missing: Counter[str] = Counter()
    total = 0
    for example in examples:
        links, reasons = learnable_links(example, table, find)
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


def gold_rows(example: Example, link: LinkMentions) -> Iterator[tuple[float, bool, bool]]:
    """Of each gold mention the score of its best candidate, whether this is right, and whether the gold is NIL."""
    mentions, golds, missing = gold_links(example)
    yield from [(0.0, False, False)] * missing.total()
    for linked, gold in zip(link(example.predicted, mentions), golds, strict=True):
        best, score = (linked[0][0], linked[0][2]) if linked else (NIL, -1.0)  # below any threshold
        yield score, best == gold and gold != NIL, gold == NIL
