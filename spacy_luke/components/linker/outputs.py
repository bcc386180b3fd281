"""What `luke_linker` writes on a Doc: the id of each mention, and its candidates with prior and score."""

import warnings
from collections.abc import Sequence

import numpy as np
from spacy.tokens import Doc, Span

from ...annotations import NIL, LinkCandidate, LinkedMention, set_linked
from ..mentions import WordRange
from .entity_table import Candidates

Linked = list[tuple[str, float, float]]  # id, prior, score, the best first


def rank(candidates: Candidates, probabilities: np.ndarray | None) -> Linked:
    """Candidates with their scores, the best first; of equal ones the one with the higher prior."""
    score_of = np.zeros(len(candidates.named))
    if probabilities is not None:
        score_of[candidates.places_K] = probabilities
    order = np.argsort(-score_of, kind="stable").tolist()
    return [(*candidates.named[i], float(score_of[i])) for i in order]


def write_links(
    doc: Doc, found: Sequence[tuple[WordRange, Linked]], *, threshold: float, key: str | None = None
) -> None:
    """Ids in doc.ents, or in doc.spans[key]: the best candidate's, NIL where its score is below the threshold.
    Candidates go to its rows by the characters of their mention."""
    ids: dict[WordRange, str] = {}
    mentions = []
    for (start, end), linked in found:
        ids[start, end] = linked[0][0] if linked and linked[0][2] >= threshold else NIL
        span = doc[start:end]
        mentions.append(LinkedMention(span.start_char, span.end_char, [LinkCandidate(*x) for x in linked]))
    set_linked(doc, mentions)
    _set_ids(doc, ids, key=key)


def warn_unreached(name: str, doc: Doc, mentions: Sequence[WordRange], seen_M: np.ndarray, *, room: int) -> None:
    """Warns of mentions that no window decided. room: pieces of a window."""
    a, b = mentions[int(np.flatnonzero(~seen_M)[0])]
    warnings.warn(
        f"'{name}': {int((~seen_M).sum())} of {len(mentions)} mentions get no score, as they have no pieces or are "
        f"longer than a window of {room} pieces; the first is words [{a}, {b}), {doc[a:b].text[:80]!r}.",
        stacklevel=4,
    )


def _set_ids(doc: Doc, ids: dict[WordRange, str], *, key: str | None) -> None:
    """New Spans with these ids in doc.spans[key], or in doc.ents where there is no key."""
    before = doc.ents if key is None else doc.spans.get(key, [])
    spans = [
        Span(doc, x.start, x.end, label=x.label_, kb_id=ids.get((x.start, x.end), x.kb_id_), span_id=x.id)
        for x in before
    ]
    if key is None:
        doc.set_ents(spans, default="unmodified")
    for i, span in enumerate(spans if key is not None else []):
        doc.spans[key][i] = span
