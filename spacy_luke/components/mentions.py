"""Which spans of a Doc a component is asked about, and which pairs of them: functions that configs name.

M mentions, P pairs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ENT_IOB, ENT_TYPE
from spacy.tokens import Doc, Span
from spacy.util import registry

from ..annotations import get_knowledge

WordRange = tuple[int, int]  # words [start, end) of a Doc


@runtime_checkable
class MentionGetter(Protocol):
    """Gives the mentions of a Doc that a component is asked about."""

    def __call__(self, doc: Doc, /) -> Iterable[Span]: ...


@runtime_checkable
class PairSuggester(Protocol):
    """Gives the pairs (P, 2) of a Doc's mentions that are related, as numbers of (head, tail)."""

    def __call__(self, doc: Doc, mentions: Sequence[Span], /) -> NDArray[np.int64]: ...


@dataclass(frozen=True)
class DocEnts:
    """doc.ents."""

    def __call__(self, doc: Doc) -> list[Span]:
        return list(doc.ents)


@dataclass(frozen=True)
class SpanGroupGetter:
    """doc.spans[key], nothing where there is no such group."""

    key: str

    def __call__(self, doc: Doc) -> list[Span]:
        return list(doc.spans[self.key]) if self.key in doc.spans else []


@dataclass(frozen=True)
class GivenSpans:
    """doc._.luke_knowledge as spans, each grown to whole words, with the entity as `kb_id_`."""

    def __call__(self, doc: Doc) -> list[Span]:
        found = (doc.char_span(a, b, kb_id=id, alignment_mode="expand") for a, b, id, _ in get_knowledge(doc))
        return [span for span in found if span is not None]


@dataclass(frozen=True)
class Pairs:
    """Ordered pairs of mentions with different words, as (head, tail)."""

    same_sentence: bool
    max_words: int | None
    types: list[list[str]] | None

    def __call__(self, doc: Doc, mentions: Sequence[Span]) -> NDArray[np.int64]:
        """RETURNS: indices of mentions (P, 2), ordered by head, then tail."""
        if len(mentions) < 2:
            return np.empty((0, 2), dtype=np.int64)
        start_M = np.array([span.start for span in mentions])
        end_M = np.array([span.end for span in mentions])
        allowed_MM = (start_M[:, None] != start_M) | (end_M[:, None] != end_M)
        if self.same_sentence:
            begins_W = np.array([bool(word.is_sent_start) for word in doc])
            sentence_W = np.cumsum(begins_W)
            first_M, last_M = sentence_W[start_M], sentence_W[end_M - 1]
            allowed_MM &= (first_M[:, None] == first_M) & (last_M[:, None] == last_M) & (first_M == last_M)
        if self.max_words is not None:  # words between the two
            gap_MM = np.maximum(start_M[:, None] - end_M, start_M - end_M[:, None])
            allowed_MM &= gap_MM <= self.max_words
        if self.types is not None:
            labels = [span.label_ for span in mentions]
            known = {(head, tail) for head, tail in self.types}
            allowed_MM &= np.array([[(head, tail) in known for tail in labels] for head in labels])
        return np.argwhere(allowed_MM)


@registry.misc("spacy-luke.doc_ents.v1")
def make_doc_ents_getter() -> MentionGetter:
    """The mentions are doc.ents."""
    return DocEnts()


@registry.misc("spacy-luke.span_group.v1")
def make_span_group_getter(key: str) -> MentionGetter:
    """The mentions are doc.spans[key].

    key: name of the span group.
    """
    return SpanGroupGetter(key)


@registry.misc("spacy-luke.given_spans.v1")
def make_given_spans_getter() -> MentionGetter:
    """The entities of doc._.luke_knowledge, as data sets give them: those that SQuAD's passages get from the names of
    their pages."""
    return GivenSpans()


@registry.misc("spacy-luke.pairs.v1")
def make_pairs(
    same_sentence: bool = False, max_words: int | None = None, types: list[list[str]] | None = None
) -> PairSuggester:
    """All ordered pairs of a Doc's mentions.

    same_sentence: only pairs inside one sentence. max_words: most words between the two. types: the allowed labels as
    [head, tail], such as [["PER", "ORG"], ["PER", "LOC"]]; null: any.
    """
    if max_words is not None and max_words < 0:
        raise ValueError(f"max_words must be 0 or more, or null, but it is {max_words}.")
    if types is not None and any(len(pair) != 2 for pair in types):
        raise ValueError(f"types must be a list of [head label, tail label], but it is {types!r}.")
    return Pairs(same_sentence, max_words, types)


def blocked_words(doc: Doc) -> NDArray[np.bool_]:
    """Whether each word (W,) was said to be in no entity, by `doc.set_ents(..., blocked=...)`."""
    table_WA = doc.to_array([ENT_IOB, ENT_TYPE]).reshape(-1, 2)
    return np.asarray((table_WA[:, 0] == 3) & (table_WA[:, 1] == 0), dtype=np.bool_)


def write_entities(doc: Doc, entities: Sequence[Span]) -> None:
    """Set doc.ents, which have no blocked words. As with spaCy's own components these stay blocked, and all other words
    are outside of entities then."""
    blocked = [doc[i : i + 1] for i in np.flatnonzero(blocked_words(doc)).tolist()]
    doc.set_ents(list(entities), blocked=blocked, default="outside")


def rewrite_spans(
    doc: Doc,
    *,
    key: str | None,
    labels: Mapping[WordRange, str] = MappingProxyType({}),
    ids: Mapping[WordRange, str] = MappingProxyType({}),
) -> None:
    """New Spans with these labels and ids in doc.spans[key], or in doc.ents where there is no key; what none is given
    for keeps its own."""
    spans = []
    for old in doc.ents if key is None else doc.spans.get(key, []):
        place = (old.start, old.end)
        label, kb_id = labels.get(place, old.label_), ids.get(place, old.kb_id_)
        spans.append(Span(doc, *place, label=label, kb_id=kb_id, span_id=old.id))
    if key is None:
        doc.set_ents(spans, default="unmodified")
        return
    for i, span in enumerate(spans):
        doc.spans[key][i] = span
