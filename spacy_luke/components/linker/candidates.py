"""Candidates of mentions: those that are given with a Doc, or those of a knowledge base, the best by their prior."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ...aliases.store import Candidate
from ...annotations import get_candidates_given
from ...kb.knowledge_base import EntityKB
from ...kb.persons import share_person_names
from ..mentions import WordRange

Named = list[tuple[str, float]]  # candidates of a mention: ids with their priors


class Found(NamedTuple):
    """The candidates of a mention, and how they agree with it: (K, M) as `matching` says, None where it is not
    asked for."""

    named: Named
    match: NDArray[np.float32] | None = None


def given_candidates(doc: Doc) -> dict[WordRange, Named] | None:
    """Given candidates by the characters of their mentions; None where the Doc has none. Their order has no meaning."""
    mentions = get_candidates_given(doc)
    if mentions is None:
        return None
    return {(mention.start, mention.end): [(one.id, one.prior) for one in mention.candidates] for mention in mentions}


def best_candidates(named: Named, *, most: int) -> Named:
    """The candidates with the highest priors, each entity once, in an order that does not depend on how they came."""
    best: dict[str, float] = {}
    for entity, prior in named:
        if not math.isfinite(prior) or prior < 0:
            raise ValueError(f"The prior of a candidate must be 0 or more, but that of {entity!r} is {prior}.")
        best[entity] = max(prior, best.get(entity, 0.0))
    return sorted(best.items(), key=lambda x: (-x[1], x[0]))[:most]


def find_candidates(
    doc: Doc, mentions: Sequence[WordRange], *, kb: EntityKB | None, most: int, use_given: bool, share_names: bool
) -> list[Named]:
    """Of each mention, words [start, end), the candidates that are scored: at most `most`; none without a knowledge
    base where they are not given. share_names: see `LukeLinker`; needs a knowledge base."""
    given = given_candidates(doc) if use_given else None
    texts = [doc[start:end].text for start, end in mentions]
    found = []
    for (start, end), text in zip(mentions, texts, strict=True):
        if given is not None:
            span = doc[start:end]
            named = given.get((span.start_char, span.end_char), [])
        else:
            named = [] if kb is None else [(x.entity, x.prior) for x in kb.candidates(text, top=most)]
        found.append(best_candidates(named, most=most))
    if not share_names or kb is None:
        return found
    shared = share_person_names(texts, [[Candidate(*x) for x in named] for named in found], kb)
    return [best_candidates([(x.entity, x.prior) for x in named], most=most) for named in shared]
