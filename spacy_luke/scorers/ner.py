"""Scores of predicted mentions against gold ones: exact span and label, as conlleval and seqeval count them."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from spacy.scorer import PRFScore
from spacy.training import Example
from spacy.util import registry

from ..annotations import get_gold_entities, scored_spans, solid_edges
from .counts import get_spans, per_type, prf, total_of

Key = tuple[int, int, str]


@registry.scorers("spacy-luke.ner_scorer.v1")
def make_ner_scorer() -> Callable[..., dict[str, Any]]:
    """The scorer of `luke_ner`: `score_ner`."""
    return score_ner


def score_ner(examples: Iterable[Example], *, spans_key: str | None = None, **kwargs: Any) -> dict[str, Any]:
    """Scores of doc.ents, or of doc.spans[spans_key], where mentions may overlap; see `score_mentions`."""
    return score_mentions(examples, spans_key=spans_key)


def score_mentions(examples: Iterable[Example], *, spans_key: str | None = None) -> dict[str, Any]:
    """Micro precision, recall and F1 (0 to 1), over all labels and per label.

    A prediction is right where a gold mention has the same words and the same label; each counts once, however often
    it is given. Where the words of prediction and gold differ, a prediction that does not begin and end with gold
    words is wrong. As in spaCy, gold docs without annotation are left out, and so are predictions that touch words
    whose gold annotation is missing (ent_iob 0). Where the gold doc
    says that labels are not annotated in it (`doc._.luke_scope`), only the others count; gold that means one of several
    labels is found where one of them is predicted, and missed as "A|B". Where gold has no such group, it is
    doc.ents, as in training, and predictions that overlap a gold one count only where they have its label.

    Returns ents_p, ents_r, ents_f and ents_per_type ({label: {"p", "r", "f"}}), or the same with spans_{key}_;
    all None where there is nothing to score.
    """
    score_per_label: dict[str, PRFScore] = defaultdict(PRFScore)
    for example in examples:
        entities = get_gold_entities(example.reference, spans_key)
        if entities is None:
            continue
        scope = entities.scope
        gold = {(span.start, span.end, span.label_) for span in entities.spans}
        known, unaligned = _predictions_in_gold_words(example, spans_key, in_group=entities.in_group)
        gold, known = scored_spans(scope, gold, known, nested=spans_key is not None)
        for _, _, label in unaligned:
            score_per_label[label].fp += scope.is_annotated(label)
        for key in known:
            score_per_label[key[2]].tp += key in gold
            score_per_label[key[2]].fp += key not in gold
        for key in gold - known:
            score_per_label[key[2]].fn += 1
    total = total_of(score_per_label)
    name = "ents" if spans_key is None else f"spans_{spans_key}"
    return {**prf(name, total), f"{name}_per_type": per_type(score_per_label) if len(total) else None}


def _predictions_in_gold_words(
    example: Example, spans_key: str | None, *, in_group: bool
) -> tuple[set[Key], list[Key]]:
    """Predicted mentions in words of the gold doc: those that align with it, and the words touched by the others.
    in_group: whether gold is a group, not doc.ents."""
    predicted = {(span.start, span.end, span.label_) for span in get_spans(example.predicted, spans_key)}
    gold_doc = example.reference
    aligned: set[Key] = predicted
    unaligned: list[Key] = []
    if predicted and [word.text for word in example.predicted] != [word.text for word in gold_doc]:
        aligned, unaligned = _align(example, predicted)
    if not in_group and any(word.ent_iob == 0 for word in gold_doc):
        aligned = {key for key in aligned if all(word.ent_iob for word in gold_doc[key[0] : key[1]])}
        unaligned = [key for key in unaligned if all(word.ent_iob for word in gold_doc[key[0] : key[1]])]
    return aligned, unaligned


def _align(example: Example, predicted: set[Key]) -> tuple[set[Key], list[Key]]:
    predicted_edges = solid_edges(example.predicted)
    gold_edges = solid_edges(example.reference)
    if predicted_edges[-1][1] != (gold_edges[-1][1] if gold_edges else 0):
        raise ValueError(
            f"A prediction and its gold doc must have the same characters, blanks apart, but the texts begin "
            f"{example.predicted.text[:60]!r} and {example.reference.text[:60]!r}."
        )
    starts = {start: i for i, (start, end) in enumerate(gold_edges) if start < end}
    ends = {end: i + 1 for i, (start, end) in enumerate(gold_edges) if start < end}
    aligned, unaligned = set(), []
    for first, last, label in sorted(predicted):
        start, end = predicted_edges[first][0], predicted_edges[last - 1][1]
        if start in starts and end in ends and start < end:
            aligned.add((starts[start], ends[end], label))
        else:
            touched = [i for i, edges in enumerate(gold_edges) if edges[0] < end and start < edges[1]] or [0]
            unaligned.append((touched[0], touched[-1] + 1, label))
    return aligned, unaligned
