"""What `luke_linker` learns from and is tuned on: mentions with the ids of their entities."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example

from ...annotations import LINKS, NIL
from ..mentions import Mention, align_mention
from .candidates import Candidates, EntityTable, Named

SCORE_THRESHOLDS = np.arange(0.0, 1.0, 0.01).round(2).tolist()  # that `tune` tries

FindCandidates = Callable[[Doc, Sequence[Mention]], list[Named]]


def gold_links(example: Example) -> tuple[list[Mention], list[str], Counter[str]]:
    """Mentions of the predicted Doc that have gold entities, these ("NIL" among them), and why others are missing."""
    reference = example.reference
    spans = reference.spans[LINKS] if LINKS in reference.spans else reference.ents
    places: dict[Mention, str] = {}
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


def learnable_links(
    example: Example, table: EntityTable, find: FindCandidates
) -> tuple[list[Mention], list[Candidates], list[int], Counter[str]]:
    """Gold mentions whose entity has a vector and is among the candidates, as in the reference code; and why not."""
    mentions, golds, missing = gold_links(example)
    kept: list[tuple[Mention, Candidates, int]] = []
    for mention, named, gold in zip(mentions, find(example.predicted, mentions), golds, strict=True):
        if gold == NIL:
            missing["are NIL"] += 1
        elif gold not in (entity for entity, _ in named):
            missing["have no candidates" if not named else "have candidates without the gold entity"] += 1
        elif table.rows[number := table.number(gold)] in (-1, table.unknown):
            missing["have a gold entity without a vector"] += 1
        else:
            kept.append((mention, table.candidates(named), number))
    columns = [list(x) for x in zip(*kept)] or [[], [], []]
    return (*columns, missing)  # type: ignore[return-value]


def check_learnable(name: str, missing: Counter[str], total: int) -> None:
    """Raises ValueError where all of `total` gold mentions of a component are missing, with the reasons."""
    if total and total == missing.total():
        raise ValueError(
            f"'{name}' cannot learn from any of {total} gold mentions: "
            + ", ".join(f"{n} {what}" for what, n in missing.items())
            + ". Are the ids of the gold mentions those of the knowledge base?"
        )


def best_threshold(rows: Sequence[tuple[float, bool, bool]]) -> tuple[float, float]:
    """rows: of each gold mention the score of its best candidate, whether this is right, and whether the gold is NIL.
    RETURNS: the threshold that makes most of them right, the lowest of equal ones, and this share."""
    if not rows:
        raise ValueError("Expected examples with linked mentions (kb_id) to tune on, but found none.")
    score, right, nil = (np.array(x) for x in zip(*rows))
    best = (-1.0, 0.0, 0.0)
    for threshold in SCORE_THRESHOLDS:
        share = float(np.where(score >= threshold, right, nil).mean())
        best = max(best, (share, -threshold, threshold))
    return best[2], best[0]
