"""The pairs of mentions that `luke_relation` is asked about, and what is gold of them."""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from spacy.tokens import Doc, Span
from spacy.training import Example

from ...annotations import get_pair_rows, get_relation_rows, gold_words_finder
from ..mentions import MentionGetter, PairSuggester, WordRange
from .asked import Gold, Units


def given_pairs(doc: Doc, given: Sequence[tuple[Span, Span]], *, name: str) -> Units:
    """The pairs of `doc._.luke_pairs`; warns of those of a mention with itself, which are none. name: of the
    component."""
    pairs = [((head.start, head.end), (tail.start, tail.end)) for head, tail in given]
    if same := [head for head, tail in pairs if head == tail]:
        warnings.warn(
            f"'{name}': {len(same)} of {len(pairs)} given pairs have no relation, as head and tail are the same words; "
            f"the first is {doc[same[0][0] : same[0][1]].text[:60]!r}.",
            stacklevel=4,
        )
    return Units.given(pairs)


def suggested_pairs(doc: Doc, spans: Iterable[Span], suggester: PairSuggester, *, name: str) -> Units:
    """Pairs of a Doc's spans, each extent once, with the first of its labels. Raises ValueError for what is no such
    pair. name: of the component."""
    own: dict[WordRange, Span] = {}
    for span in spans:
        if span.end > span.start:
            own.setdefault((span.start, span.end), span)
    mentions = list(own.values())
    pairs_P2 = np.asarray(suggester(doc, mentions), dtype=np.int64).reshape(-1, 2)
    if len(pairs_P2) and not (0 <= pairs_P2.min() and pairs_P2.max() < len(mentions)):
        raise ValueError(
            f"The suggester of '{name}' must give indices of the Doc's {len(mentions)} mentions, but it gave "
            f"{int(pairs_P2.max())} and {int(pairs_P2.min())} among others."
        )
    if (same := pairs_P2[:, 0] == pairs_P2[:, 1]).any():
        text = mentions[int(pairs_P2[same][0, 0])].text
        raise ValueError(
            f"The suggester of '{name}' paired a mention with itself, {text!r}: head and tail must differ."
        )
    return Units(list(own), pairs_P2)


def training_pairs(example: Example, getter: MentionGetter, suggester: PairSuggester, *, name: str) -> Units:
    """Those of the reference, given or of its mentions, in words of the predicted Doc."""
    reference, doc, find = example.reference, example.predicted, gold_words_finder(example)
    if (given := get_pair_rows(reference)) is not None:
        places = [(find(a, b), find(c, d)) for a, b, c, d in given]
        return Units.given([(head, tail) for head, tail in places if head and tail])
    spans: dict[WordRange, Span] = {}
    for span in getter(reference):
        if (place := find(span.start_char, span.end_char)) is not None:
            spans.setdefault(place, Span(doc, *place, label=span.label_))
    return suggested_pairs(doc, spans.values(), suggester, name=name)


def gold_relations(example: Example, asked: Units, *, none: str | None, multi_label: bool) -> Gold:
    """The gold labels of those pairs that have some."""
    reference, find = example.reference, gold_words_finder(example)
    number = asked.numbers()
    missing: Counter[str] = Counter()
    given = get_pair_rows(reference) is not None
    relations: dict[int, list[str]] = {}
    for a, b, c, d, label, _ in get_relation_rows(reference) or []:
        if none is not None and label == none:
            continue
        head, tail = find(a, b), find(c, d)
        if head is None or tail is None:
            missing["have a head or tail that does not fall on word boundaries"] += 1
        elif head == tail:
            missing["have a head that is their tail"] += 1
        elif (head, tail) not in number:
            missing[_absence(head, tail, asked, given=given)] += 1
        else:
            labels = relations.setdefault(number[head, tail], [])
            if label in labels:
                continue
            if labels and not multi_label:
                missing["have a pair with another label (set multi_label)"] += 1
                continue
            labels.append(label)
    return Gold(asked, relations, missing)


def _absence(head: WordRange, tail: WordRange, asked: Units, *, given: bool) -> str:
    if given:
        return "are not among the given pairs"
    if head in asked.mentions and tail in asked.mentions:
        return "are not proposed by the suggester"
    return "have a head or tail that is no mention"
