"""What the scorers count, and the spans that they count, with their scores."""

from collections.abc import Iterable, Mapping, Sequence

from spacy.scorer import PRFScore
from spacy.tokens import Doc, Span

from ..annotations import get_score


def get_spans(doc: Doc, spans_key: str | None) -> Sequence[Span]:
    """doc.ents, or doc.spans[spans_key], () where the Doc has not these."""
    if spans_key is None:
        return doc.ents
    return list(doc.spans[spans_key]) if spans_key in doc.spans else []


def gold_key(golds: Iterable[Doc], spans_key: str | None, *, ents: bool) -> str | None:
    """Where the gold of a component is that writes doc.spans[spans_key], with `ents` beside doc.ents: the group; None,
    for doc.ents, where no gold Doc has the group, as those have not that spaCy's own tools made."""
    return None if ents and not any(spans_key in doc.spans for doc in golds) else spans_key


def get_scores(doc: Doc, spans_key: str | None) -> Iterable[float | None]:
    """The scores of `get_spans`: `span._.luke_score`, or the group's "scores", () where it has none."""
    if spans_key is None:
        return [get_score(span) for span in doc.ents]
    return map(float, doc.spans[spans_key].attrs.get("scores", [])) if spans_key in doc.spans else ()


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
