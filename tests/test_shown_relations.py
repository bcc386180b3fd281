"""benchmarks/shown_relations.py: which relations that are shown the annotation of CoNLL04 has."""

from types import SimpleNamespace

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_luke.readers.records import Mention, Record
from tests.benchmark_files import by_bare_names, load

with by_bare_names():
    shown_relations = load("shown_relations")
Shown, interval, find_told = shown_relations.Shown, shown_relations.interval, shown_relations.find_told

WORDS = "Ada Lovelace left New York for the Bank of England".split()
LIVES = (0, 1, "Live_In")
MENTIONS = [Mention(0, 2, "Peop"), Mention(3, 5, "Loc"), Mention(7, 10, "Org")]


def relation(head, label, tail):
    doc = Doc(spacy.blank("en").vocab, words=WORDS)
    return SimpleNamespace(head=Span(doc, *head), label=label, tail=Span(doc, *tail))


@pytest.mark.parametrize(
    ("head", "label", "tail", "expected"),
    [
        ((0, 2), "residence", (3, 5), [LIVES]),
        ((3, 5), "residence", (1, 2), [LIVES]),  # the other way round, and a part of the name
        ((0, 2), "place of birth", (3, 5), [LIVES]),
        ((0, 2), "employer", (3, 5), []),  # another relation
        ((0, 2), "residence", (9, 10), []),  # another pair
        ((2, 3), "residence", (3, 5), []),  # no mention
        ((0, 2), "spouse", (3, 5), None),  # CoNLL04 has none
    ],
)
def test_judged_by_the_annotation(head, label, tail, expected):
    record = Record("here", words=WORDS, mentions=MENTIONS, relations=[LIVES])
    assert find_told(record, relation(head, label, tail)) == expected
    assert shown_relations.count_gold([record, record]) == 2


def test_the_share_that_is_right():
    shown = [Shown(i, "residence", 0.8 + i / 20, [LIVES] * (i > 0)) for i in range(4)]
    shown.append(Shown(1, "place of birth", 0.7, [LIVES]))  # which is told already
    shown.append(Shown(1, "spouse", 0.9, None))
    text = shown_relations.make_report({"pipeline": "p", "sentences": 4, "threshold": 0.7, "gold": 9}, shown)
    assert "Of 6 relations that are shown 5 can be judged; the annotation has 80.0 % of them" in text
    assert "Of its 9 relations 3 are found." in text
    assert "| residence | Live_In | 4 | 75.0 % |" in text
    assert "| spouse |  | 1 |  |" in text
    assert "| 0.85 | 3 | 100.0 % | 3 |" in text
    assert interval(shown[1:4], 4) == (100, 100)
