"""How far scores can be believed: of what a pipeline shows with a score, the share that is right.

`judge_...` read predicted Docs beside the gold: of all that is shown a row (score, whether it is right), counted as the
scorers count: what the gold says nothing about is left out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..annotations import (
    ENTITIES,
    LINKS,
    NIL,
    RELATIONS_TASK,
    SCORE,
    TYPES,
    TYPES_TASK,
    get_linked,
    get_pair_rows,
    get_relation_rows,
    get_scope,
    register_extensions,
    scored_spans,
)
from .counts import get_spans
from .places import Place, gold_place_finder

BINS = 10  # of equal width

Pair = tuple[Place, Place]
Judged = list[tuple[float, bool]]  # score, whether it is right
Judge = Callable[[Iterable[Example]], Judged]


class ReliabilityBin(NamedTuple):
    """What is shown with a score in (low, high], its mean score, and the share of it that is right."""

    low: float
    high: float
    n: int
    score: float
    right: float


class Reliability(NamedTuple):
    """ece: the expected calibration error (Naeini et al., AAAI 2015): the mean distance of mean score and share that is
    right, over bins as they hold scores; None of no scores. bins: those that hold any."""

    n: int
    ece: float | None
    bins: list[ReliabilityBin]

    def to_dict(self) -> dict[str, object]:
        return {"n": self.n, "ece": self.ece, "bins": [one._asdict() for one in self.bins]}


def measure_reliability(judged: Sequence[tuple[float, bool]], *, bins: int = BINS) -> Reliability:
    if not judged:
        return Reliability(0, None, [])
    score_N, right_N = (np.array(x, dtype=np.float64) for x in zip(*judged))
    bin_N = np.clip(np.ceil(score_N * bins).astype(int) - 1, 0, bins - 1)
    found = []
    error = 0.0
    for i in np.unique(bin_N).tolist():
        inside = bin_N == i
        n, score, right = int(inside.sum()), float(score_N[inside].mean()), float(right_N[inside].mean())
        found.append(ReliabilityBin(i / bins, (i + 1) / bins, n, score, right))
        error += n / len(score_N) * abs(score - right)
    return Reliability(len(score_N), error, found)


def judge_entities(examples: Iterable[Example], *, spans_key: str | None = None, ents: bool = False) -> Judged:
    """Predicted mentions with a score: `span._.luke_score`, or of doc.spans[spans_key] its "scores". Right: a gold
    mention has the same words and label. Others' entities, without a score, are left out, and so are those of which
    the gold says nothing, by words without annotation or by `doc._.luke_scope`. ents: predictions are doc.ents also
    where gold is in a group."""
    judged: Judged = []
    shown = None if ents else spans_key
    for example in examples:
        gold_doc, doc = example.reference, example.predicted
        if not (gold_doc.has_annotation("ENT_IOB") if spans_key is None else spans_key in gold_doc.spans):
            continue
        find = gold_place_finder(example)
        gold = {(*find(x.start_char, x.end_char), x.label_) for x in get_spans(gold_doc, spans_key)}
        unknown = unknown_places(gold_doc, find) if spans_key is None else []
        scores: dict[tuple[int, int, str], float] = {}
        for span, score in zip(get_spans(doc, shown), scores_of_spans(doc, shown)):
            a, b = span.start_char, span.end_char
            if score is not None and not any(start < b and a < end for start, end in unknown):
                scores[a, b, span.label_] = score
        right, known = scored_spans(get_scope(gold_doc, ENTITIES), gold, set(scores), nested=shown is not None)
        judged += [(scores[key], key in right) for key in scores if key in known]
    return judged


def judge_types(examples: Iterable[Example]) -> Judged:
    """Types in `span._.luke_types` of the mentions of the gold doc.spans["luke_types"]."""
    register_extensions()
    judged: Judged = []
    for example in examples:
        if TYPES not in example.reference.spans:
            continue
        find = gold_place_finder(example)
        gold: dict[Place, set[str]] = {}
        for span in example.reference.spans[TYPES]:
            gold.setdefault(find(span.start_char, span.end_char), set()).add(span.label_)
        scope = get_scope(example.reference, TYPES_TASK)
        for place, labels in gold.items():
            span = example.predicted.char_span(*place)
            types: dict[str, float] = {} if span is None else span._.luke_types or {}
            right, known = scope.scored(labels - {""}, types)
            judged += [(score, label in right) for label, score in types.items() if label in known]
    return judged


def judge_relations(examples: Iterable[Example]) -> Judged:
    """`doc._.luke_relations`; where the gold doc has given pairs, those of these."""
    judged: Judged = []
    for example in examples:
        gold_rows, given = get_relation_rows(example.reference), get_pair_rows(example.reference)
        if gold_rows is None:
            continue
        find = gold_place_finder(example)
        gold: dict[Pair, set[str]] = defaultdict(set)
        for a, b, c, d, label, _ in gold_rows:
            gold[find(a, b), find(c, d)].add(label)
        pairs = None if given is None else {(find(a, b), find(c, d)) for a, b, c, d in given}
        found: dict[Pair, dict[str, float]] = defaultdict(dict)
        for a, b, c, d, label, score in get_relation_rows(example.predicted) or []:
            if pairs is None or ((a, b), (c, d)) in pairs:
                found[(a, b), (c, d)][label] = score
        scope = get_scope(example.reference, RELATIONS_TASK)
        for pair, scores in found.items():
            right, known = scope.scored(gold.get(pair, set()), scores)
            judged += [(score, label in right) for label, score in scores.items() if label in known]
    return judged


def judge_links(examples: Iterable[Example], *, spans_key: str | None = None) -> Judged:
    """Mentions that are linked, with the score of their entity in `span._.luke_candidates`. Right: the gold mention
    with these words has it. A gold mention without an id says nothing; a link of what is no gold mention is wrong."""
    judged: Judged = []
    for example in examples:
        gold_doc, doc = example.reference, example.predicted
        key = LINKS if LINKS in gold_doc.spans else None
        if key is None and not gold_doc.has_annotation("ENT_IOB"):
            continue
        find = gold_place_finder(example)
        gold: dict[Place, set[str]] = {}
        for x in get_spans(gold_doc, key):
            gold.setdefault(find(x.start_char, x.end_char), set()).add(x.kb_id_)
        if not any(ids - {""} for ids in gold.values()):
            continue
        unknown = unknown_places(gold_doc, find)
        scores = {(x.start, x.end): {one.id: one.score for one in x.candidates} for x in get_linked(doc) or []}
        for span in get_spans(doc, spans_key):
            place = (span.start_char, span.end_char)
            score = scores.get(place, {}).get(span.kb_id_)
            if span.kb_id_ in ("", NIL) or score is None or gold.get(place) == {""}:
                continue
            if place in gold or not any(start < place[1] and place[0] < end for start, end in unknown):
                judged.append((score, span.kb_id_ in gold.get(place, ())))
    return judged


def scores_of_spans(doc: Doc, spans_key: str | None) -> Iterable[float | None]:
    if spans_key is None:
        return [_score_of(span) for span in doc.ents]
    group = doc.spans[spans_key] if spans_key in doc.spans else None
    return [] if group is None else map(float, group.attrs.get("scores", []))


def _score_of(span: Span) -> float | None:
    register_extensions()
    found: float | None = getattr(span._, SCORE)
    return found


def unknown_places(doc: Doc, find: Callable[[int, int], Place]) -> list[Place]:
    return [find(word.idx, word.idx + len(word)) for word in doc if not word.ent_iob]
