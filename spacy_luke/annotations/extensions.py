"""The extensions `doc._.luke_...` and `span._.luke_...`: what users read and write.

What they give is made anew each time: to change it, write it back.
"""

from collections.abc import Callable
from typing import Any

from spacy.tokens import Doc, Span

from .entities import get_candidates, get_entity, get_evidence, set_candidates_given, set_knowledge
from .keys import (
    ANSWERS,
    CANDIDATES,
    ENTITY,
    FILLERS,
    GIVEN_CANDIDATES,
    KNOWLEDGE,
    LINK_EVIDENCE,
    PAIRS,
    QUERIES,
    QUESTIONS,
    RELATIONS,
    SCOPE,
    SCORE,
    SECOND,
    SPAN_TYPES,
)
from .questions import get_answers, get_fillers, get_queries, get_questions, set_queries, set_questions
from .relations import get_pairs, get_relations, set_pairs, set_relations
from .rows import get_all_rows, get_rows, get_second, set_all_rows, set_second
from .scope import get_scope_table, set_scope_table


def register_extensions() -> None:
    """Make `doc._.luke_relations`, `luke_pairs`, `luke_questions`, `luke_queries`, `luke_knowledge`,
    `luke_candidates_given`, `luke_second`, `luke_scope`, `luke_answers`, `luke_fillers`, `luke_rows` and
    `span._.luke_score`, `span._.luke_types`, `span._.luke_candidates`, `span._.luke_evidence`,
    `span._.luke_entity` known to spaCy, as importing `spacy_luke.annotations` does; those that others have set under
    these names stay."""
    for name, (getter, setter) in _EXTENSIONS.items():
        if not Doc.has_extension(name):
            Doc.set_extension(name, getter=getter, setter=setter)
    for name in (SCORE, SPAN_TYPES):
        if not Span.has_extension(name):
            Span.set_extension(name, default=None)
    if not Span.has_extension(CANDIDATES):
        Span.set_extension(CANDIDATES, getter=get_candidates)
    if not Span.has_extension(LINK_EVIDENCE):
        Span.set_extension(LINK_EVIDENCE, getter=get_evidence)
    if not Span.has_extension(ENTITY):
        Span.set_extension(ENTITY, getter=get_entity)


def _knowledge(doc: Doc) -> list[Any]:
    """[start, end, id, score] of each given entity."""
    return get_rows(doc, KNOWLEDGE) or []


def _candidates_given(doc: Doc) -> list[Any] | None:
    """[start, end, [[id, prior], ...]] of each mention with given candidates; None where none are given."""
    return get_rows(doc, GIVEN_CANDIDATES)


_EXTENSIONS: dict[str, tuple[Callable[[Doc], Any], Callable[[Doc, Any], None] | None]] = {
    RELATIONS: (get_relations, set_relations),
    PAIRS: (get_pairs, set_pairs),
    QUESTIONS: (get_questions, set_questions),
    QUERIES: (get_queries, set_queries),
    KNOWLEDGE: (_knowledge, set_knowledge),
    "luke_candidates_given": (_candidates_given, set_candidates_given),
    SECOND: (get_second, set_second),
    SCOPE: (get_scope_table, set_scope_table),
    ANSWERS: (get_answers, None),
    FILLERS: (get_fillers, None),
    "luke_rows": (get_all_rows, set_all_rows),
}
