"""What components write on single spans, as the extensions `span._.luke_score` and `span._.luke_types` show it: spaCy
keeps it in `doc.user_data` by the span's characters. Read here it is there whatever others have set under these
names."""

from typing import Any

from spacy.tokens import Span

from .keys import SCORE, SPAN_TYPES


def get_score(span: Span) -> float | None:
    """The probability of an entity; None where nobody has given one."""
    score: float | None = _data(span).get(_key(span, SCORE))
    return score


def set_score(span: Span, score: float | None) -> None:
    _data(span)[_key(span, SCORE)] = score


def get_types(span: Span) -> dict[str, float]:
    """The types of a mention with their probabilities, the most probable first; {} where it has none."""
    types: dict[str, float] | None = _data(span).get(_key(span, SPAN_TYPES))
    return types or {}


def set_types(span: Span, types: dict[str, float]) -> None:
    _data(span)[_key(span, SPAN_TYPES)] = types


def _data(span: Span) -> dict[Any, Any]:
    return span.doc.user_data  # whose keys are strings alone, as spaCy's stubs have it


def _key(span: Span, name: str) -> tuple[Any, ...]:
    return "._.", name, span.start_char, span.end_char
