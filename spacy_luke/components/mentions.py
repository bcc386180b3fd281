"""Which spans of a Doc a component is asked about, and which pairs of them: functions that configs name.

M mentions, P pairs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ENT_IOB, ENT_TYPE
from spacy.tokens import Doc, Span
from spacy.util import registry

from ..annotations import get_knowledge

WordRange = tuple[int, int]  # words [start, end) of a Doc
_AT_ONCE = 1 << 20  # pairs that are looked at, about


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
        """RETURNS: indices of mentions (P, 2), ordered by head, then tail.

        Time and memory grow with the number of pairs that the sentences and max_words allow, whatever their labels.
        """
        n = len(mentions)
        if n < 2:
            return np.empty((0, 2), dtype=np.int64)
        order_M = np.argsort([span.start for span in mentions], kind="stable")
        ordered = [mentions[i] for i in order_M.tolist()]
        start_M, end_M = np.array([(span.start, span.end) for span in ordered]).T
        # A mention can be with those behind it in this order up to `stop`, if they are whole.
        stop_M, whole_M = np.full(n, n), np.ones(n, dtype=np.bool_)
        if self.max_words is not None:  # words between the two
            stop_M = np.searchsorted(start_M, end_M + min(self.max_words, len(doc)), side="right")
        if self.same_sentence:
            sentence_W = np.cumsum([bool(word.is_sent_start) for word in doc])
            first_M, last_M = sentence_W[start_M], sentence_W[end_M - 1]
            whole_M = first_M == last_M
            stop_M = np.where(whole_M, np.minimum(stop_M, np.searchsorted(first_M, first_M, side="right")), 0)
        label_M, allowed_LL = self._labels(ordered)
        keys = []
        for first_P, second_P in _runs(stop_M):
            fits_P = (start_M[first_P] != start_M[second_P]) | (end_M[first_P] != end_M[second_P])
            fits_P &= whole_M[second_P]
            for head_P, tail_P in ((first_P, second_P), (second_P, first_P)):
                kept_P = fits_P & allowed_LL[label_M[head_P], label_M[tail_P]]
                keys.append(order_M[head_P[kept_P]] * n + order_M[tail_P[kept_P]])
        key_P = np.concatenate([np.empty(0, dtype=np.int64), *keys])
        key_P.sort()
        pairs_P2 = np.empty((len(key_P), 2), dtype=np.int64)
        np.divmod(key_P, n, out=(pairs_P2[:, 0], pairs_P2[:, 1]))
        return pairs_P2

    def _labels(self, mentions: Sequence[Span]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Numbers of the mentions' labels (M,), and which may be head and tail (L, L)."""
        if self.types is None:
            return np.zeros(len(mentions), dtype=np.int64), np.ones((1, 1), dtype=np.bool_)
        numbers: dict[str, int] = {}
        label_M = np.array([numbers.setdefault(span.label_, len(numbers)) for span in mentions])
        allowed_LL = np.zeros((len(numbers), len(numbers)), dtype=np.bool_)
        for head, tail in self.types:
            if head in numbers and tail in numbers:
                allowed_LL[numbers[head], numbers[tail]] = True
        return label_M, allowed_LL


def _runs(stop_M: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Each number m with each of those behind it and before stop_M[m], as two arrays (P,), some at a time."""
    size_M = np.maximum(stop_M - np.arange(1, len(stop_M) + 1), 0)
    before_M = np.cumsum(size_M) - size_M
    edges = np.flatnonzero(np.diff(before_M // _AT_ONCE, prepend=-1)).tolist()
    for a, b in pairwise([*edges, len(stop_M)]):
        first_P = np.repeat(np.arange(a, b), size_M[a:b])
        yield first_P, np.arange(len(first_P)) - (before_M[first_P] - before_M[a]) + first_P + 1


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
