"""What `luke_linker` writes on a Doc: the id of each mention, and its candidates with prior and score."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc

from ...annotations import (
    NIL,
    LinkCandidate,
    LinkedMention,
    LinkEvidence,
    forget_links,
    get_all_evidence,
    get_linked,
    set_evidence,
    set_linked,
)
from ..mentions import WordRange, rewrite_spans
from .entity_table import Candidates

Weights = dict[str, float]  # of what is known of candidates, in the order of `Candidates.features_KF`


class Ranked(NamedTuple):
    """A candidate with its prior and score. shares: what the score is made of, None where it is not asked for."""

    id: str
    prior: float
    score: float
    shares: dict[str, float] | None = None


Linked = list[Ranked]  # the candidates of a mention, the best first


def rank(
    candidates: Candidates, probabilities: np.ndarray | None, *, nil: bool = False, weights: Weights | None = None
) -> Linked:
    """Candidates with their scores, the best first; of equal ones the one with the higher prior. Where NIL is a
    candidate it is among them, after those of its score; a mention without probabilities is NIL then."""
    named, places_K = candidates.named, candidates.places_K
    score_of = np.zeros(len(named))
    if probabilities is not None:
        score_of[places_K] = probabilities[: len(places_K)]
    shares = {} if weights is None else _shares(candidates, probabilities, weights)
    found = [Ranked(*one, float(score_of[i]), shares.get(i)) for i, one in enumerate(named)]
    if nil and named and probabilities is not None:
        found.append(Ranked(NIL, 0.0, float(probabilities[-1])))
    elif nil and named:
        found.insert(0, Ranked(NIL, 0.0, 0.0))
    return sorted(found, key=lambda x: -x.score)


def _shares(candidates: Candidates, probabilities: np.ndarray | None, weights: Weights) -> dict[int, dict[str, float]]:
    """Of each scored candidate, by its place, numbers that add up to the logarithm of how much more likely than NIL it
    is, or than the best candidate where NIL is none. "context" is what the states of the encoder say, and all else that
    is learned of NIL."""
    if probabilities is None:
        return {}
    size = len(candidates.places_K)
    log_K = np.log(np.maximum(probabilities, np.finfo(np.float32).tiny))
    total_K = log_K[:size] - (log_K[-1] if len(probabilities) > size else log_K.max())
    known_KF = candidates.features_KF[:, : len(weights)] * np.array(list(weights.values()), np.float32)
    rest_K = total_K - known_KF.sum(1)
    return {
        place: {"context": float(rest), **dict(zip(weights, map(float, known_F), strict=True))}
        for place, rest, known_F in zip(candidates.places_K.tolist(), rest_K, known_KF, strict=True)
    }


def write_links(
    doc: Doc,
    found: Sequence[tuple[WordRange, Linked]],
    *,
    threshold: float,
    key: str | None = None,
    explain: bool = False,
) -> None:
    """Ids in doc.ents, or in doc.spans[key]: the best candidate's, NIL where that is the best, and where its score is
    below the threshold. Candidates go to its rows by the characters of their mention, beside those of mentions that
    other linkers have linked, or this one before; explain: and what their scores are made of."""
    ids: dict[WordRange, str] = {}
    mentions, shares = [], []
    for (start, end), linked in found:
        ids[start, end] = linked[0][0] if linked and linked[0][2] >= threshold else NIL
        span = doc[start:end]
        place = span.start_char, span.end_char
        mentions.append(LinkedMention(*place, [LinkCandidate(x.id, x.prior, x.score) for x in linked]))
        shares.append(LinkEvidence(*place, [(x.id, x.shares) for x in linked if x.shares is not None]))
    forget_links(doc, [(x.start, x.end) for x in mentions])
    set_linked(doc, [*(get_linked(doc) or []), *mentions])
    if explain:
        set_evidence(doc, [*get_all_evidence(doc), *shares])
    rewrite_spans(doc, ids=ids, key=key)


def warn_unreached(name: str, doc: Doc, mentions: Sequence[WordRange], seen_M: np.ndarray, *, room: int) -> None:
    """Warns of mentions that no window decided. room: pieces of a window."""
    a, b = mentions[int(np.flatnonzero(~seen_M)[0])]
    warnings.warn(
        f"'{name}': {int((~seen_M).sum())} of {len(mentions)} mentions get no score, as they have no pieces or are "
        f"longer than a window of {room} pieces; the first is words [{a}, {b}), {doc[a:b].text[:80]!r}.",
        stacklevel=4,
    )
