"""Confusion, thresholds, groups and examples, from items made by hand."""

import pytest
import spacy

from spacy_luke.reports.findings import by_frequency, by_length, confusion_of, curve_of, worst_examples
from spacy_luke.scorers.items import ScoredItem

NLP = spacy.blank("en")
DOCS = [NLP("Ada Lovelace met Ada in London."), NLP("x " * 200 + "Charles Babbage of London slept.")]
TEXT = DOCS[1].text


def place(doc, text, n=0):
    start = -1
    for _ in range(n + 1):
        start = DOCS[doc].text.index(text, start + 1)
    return (start, start + len(text))


ITEMS = [
    ScoredItem(0, (place(0, "Ada Lovelace"),), "PER", True, True, 0.9),
    ScoredItem(0, (place(0, "Ada", 1),), "PER", True, False),
    ScoredItem(0, (place(0, "London"),), "LOC", True, False),
    ScoredItem(0, (place(0, "London"),), "ORG", False, True, 0.7),
    ScoredItem(1, (place(1, "London"),), "LOC", True, True, 0.7),
    ScoredItem(1, (place(1, "slept"),), "LOC", False, True, 0.8),
]


def test_confusion():
    found = confusion_of(ITEMS)
    assert found.labels == ["LOC", "PER", "ORG", ""]
    assert found.counts == [[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]]


def test_labels_of_one_place_that_are_equal_go_together():
    at = (place(0, "London"),)
    items = [
        ScoredItem(0, at, "A", True, True),
        ScoredItem(0, at, "B", True, False),
        ScoredItem(0, at, "C", False, True),
    ]
    found = confusion_of(items)
    assert {
        (found.labels[i], found.labels[j]) for i, row in enumerate(found.counts) for j, n in enumerate(row) if n
    } == {
        ("A", "A"),
        ("B", "C"),
    }


def test_curve():
    """Each score once, what has it all at once; recall of all gold."""
    points = curve_of(ITEMS)
    assert [p.threshold for p in points] == [0.7, 0.8, 0.9]
    assert [p.precision for p in points] == [0.5, 0.5, 1.0]
    assert [p.recall for p in points] == [0.5, 0.25, 0.25]
    assert curve_of([x._replace(score=None) for x in ITEMS]) == []


def test_lengths_and_frequencies():
    lengths = {x.name: (x.gold, x.found, x.precision, x.recall) for x in by_length(ITEMS, DOCS)}
    assert lengths == {"1": (3, 3, pytest.approx(1 / 3), pytest.approx(1 / 3)), "2": (1, 1, 1.0, 1.0)}
    often = {x.name: (x.gold, x.found) for x in by_frequency(ITEMS, DOCS)}
    assert often == {"0": (0, 1), "1": (2, 1), "2 to 3": (2, 2)}


def test_words_between_two():
    items = [ScoredItem(0, (place(0, "Ada Lovelace"), place(0, "London")), "in", True, True, 0.5)]
    assert [(x.name, x.gold) for x in by_length(items, DOCS)] == [("3 to 4", 1)]


def test_examples():
    """The surest errors first; then what is missed, but not where something else was found."""
    first, second, third = worst_examples(ITEMS, DOCS)
    assert (first.said, first.truth, first.score) == ("LOC", "", 0.8)
    assert (second.said, second.truth) == ("ORG", "LOC")
    assert (third.said, third.truth, third.score) == ("", "PER", None)
    assert [text for text, is_item in second.parts if is_item] == ["London"]
    whole = "".join(text for text, _ in first.parts)
    assert whole.startswith("… ")
    assert whole.removeprefix("… ") in TEXT
    assert "".join(text for text, _ in second.parts) == DOCS[0].text
