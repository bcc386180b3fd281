"""The pairs of mentions that `luke_relation` is asked about, and what is gold of them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from spacy.tokens import Doc, Span
from spacy.training import Example

from ...annotations import get_pair_rows, get_relation_rows
from ..mentions import Mention, MentionGetter, PairSuggester, align_mention


@dataclass(frozen=True)
class Pairs:
    """What is asked about a Doc: mentions as words [start, end), and pairs (P, 2) of them as (head, tail)."""

    mentions: list[Mention]
    pairs_P2: np.ndarray

    @classmethod
    def given(cls, pairs: Sequence[tuple[Mention, Mention]]) -> "Pairs":
        """Pairs that are given, each once and without those of a mention with itself."""
        mentions = list(dict.fromkeys(mention for pair in pairs for mention in pair))
        number = {mention: m for m, mention in enumerate(mentions)}
        pairs = [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]
        pairs_P2 = np.array([[number[head], number[tail]] for head, tail in pairs], dtype=np.int64).reshape(-1, 2)
        return cls(mentions, pairs_P2)

    @classmethod
    def suggested(cls, doc: Doc, spans: Iterable[Span], suggest: PairSuggester) -> "Pairs":
        """Pairs of spans, each extent once, that `suggest` gives by their numbers."""
        own = {(span.start, span.end): span for span in spans if span.end > span.start}
        return cls(list(own), suggest(doc, list(own.values())))

    def numbers(self) -> dict[tuple[Mention, Mention], int]:
        """The place of each pair."""
        return {(self.mentions[a], self.mentions[b]): p for p, (a, b) in enumerate(self.pairs_P2.tolist())}


def training_pairs(example: Example, getter: MentionGetter, suggest: PairSuggester) -> Pairs:
    """Those of the reference, given or of its mentions, in words of the predicted Doc."""
    reference, doc = example.reference, example.predicted
    if (given := get_pair_rows(reference)) is not None:
        places = [(align_mention(doc, a, b), align_mention(doc, c, d)) for a, b, c, d in given]
        return Pairs.given([(head, tail) for head, tail in places if head and tail])
    spans: dict[Mention, Span] = {}
    for span in getter(reference):
        if (place := align_mention(doc, span.start_char, span.end_char)) is not None:
            spans.setdefault(place, Span(doc, *place, label=span.label_))
    return Pairs.suggested(doc, spans.values(), suggest)


def gold_relations(
    example: Example, asked: Pairs, *, none: str | None, multi_label: bool
) -> tuple[dict[int, list[str]], Counter[str]]:
    """Gold labels of pairs by their numbers, and why other gold relations have no number."""
    reference, doc = example.reference, example.predicted
    number = asked.numbers()
    missing: Counter[str] = Counter()
    given = get_pair_rows(reference) is not None
    relations: dict[int, list[str]] = {}
    for a, b, c, d, label, _ in get_relation_rows(reference) or []:
        if none is not None and label == none:
            continue
        head, tail = align_mention(doc, a, b), align_mention(doc, c, d)
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
    return relations, missing


def _absence(head: Mention, tail: Mention, asked: Pairs, *, given: bool) -> str:
    if given:
        return "are not among the given pairs"
    if head in asked.mentions and tail in asked.mentions:
        return "are not proposed by the suggester"
    return "have a head or tail that is no mention"
