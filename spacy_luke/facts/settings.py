"""What goes into a graph of facts, and when two mentions are of one thing."""

from collections.abc import Collection
from dataclasses import dataclass

VALUES = ("TIME", "NUM", "DATE", "MONEY", "PERCENT", "QUANTITY", "ORDINAL", "CARDINAL")
SHORTENED = ("PER", "PERSON", "ORG")


@dataclass(frozen=True)
class FactSettings:
    """Scores that nobody told (null in the annotations) reach any minimum.

    min_score: of entities; min_link_score: of links, a mention below it counts as one without a link;
    min_relation_score: of relations; labels, relations: those that are taken, None: all. values: labels of what is no
    thing, such as dates: a node for each text, and only where a relation has it. shortened: labels of things that are
    called by a part of their name, within a document. similarity: share of its context that a thing must have been seen
    with, for a name of one word to be of it; longer names need a fifth. join_links: a mention without a link is of the
    thing that its document has a link for by this name. own_ids: entities of a knowledge base are nodes by its own ids,
    not by their items of Wikidata, which several may have. max_evidence: places that an edge lists, the best; it
    counts all.
    """

    min_score: float = 0.0
    min_link_score: float = 0.0
    min_relation_score: float = 0.0
    labels: Collection[str] | None = None
    relations: Collection[str] | None = None
    values: Collection[str] = VALUES
    shortened: Collection[str] = SHORTENED
    similarity: float = 0.05
    join_links: bool = True
    own_ids: bool = False
    max_evidence: int = 100

    def __post_init__(self) -> None:
        for name in ("min_score", "min_link_score", "min_relation_score", "similarity"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be from 0 to 1, but it is {getattr(self, name)}.")
        if self.max_evidence < 1:
            raise ValueError(f"max_evidence must be 1 or more, but it is {self.max_evidence}.")
