"""What the scorers count, and the spans that they count."""

from collections.abc import Mapping, Sequence

from spacy.scorer import PRFScore
from spacy.tokens import Doc, Span


def get_spans(doc: Doc, spans_key: str | None) -> Sequence[Span]:
    """doc.ents, or doc.spans[spans_key], () where the Doc has not these."""
    if spans_key is None:
        return doc.ents
    return list(doc.spans[spans_key]) if spans_key in doc.spans else []


def total_of(scores: Mapping[str, PRFScore]) -> PRFScore:
    """The counts of all labels together."""
    total = PRFScore()
    for score in scores.values():
        total += score
    return total


def prf(name: str, score: PRFScore) -> dict[str, float | None]:
    """name_p, name_r and name_f; None where nothing was counted."""
    if not len(score):
        return {f"{name}_{x}": None for x in "prf"}
    return {f"{name}_p": score.precision, f"{name}_r": score.recall, f"{name}_f": score.fscore}


def per_type(scores: Mapping[str, PRFScore]) -> dict[str, dict[str, float]]:
    """{label: {"p", "r", "f"}}, by label."""
    return {label: scores[label].to_dict() for label in sorted(scores)}
