"""Scores of relations, end to end and of given pairs: micro (TACRED's official scorer), macro, strict, accuracy, and
the official score of SemEval-2010 task 8."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

from ..annotations import RELATIONS_TASK, Place, Scope, get_pair_rows, get_relation_rows, get_scope, gold_place_finder
from .counts import get_spans, per_type, prf, total_of

_DIRECTED = re.compile(r"(.+)\((?:e1,e2|e2,e1)\)")

Pair = tuple[Place, Place]
Key = tuple[Place, Place, str]
EntityLabels = dict[Place, frozenset[str]]


class DocRelations(NamedTuple):
    """Gold and predicted relations of document number `doc` that count, in characters of the prediction's text."""

    doc: int
    gold: set[Key]
    predicted: set[Key]
    scores: dict[Key, float]  # of what is predicted
    pairs: set[Pair] | None  # those that were given
    gold_entities: EntityLabels
    predicted_entities: EntityLabels


@registry.scorers("spacy-luke.relation_scorer.v1")
def make_relation_scorer(spans_key: str | None = None) -> Callable[..., dict[str, Any]]:
    """The scorer of `luke_relation`: `score_relations`.

    spans_key: entities, whose labels the strict score compares, are in doc.spans[spans_key]; None: in doc.ents.
    """
    return partial(_score, spans_key)  # not a function in here, which could not be pickled


def _score(
    spans_key: str | None, examples: Iterable[Example], *, none: str | None = None, **kwargs: Any
) -> dict[str, Any]:
    return score_relations(examples, none=none, spans_key=spans_key)


def score_relations(
    examples: Iterable[Example], *, none: str | None = None, spans_key: str | None = None
) -> dict[str, Any]:
    """Scores (0 to 1) of `doc._.luke_relations` against the gold ones, as sets of (head, tail, label).

    Mentions are compared by their characters. Every gold relation that is not predicted is a miss, whether its pair was
    proposed, and its entities found, or not. Where the gold doc has given pairs, nothing is known of other pairs, and
    predictions for them do not count. Gold docs without `luke_relations` are left out, and so are labels that the gold
    doc does not annotate (`doc._.luke_scope`). none: the label for "no
    relation", which is none.

    relations_p, _r, _f: micro, the official score of TACRED (without no_relation) and boundary F1 end to end; precision
        is 0 where nothing is predicted, as in spaCy (TACRED's script says 1; its F1 is 0 all the same).
    relations_strict_p, _r, _f: the labels of both entities must be right too.
    relations_macro_p, _r, _f: means of P, R and F1 over the labels of the gold, as FewRel is reported.
    relations_accuracy: share of given pairs with exactly their labels, or none where they have none.
    relations_per_type: {label: {"p", "r", "f"}}.
    relations_semeval_f: where all gold labels look like X(e1,e2), SemEval-2010 task 8's official score: the mean F1
        over the X of the gold, where a right X in the wrong direction is an error for precision and recall.
    Keys are None where there is nothing to score.
    """
    scores_of: dict[str, PRFScore] = defaultdict(PRFScore)
    strict = PRFScore()
    n_pairs = n_right = 0
    for found in read_relations(examples, none=none, spans_key=spans_key):
        for _, _, label in found.predicted & found.gold:
            scores_of[label].tp += 1
        for _, _, label in found.predicted - found.gold:
            scores_of[label].fp += 1
        for _, _, label in found.gold - found.predicted:
            scores_of[label].fn += 1
        strict.score_set(
            _with_entities(found.predicted, found.predicted_entities), _with_entities(found.gold, found.gold_entities)
        )
        if found.pairs is not None:
            n_pairs += len(found.pairs)
            wrong = {key[:2] for key in found.gold ^ found.predicted}
            n_right += len(found.pairs - wrong)
    scores: dict[str, Any] = {
        **prf("relations", total_of(scores_of)),
        **prf("relations_strict", strict),
        **_macro(scores_of),
        "relations_accuracy": n_right / n_pairs if n_pairs else None,
        "relations_per_type": per_type(scores_of) or None,
        "relations_semeval_f": _semeval_f(scores_of),
    }
    return scores


def read_relations(
    examples: Iterable[Example], *, none: str | None, spans_key: str | None = None
) -> Iterator[DocRelations]:
    """What counts, see `score_relations`."""
    for i, example in enumerate(examples):
        gold_doc, doc = example.reference, example.predicted
        gold_rows, given = get_relation_rows(gold_doc), get_pair_rows(gold_doc)
        if gold_rows is None:
            continue
        find = gold_place_finder(example)
        gold = {(find(a, b), find(c, d), label) for a, b, c, d, label, _ in gold_rows if label != none}
        pairs = None if given is None else {(find(a, b), find(c, d)) for a, b, c, d in given}
        scores = {
            ((a, b), (c, d), label): score
            for a, b, c, d, label, score in get_relation_rows(doc) or []
            if label != none and (pairs is None or ((a, b), (c, d)) in pairs)
        }
        predicted = set(scores)
        scope = get_scope(gold_doc, RELATIONS_TASK)
        if not scope.is_full:
            gold, predicted = _scored(scope, gold, predicted)
        labels = [
            {find(*place): names for place, names in _entity_labels(gold_doc, spans_key).items()},
            _entity_labels(doc, spans_key),
        ]
        yield DocRelations(i, gold, predicted, scores, pairs, *labels)


def _scored(scope: Scope, gold: set[Key], predicted: set[Key]) -> tuple[set[Key], set[Key]]:
    """What counts of gold and predicted relations (see `Scope.scored`), pair by pair."""
    counted: tuple[set[Key], set[Key]] = (set(), set())
    for head, tail in {key[:2] for key in gold | predicted}:
        own, said = ({label for a, b, label in keys if (a, b) == (head, tail)} for keys in (gold, predicted))
        for keys, some in zip(counted, scope.scored(own, said)):
            keys.update((head, tail, label) for label in some)
    return counted


def _entity_labels(doc: Doc, spans_key: str | None) -> EntityLabels:
    """Labels of each entity; one of several labels (in a span group) has the set of them."""
    labels: dict[Place, set[str]] = {}
    for span in get_spans(doc, spans_key):
        labels.setdefault((span.start_char, span.end_char), set()).add(span.label_)
    return {place: frozenset(names) for place, names in labels.items()}


def _with_entities(
    keys: set[Key], entities: EntityLabels
) -> set[tuple[Key, frozenset[str] | None, frozenset[str] | None]]:
    return {(key, entities.get(key[0]), entities.get(key[1])) for key in keys}


def _macro(scores: dict[str, PRFScore]) -> dict[str, float | None]:
    """Means over the labels of the gold; None where it has none."""
    in_gold: list[PRFScore] = [score for score in scores.values() if score.tp + score.fn]
    values = ([x.precision for x in in_gold], [x.recall for x in in_gold], [x.fscore for x in in_gold])
    return {f"relations_macro_{key}": sum(own) / len(own) if own else None for key, own in zip("prf", values)}


def _semeval_f(scores: dict[str, PRFScore]) -> float | None:
    gold = [label for label, score in scores.items() if score.tp + score.fn]
    if not all(_DIRECTED.fullmatch(label) for label in gold):
        return None
    merged: dict[str, PRFScore] = defaultdict(PRFScore)
    for label, score in scores.items():
        match = _DIRECTED.fullmatch(label)
        merged[match[1] if match else label] += score
    return _macro(merged)["relations_macro_f"]
