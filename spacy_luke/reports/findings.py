"""What a report shows of a component besides its scores: confusion, thresholds, lengths, frequencies, examples."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from spacy.tokens import Doc

from ..scorers.items import Places, ScoredItem

_NOTHING = ""  # the label of what is not there
_LEAST_FOUND = 5
_POINTS = 50  # of a curve
_MOST_LABELS = 12  # of a confusion
_MOST_EXAMPLES = 15
_AROUND = 70  # characters before and after an example


class Point(NamedTuple):
    """threshold: least score of what is shown."""

    threshold: float
    precision: float
    recall: float


class ItemGroup(NamedTuple):
    """Items of one length or frequency. precision of those found, recall of the gold; None where there are none."""

    name: str
    gold: int
    found: int
    precision: float | None
    recall: float | None


class ShownExample(NamedTuple):
    """An error. parts: text, and whether it is (a part of) the item; asked: the question, where it is one."""

    said: str
    truth: str
    score: float | None
    parts: list[tuple[str, bool]]
    asked: str = ""


class Confusion(NamedTuple):
    """counts[i][j]: how often what is labels[i] is called labels[j]; the last label is NOTHING."""

    labels: list[str]
    counts: list[list[int]]


def confusion_of(items: Sequence[ScoredItem]) -> Confusion:
    """By places: what is gold there against what is found. Where several labels are, equal ones go together, and the
    others are taken in the order of their names; the rarest labels are left out above MOST_LABELS."""
    places: dict[tuple[int, Places], tuple[list[str], list[str]]] = {}
    for item in items:
        gold, found = places.setdefault((item.doc, item.places), ([], []))
        gold += [item.label] if item.gold else []
        found += [item.label] if item.found else []
    pairs: Counter[tuple[str, str]] = Counter()
    for gold, found in places.values():
        same = set(gold) & set(found)
        rest = [sorted(set(x) - same) for x in (gold, found)]
        pairs.update((label, label) for label in same)
        for i in range(max(map(len, rest))):
            a, b = (x[i] if i < len(x) else _NOTHING for x in rest)
            pairs[a, b] += 1
    totals = Counter({name: 0 for pair in pairs for name in pair})
    for (a, b), n in pairs.items():
        totals[a] += n
        totals[b] += n
    labels = [name for name, _ in sorted(totals.items(), key=lambda x: (-x[1], x[0])) if name != _NOTHING]
    shown = [*labels[:_MOST_LABELS], _NOTHING]
    return Confusion(shown, [[pairs[a, b] for b in shown] for a in shown])


def curve_of(items: Sequence[ScoredItem]) -> list[Point]:
    """Precision and recall of what is found with a score of at least a threshold, from the lowest score that is shown
    to the highest that some have, up to five of many; none where nothing has a score."""
    scored = sorted(((x.score, x.gold) for x in items if x.found and x.score is not None), reverse=True)
    total = sum(item.gold for item in items)
    if not scored or not total:
        return []
    right_N = np.cumsum([is_right for _, is_right in scored])
    least = max(1, min(_LEAST_FOUND, len(scored) // 20))  # of fewer, precision says nothing
    last = [i for i in range(least - 1, len(scored)) if i + 1 == len(scored) or scored[i + 1][0] < scored[i][0]]
    chosen = [last[round(i)] for i in np.linspace(0, len(last) - 1, min(_POINTS, len(last)))]
    return [Point(scored[i][0], float(right_N[i]) / (i + 1), float(right_N[i]) / total) for i in reversed(chosen)]


def by_length(items: Sequence[ScoredItem], docs: Sequence[Doc]) -> list[ItemGroup]:
    """By words of a mention; of two mentions by the words between them."""
    bounds = ((0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 10**9))

    def length(item: ScoredItem) -> int:
        spans = [docs[item.doc].char_span(*place, alignment_mode="expand") for place in item.places]
        known = [span for span in spans if span is not None]
        if len(known) < 2:
            return sum(map(len, known))
        return max(0, max(span.start for span in known) - min(span.end for span in known))

    return _groups(items, length, bounds)


def by_frequency(items: Sequence[ScoredItem], docs: Sequence[Doc]) -> list[ItemGroup]:
    """By how often the gold has the same text, of two mentions the same two texts."""
    bounds = ((0, 0), (1, 1), (2, 3), (4, 9), (10, 10**9))
    texts = [tuple(docs[item.doc].text[a:b] for a, b in item.places) for item in items]
    often = Counter(text for item, text in zip(items, texts, strict=True) if item.gold)
    numbers = {id(item): often[text] for item, text in zip(items, texts, strict=True)}
    return _groups(items, lambda item: numbers[id(item)], bounds)


def _groups(
    items: Sequence[ScoredItem], number: Callable[[ScoredItem], int], bounds: Sequence[tuple[int, int]]
) -> list[ItemGroup]:
    groups = []
    numbers = [number(item) for item in items]
    for low, high in bounds:
        own = [item for item, n in zip(items, numbers, strict=True) if low <= n <= high]
        gold, found = (sum(x) for x in zip(*((item.gold, item.found) for item in own), strict=True)) if own else (0, 0)
        right = sum(item.gold and item.found for item in own)
        name = f"{low}" if low == high else f"{low} to {high}" if high < 10**9 else f"{low} and more"
        if own:
            groups.append(
                ItemGroup(name, gold, found, right / found if found else None, right / gold if gold else None)
            )
    return groups


def worst_examples(
    items: Sequence[ScoredItem], docs: Sequence[Doc], *, asked: bool = False, most: int = _MOST_EXAMPLES
) -> list[ShownExample]:
    """What is wrong, the surest first; then what is missed, in the order of the documents, evenly over them. asked:
    whether labels are questions, and what is found or gold the text itself."""
    if asked:
        return _wrong_answers(items, docs, most)
    gold_at: dict[tuple[int, Places], list[str]] = {}
    found_at: dict[tuple[int, Places], list[str]] = {}
    for item in items:
        if item.gold:
            gold_at.setdefault((item.doc, item.places), []).append(item.label)
        if item.found:
            found_at.setdefault((item.doc, item.places), []).append(item.label)
    wrong = sorted((x for x in items if x.found and not x.gold), key=lambda x: -(x.score or 0.0))[:most]
    missed = [x for x in items if x.gold and not x.found and (x.doc, x.places) not in found_at]
    missed = missed[:: max(1, len(missed) // most)][:most]
    examples = [
        ShownExample(
            x.label, ", ".join(gold_at.get((x.doc, x.places), [])), x.score, _in_context(docs[x.doc].text, x.places)
        )
        for x in wrong
    ]
    return examples + [ShownExample(_NOTHING, x.label, None, _in_context(docs[x.doc].text, x.places)) for x in missed]


def _wrong_answers(items: Sequence[ScoredItem], docs: Sequence[Doc], most: int) -> list[ShownExample]:
    def text(item: ScoredItem) -> str:
        ((start, end),) = item.places
        return docs[item.doc].text[start:end]

    golds = {(x.doc, x.label): text(x) for x in items if x.gold}
    answered = {(x.doc, x.label) for x in items if x.found}
    wrong = sorted((x for x in items if x.found and not x.gold), key=lambda x: -(x.score or 0.0))[:most]
    missed = [x for x in items if not x.found and (x.doc, x.label) not in answered]
    chosen = [*wrong, *missed[:: max(1, len(missed) // most)][:most]]
    return [
        ShownExample(
            text(x) if x.found else _NOTHING,
            golds.get((x.doc, x.label), _NOTHING),
            x.score,
            _in_context(docs[x.doc].text, x.places),
            x.label,
        )
        for x in chosen
    ]


def _in_context(text: str, places: Places) -> list[tuple[str, bool]]:
    """The text around the places, cut before and after, in parts."""
    edges = sorted(places)
    start, end = max(0, edges[0][0] - _AROUND), min(len(text), max(b for _, b in edges) + _AROUND)
    parts: list[tuple[str, bool]] = [("… " if start else "", False)]
    at = start
    for a, b in edges:
        gap = text[at : max(a, at)]
        parts.append((gap if len(gap) <= 3 * _AROUND else f"{gap[:_AROUND]} … {gap[-_AROUND:]}", False))
        parts.append((text[max(a, at) : b], True))
        at = max(at, b)
    return [*parts, (text[at:end] + (" …" if end < len(text) else ""), False)]
