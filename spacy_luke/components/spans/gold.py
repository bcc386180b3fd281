"""Gold spans of examples: as classes of candidate spans, why some can never be predicted, and names of their scores."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span
from spacy.training import Example

from ...batch.windows import Document, Spans, WindowPlan, place_spans


@dataclass
class SpanSurvey:
    """What the training data hold: gold spans by label, those that can never be predicted by the reason, and how many
    spans are candidates and how many of them are encoded."""

    labels: Counter[str] = field(default_factory=Counter)
    unreachable: Counter[str] = field(default_factory=Counter)
    candidates: int = 0
    encoded: int = 0

    def count_gold(self, example: Example, spans: Sequence[Span]) -> list[Span]:
        """Count the gold spans of an example. RETURNS: those that are spans of the predicted Doc, too."""
        self.labels.update(span.label_ for span in spans)
        aligned: list[Span] = example.get_aligned_spans_y2x(spans, allow_overlap=True)
        if len(aligned) < len(spans):
            self.unreachable["do not fall on word boundaries"] += len(spans) - len(aligned)
        doubled = len({(x.start, x.end, x.label) for x in aligned}) - len({(x.start, x.end) for x in aligned})
        if doubled:
            self.unreachable["have the words of another one with another label"] += doubled
        return aligned

    def shares(self) -> tuple[float, float]:
        """Shares of gold spans among the encoded spans and among the candidates, within (0, 1)."""
        gold = self.labels.total() + 1
        return gold / (max(self.encoded, gold) + gold), gold / (max(self.candidates, gold) + gold)


def read_gold_spans(
    example: Example, classes: dict[str, int], *, spans_key: str | None, name: str
) -> dict[tuple[int, int], int] | None:
    """Class of each gold span in the words of the predicted Doc, and (i, i): -1 for each word i without annotation;
    None where the whole Doc has none. Raises ValueError for a label that is not in `classes`; name: the component's."""
    reference = example.reference
    if spans_key is None:
        if not reference.has_annotation("ENT_IOB"):
            return None
        spans = list(reference.ents)
    else:
        if spans_key not in reference.spans:
            return None
        spans = list(reference.spans[spans_key])
    gold: dict[tuple[int, int], int] = {}
    for span in example.get_aligned_spans_y2x(spans, allow_overlap=True):
        if span.label_ not in classes:
            raise ValueError(
                f"'{name}' does not know the label {span.label_!r} of {span.text!r}; it was initialised with "
                f"{sorted(classes)}. Add it to [initialize.components.{name}.labels], call add_label, or "
                "initialise with data that holds it."
            )
        gold[span.start, span.end] = classes[span.label_]
    if spans_key is None:
        for i, value in enumerate(example.get_aligned("ENT_IOB")):
            if value in (None, 0):
                gold[i, i] = -1
    return gold


def unknown_words(gold: dict[tuple[int, int], int], n_words: int) -> np.ndarray | None:
    """Prefix sums of words without annotation, (W + 1,), or None where there is none."""
    unknown = [start for (start, end), label in gold.items() if start == end and label == -1]
    if not unknown:
        return None
    marks = np.zeros(n_words + 1, dtype=np.int64)
    marks[np.array(unknown) + 1] = 1
    return np.cumsum(marks)


def gold_classes(spans: Spans, gold: dict[tuple[int, int], int], unknown_W: np.ndarray | None) -> np.ndarray:
    """Class of each candidate: the gold span's, 0 for none, -1 where a word of it has no annotation."""
    classes = np.zeros(len(spans), dtype=np.int64)
    if unknown_W is not None:
        classes[unknown_W[spans.end_E] > unknown_W[spans.start_E]] = -1
    width = int(max(spans.end_E.max(initial=0), max((end for _, end in gold), default=0))) + 1
    keys = spans.start_E * width + spans.end_E  # ascending: spans are ordered by first and last word
    for (start, end), label in gold.items():
        i = int(np.searchsorted(keys, start * width + end))
        if start < end and i < len(keys) and keys[i] == start * width + end:
            classes[i] = label
    return classes


def obstacles(
    document: Document, windows: WindowPlan, spans: Sequence[Span], *, max_pieces: int | None, max_words: int | None
) -> Iterator[str]:
    """Why spans are not among the candidates, in words that follow "gold spans"; nothing for those that are."""
    pieces = document.pieces
    for span in spans:
        a, b = span.start, span.end - 1
        if not (document.bounds_W[a] and document.bounds_W[b]):
            yield "begin or end with a blank"
        elif document.sentence_W[a] != document.sentence_W[b]:
            yield "cross a sentence boundary"
        elif max_words is not None and span.end - span.start > max_words:
            yield f"have more than max_span_words = {max_words} words"
        elif max_pieces is not None and pieces.last_W[b] - pieces.first_W[a] > max_pieces:
            yield f"have more than max_span_pieces = {max_pieces} pieces"
        elif len(place_spans(document, windows, np.array([a]), np.array([b + 1]))[1]):
            yield "do not fit into a window"


def crossing_message(doc: Doc, document: Document, gold: dict[tuple[int, int], int]) -> str | None:
    """What is said of gold spans in two sentences, which a component before has found since the gold was counted."""
    spans = [place for place, label in gold.items() if label > 0]
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
