"""The extensions `doc._.luke_...` and `span._.luke_...`: what users read and write.

What they give is made anew each time: to change it, write it back.
"""

import warnings
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
from .span_values import get_types, set_types

_Extension = dict[str, Any]  # what spaCy's set_extension takes


def register_extensions() -> None:
    """Make `doc._.luke_relations`, `luke_pairs`, `luke_questions`, `luke_queries`, `luke_knowledge`,
    `luke_candidates_given`, `luke_second`, `luke_scope`, `luke_answers`, `luke_fillers`, `luke_rows` and
    `span._.luke_score`, `span._.luke_types`, `span._.luke_candidates`, `span._.luke_evidence`,
    `span._.luke_entity` known to spaCy, as importing `spacy_luke.annotations` does; of those that others have set under
    these names, which stay, it warns."""
    others = []
    for kind, extensions in ((Doc, _OF_DOCS), (Span, _OF_SPANS)):
        for name, ours in extensions.items():
            if not kind.has_extension(name):
                kind.set_extension(name, **ours)
            elif not _is_ours(kind.get_extension(name), ours):
                others.append((kind.__name__, name))
    if others:
        names = ", ".join(f"{kind.lower()}._.{name}" for kind, name in others)
        first, name = others[0]
        warnings.warn(
            f"Other code has set {names} before spacy_luke was loaded, which hides what spacy_luke finds: its values "
            f"are not those of our components. Take that {first}.set_extension({name!r}, ...) out, give it another "
            f"name, or call {first}.remove_extension({name!r}) before; spacy_luke sets these itself.",
            stacklevel=2,
        )


def _is_ours(known: tuple[Any, ...], ours: _Extension) -> bool:
    """Whether an extension does what ours does, also one of this package that was imported before. known: default,
    method, getter, setter."""
    functions = (None, ours.get("getter"), ours.get("setter"))
    return known[0] is None and all(_place(a) == _place(b) for a, b in zip(known[1:], functions, strict=True))


def _place(function: Any) -> tuple[Any, Any]:
    return getattr(function, "__module__", None), getattr(function, "__qualname__", function)


def _knowledge(doc: Doc) -> list[Any]:
    """[start, end, id, score] of each given entity."""
    return get_rows(doc, KNOWLEDGE) or []


def _candidates_given(doc: Doc) -> list[Any] | None:
    """[start, end, [[id, prior], ...]] of each mention with given candidates; None where none are given."""
    return get_rows(doc, GIVEN_CANDIDATES)


_OF_DOCS: dict[str, _Extension] = {
    RELATIONS: {"getter": get_relations, "setter": set_relations},
    PAIRS: {"getter": get_pairs, "setter": set_pairs},
    QUESTIONS: {"getter": get_questions, "setter": set_questions},
    QUERIES: {"getter": get_queries, "setter": set_queries},
    KNOWLEDGE: {"getter": _knowledge, "setter": set_knowledge},
    "luke_candidates_given": {"getter": _candidates_given, "setter": set_candidates_given},
    SECOND: {"getter": get_second, "setter": set_second},
    SCOPE: {"getter": get_scope_table, "setter": set_scope_table},
    ANSWERS: {"getter": get_answers},
    FILLERS: {"getter": get_fillers},
    "luke_rows": {"getter": get_all_rows, "setter": set_all_rows},
}
_OF_SPANS: dict[str, _Extension] = {
    SCORE: {"default": None},
    SPAN_TYPES: {"getter": get_types, "setter": set_types},
    CANDIDATES: {"getter": get_candidates},
    LINK_EVIDENCE: {"getter": get_evidence},
    ENTITY: {"getter": get_entity},
}
