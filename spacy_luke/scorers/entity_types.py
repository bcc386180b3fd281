"""Scores of the types of mentions: strict, loose macro and loose micro (Ling & Weld, AAAI 2012, section 5.1), as the
evaluation of ERNIE and LUKE counts them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from spacy.scorer import PRFScore
from spacy.training import Example
from spacy.util import registry

from ..annotations import TYPES, TYPES_TASK, Place, get_scope, get_types, gold_place_finder
from .counts import per_type, total_of


class TypedMention(NamedTuple):
    """Gold and predicted types that count of a gold mention, characters of the predicted text of document number
    `doc`. scores: of what is predicted."""

    doc: int
    place: Place
    gold: set[str]
    predicted: set[str]
    scores: dict[str, float]


@registry.scorers("spacy-luke.typing_scorer.v1")
def make_typing_scorer() -> Callable[..., dict[str, Any]]:
    """The scorer of `luke_typer`: `score_types`."""
    return score_types


def score_types(examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
    """Scores (0 to 1) of `span._.luke_types`, all labels in it, for the mentions of the gold `doc.spans["luke_types"]`.

    Mentions are compared by their characters. One that the prediction does not have, or has no types, has the empty set
    of types; mentions that are not in the gold are not scored. Gold docs without the span group are left out, and so
    are types that the gold doc does not annotate (`doc._.luke_scope`).

    types_micro_p, _r, _f: counts of (mention, type) over all mentions, as the LUKE paper reports them.
    types_macro_p, _r, _f: mean over mentions of the share of predicted types that are right, and of gold types that are
        found, 0 for the empty set, as in ERNIE's and LUKE's evaluation; F1 of the two means.
    types_strict: share of mentions whose sets are equal. types_per_type: {type: {"p", "r", "f"}}.
    All None where there is no mention.
    """
    scores_of: dict[str, PRFScore] = defaultdict(PRFScore)
    n = equal = 0
    precision = recall = 0.0
    for _, _, gold, predicted, _ in read_types(examples):
        n += 1
        equal += gold == predicted
        right = gold & predicted
        precision += len(right) / len(predicted) if predicted else 0.0
        recall += len(right) / len(gold) if gold else 0.0
        for label in right:
            scores_of[label].tp += 1
        for label in predicted - gold:
            scores_of[label].fp += 1
        for label in gold - predicted:
            scores_of[label].fn += 1
    total = total_of(scores_of)
    scores: dict[str, Any] = {
        "types_micro_p": total.precision,
        "types_micro_r": total.recall,
        "types_micro_f": total.fscore,
        "types_macro_p": precision / max(n, 1),
        "types_macro_r": recall / max(n, 1),
        "types_macro_f": 2 * precision * recall / ((precision + recall) * n) if precision + recall else 0.0,
        "types_strict": equal / max(n, 1),
        "types_per_type": per_type(scores_of),
    }
    return scores if n else dict.fromkeys(scores)


def read_types(examples: Iterable[Example]) -> Iterator[TypedMention]:
    """The mentions that are scored, see `score_types`."""
    for i, example in enumerate(examples):
        if TYPES not in example.reference.spans:
            continue
        find = gold_place_finder(example)
        gold: dict[Place, set[str]] = {}
        for span in example.reference.spans[TYPES]:
            gold.setdefault(find(span.start_char, span.end_char), set()).update([span.label_] if span.label_ else [])
        scope = get_scope(example.reference, TYPES_TASK)
        for place, types in gold.items():
            if not scope.is_open(types):
                span = example.predicted.char_span(*place)
                scores = {} if span is None else get_types(span)
                yield TypedMention(i, place, *scope.scored(types, set(scores)), scores)
