"""Gold spans of examples: as classes of candidate spans, why some can never be predicted, and names of their scores."""

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span
from spacy.training import Example

from ...annotations import ENTITIES, LabelledSpan, Scope, get_gold_entities, get_scope
from ...batch.allowed import ANY, AllowedClasses
from ...batch.windows import Document, Spans, WindowPlan, place_spans
from ...bridge.documents import cores_of_doc
from ..labelled import LabelSurvey
from ..taught import TaughtPlaces

Place = tuple[int, int]  # words [start, end)
_CORRECT = "Correct the data."
_FEW_ATTACHED = 0.01  # of the gold spans; of well divided data sets 0 to 0.006, such as "Lloyd's", of CoNLL04 0.03


@dataclass(frozen=True)
class SpanGold:
    """What the spans of an example may be, in words of the predicted Doc, by numbers of `allowed`: a class, from 0 for
    none; -1 for any; below that one of some.

    classes: of the gold spans; rest: of all others. nested: whether spans that share words with gold spans are as the
    rest; otherwise they may be anything but what these gold spans may be. unknown_W: prefix sums (W + 1,) of words
    without annotation, whose spans may be anything; None where there are none. taught: what another pipeline says, in
    the place of all this.
    """

    allowed: AllowedClasses
    classes: dict[Place, int]
    rest: int = 0
    nested: bool = True
    unknown_W: NDArray[np.int64] | None = None
    taught: TaughtPlaces | None = None


class ScoredGold(NamedTuple):
    """What an example is scored by: gold spans in words of the predicted Doc, with the labels that the Doc has, be they
    known or not. scope: what these mean. total: how many are to be found, with those that cannot be predicted."""

    spans: frozenset[LabelledSpan]
    scope: Scope
    total: int


class Obstacle(NamedTuple):
    """Why gold spans can never be predicted, in words that follow "gold spans"; and what to do about it."""

    reason: str
    advice: str = _CORRECT


@dataclass
class SpanSurvey(LabelSurvey):
    """Gold spans, of which one may have several labels that it may be; and how many spans are candidates, are encoded,
    and are gold. attached: gold spans that begin or end with a word to which punctuation is attached; steps: what to do
    about those that are missing."""

    attached: Counter[str] = field(default_factory=Counter)
    steps: dict[str, None] = field(default_factory=dict)
    candidates: int = 0
    encoded: int = 0
    gold: int = 0

    @property
    def advice(self) -> str:
        return " ".join(self.steps)

    def add_missing(self, obstacle: Obstacle, times: int = 1) -> None:
        if times:
            self.missing[obstacle.reason] += times
            self.steps[obstacle.advice] = None

    def count_gold(self, example: Example, spans: Sequence[Span]) -> list[Span]:
        """Count the gold spans of an example. RETURNS: those that are spans of the predicted Doc, too."""
        scope = get_scope(example.reference, ENTITIES)
        named = [label for span in spans for label in sorted(scope.named(span.label_))]
        self.seen.update(named)
        self.total += len(named)
        self.gold += len(spans)
        aligned: list[Span] = example.get_aligned_spans_y2x(spans, allow_overlap=True)
        self.add_missing(Obstacle("do not fall on word boundaries"), len(spans) - len(aligned))
        doubled = len({(x.start, x.end, x.label) for x in aligned}) - len({(x.start, x.end) for x in aligned})
        self.add_missing(Obstacle("have the words of another one with another label"), doubled)
        return aligned

    def count_attached(self, doc: Doc, spans: Sequence[Span]) -> None:
        """spans: gold ones of the Doc."""
        cores = cores_of_doc(doc)
        self.attached.update(x.text for x in spans if x.start in cores or x.end - 1 in cores)

    def warn_attached(self, name: str) -> None:
        """Say so where these are more than single ones, as in texts that blanks divide."""
        found = self.attached.total()
        if found > max(2, _FEW_ATTACHED * self.gold):
            warnings.warn(
                f"'{name}': {found} of {self.gold} gold spans of the training data begin or end with a word to which "
                f"punctuation is attached, such as {next(iter(self.attached))[:80]!r}. Encoders do not see where such "
                "a name ends: set punctuation_apart = true, and they read it as in other texts.",
                stacklevel=3,
            )

    def shares(self) -> tuple[float, float]:
        """Shares of gold spans among the encoded spans and among the candidates, within (0, 1)."""
        gold = self.gold + 1
        return gold / (max(self.encoded, gold) + gold), gold / (max(self.candidates, gold) + gold)


def read_gold_spans(
    example: Example,
    labels: Sequence[str],
    allowed: AllowedClasses,
    *,
    spans_key: str | None,
    unknown_label: Callable[[str], ValueError],
) -> SpanGold | None:
    """What is gold of an example; None where nothing is. labels: the classes from 1; unknown_label: what is raised for
    another one. spans_key: see `get_gold_entities`."""
    found = get_gold_entities(example.reference, spans_key)
    if found is None:
        return None
    spans, scope, in_group = found
    number = {label: i + 1 for i, label in enumerate(labels)}
    gold: dict[Place, int] = {}
    for span in example.get_aligned_spans_y2x(spans, allow_overlap=True):
        if unknown := sorted(scope.named(span.label_) - set(labels)):
            raise unknown_label(f"the label {unknown[0]!r} of {span.text!r}")
        meaning = scope.meaning(span.label_)
        gold[span.start, span.end] = (
            ANY if meaning is None else allowed.number(number[label] if label else 0 for label in meaning)
        )
    rest = {0, *(number[label] for label in labels if not scope.is_annotated(label))}
    unknown_W = None if in_group else _unknown_words(example)
    nested = scope.nested or spans_key is None  # what doc.ents holds is never nested
    return SpanGold(allowed, gold, allowed.number(rest), nested, unknown_W)


def taught_gold(allowed: AllowedClasses, taught: TaughtPlaces) -> SpanGold:
    """Of an example that says what another pipeline thinks: nothing but that."""
    return SpanGold(allowed, {}, ANY, taught=taught)


def read_scored_spans(example: Example, *, spans_key: str | None) -> ScoredGold | None:
    """None where nothing of the Doc is annotated. spans_key: see `get_gold_entities`."""
    found = get_gold_entities(example.reference, spans_key)
    if found is None:
        return None
    spans, scope, _ = found
    aligned = example.get_aligned_spans_y2x(spans, allow_overlap=True)
    own = frozenset((span.start, span.end, span.label_) for span in aligned)
    return ScoredGold(
        own, scope, len({(x.start, x.end, scope.missed_as(x.label_)) for x in spans if scope.is_scored(x.label_)})
    )


def _unknown_words(example: Example) -> NDArray[np.int64] | None:
    """Prefix sums of words without annotation, (W + 1,); None where there is none."""
    unknown_W = [value in (None, 0) for value in example.get_aligned("ENT_IOB")]
    return np.cumsum([False, *unknown_W]) if any(unknown_W) else None


def gold_classes(spans: Spans, gold: SpanGold) -> NDArray[np.int64]:
    """What each candidate may be, (E,), by the numbers of `gold`."""
    classes = np.full(len(spans), gold.rest, dtype=np.int64)
    if not gold.nested:
        _open_overlapping(spans, gold, classes)
    if gold.unknown_W is not None:
        classes[gold.unknown_W[spans.end_E] > gold.unknown_W[spans.start_E]] = ANY
    found_G = _find(spans, list(gold.classes))
    for i, value in zip(found_G.tolist(), gold.classes.values(), strict=True):
        if i >= 0:
            classes[i] = value
    return classes


def taught_rows(spans: Spans, taught: TaughtPlaces) -> NDArray[np.float32]:
    """What each candidate is by what is taught, (E, L): none where nothing is said of it."""
    rows_EL = np.zeros((len(spans), taught.probability_PL.shape[1]), dtype=np.float32)
    rows_EL[:, 0] = 1
    found_P = _find(spans, [(start, end) for start, end in taught.places])
    rows_EL[found_P[found_P >= 0]] = taught.probability_PL[found_P >= 0]
    return rows_EL


def _find(spans: Spans, places: Sequence[Place]) -> NDArray[np.int64]:
    """Which candidates have these words, -1 where none has: (G,)."""
    places_G2 = np.array(places, dtype=np.int64).reshape(-1, 2)
    width = int(max(spans.end_E.max(initial=0), places_G2[:, 1].max(initial=0))) + 1
    keys = spans.start_E * width + spans.end_E  # ascending: spans are ordered by first and last word
    wanted_G = places_G2 @ np.array([width, 1])
    i_G = np.searchsorted(keys, wanted_G)
    found_G = (i_G < len(keys)) & (places_G2[:, 0] < places_G2[:, 1])
    found_G[found_G] = keys[i_G[found_G]] == wanted_G[found_G]
    return np.where(found_G, i_G, -1)


def _open_overlapping(spans: Spans, gold: SpanGold, classes: NDArray[np.int64]) -> None:
    """Spans that share words with gold ones may be anything but what these may be, none apart."""
    allowed = gold.allowed
    possible_EL = np.ones((len(spans), allowed.n_classes), dtype=bool)
    shared_E = np.zeros(len(spans), dtype=bool)
    for (start, end), value in gold.classes.items():
        own = np.flatnonzero((spans.start_E < end) & (spans.end_E > start))
        shared_E[own] = True
        for label in sorted(allowed.classes(value) - {0}) if value != ANY else ():
            possible_EL[own, label] = False
    if shared_E.any():
        rows_SL, row_E = np.unique(possible_EL[shared_E], axis=0, return_inverse=True)
        numbers = np.array([allowed.number(np.flatnonzero(row_L).tolist()) for row_L in rows_SL])
        classes[shared_E] = numbers[row_E.reshape(-1)]


def obstacles(
    document: Document, windows: WindowPlan, spans: Sequence[Span], *, max_pieces: int | None, max_words: int | None
) -> Iterator[Obstacle]:
    """Why spans are not among the candidates; nothing for those that are."""
    pieces = document.pieces
    for span in spans:
        a, b = span.start, span.end - 1
        if not (document.bounds_W[a] and document.bounds_W[b]):
            yield Obstacle("begin or end with a blank")
        elif document.sentence_W[a] != document.sentence_W[b]:
            yield Obstacle("cross a sentence boundary", "Correct the data, or what finds the sentences.")
        elif not document.bounds.enumerates(a, b):
            yield Obstacle(
                "begin or end inside a piece of the encoder",
                "Take another encoder, whose pieces are smaller, or a tokenizer of the pipeline whose words are those "
                "of the encoder.",
            )
        elif max_words is not None and span.end - span.start > max_words:
            yield Obstacle(f"have more than max_span_words = {max_words} words", "Raise max_span_words.")
        elif max_pieces is not None and pieces.core_last_W[b] - pieces.core_first_W[a] > max_pieces:
            yield Obstacle(f"have more than max_span_pieces = {max_pieces} pieces", "Raise max_span_pieces.")
        elif len(place_spans(document, windows, np.array([a]), np.array([b + 1]))[1]):
            yield Obstacle("do not fit into a window", "Raise max_window, or correct the data.")


def crossing_message(doc: Doc, document: Document, spans: Collection[Place]) -> str | None:
    """What is said of gold spans in two sentences, which a component before has found since the gold was counted."""
    crossing = [(a, b) for a, b in spans if document.sentence_W[a] != document.sentence_W[b - 1]]
    if not crossing:
        return None
    a, b = crossing[0]
    return (
        f"{len(crossing)} of {len(spans)} gold spans of a Doc lie in two sentences and are not learned; the first is "
        f"{doc[a:b].text[:80]!r}. Correct the data, or the component that finds the sentences."
    )


def with_default_names(scores: dict[str, Any], examples: Sequence[Example], *, spans_key: str) -> dict[str, Any]:
    """A group's scores, as ents_... too where nothing has written doc.ents: spaCy takes default score weights by the
    factory, whatever its settings, so that `spacy train` without weights of its own would have no score to follow."""
    if any(len(x.predicted) and x.predicted.has_annotation("ENT_IOB") for x in examples):
        return scores
    group = f"spans_{spans_key}_"
    return {**{f"ents_{x[len(group) :]}": value for x, value in scores.items() if x.startswith(group)}, **scores}
