"""Answers, counted item by item, beside the official scores."""

import random

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_luke.annotations import QUERIES, QUESTIONS, register_extensions, set_found, set_queries, set_questions
from spacy_luke.reports.findings import worst_examples
from spacy_luke.scorers.items import answer_items
from spacy_luke.scorers.questions import score_answers, score_fillers

VOCAB = spacy.blank("en").vocab
WORDS = ["alpha", "beta", "gamma", "delta", "alpha", "beta"]
ASKED = {QUESTIONS: "Which {}?", QUERIES: "@placeholder {}."}
ASK = {QUESTIONS: ("question", set_questions), QUERIES: ("query", set_queries)}


def make(asked, cases):
    """cases: for each question the places of the gold answers, and the best found place or None, in words."""
    register_extensions()
    key, ask = ASK[asked]
    gold, doc = (Doc(VOCAB, words=WORDS) for _ in range(2))
    place = lambda words: (doc[words[0]].idx, doc[words[1] - 1].idx + len(doc[words[1] - 1]))  # noqa: E731
    rows = [{key: ASKED[asked].format(i), "answers": [place(x) for x in golds]} for i, (golds, _) in enumerate(cases)]
    more = {"candidates": [place((i, i + 1)) for i in range(6)]} if asked == QUERIES else {}
    ask(gold, [{**row, **more} for row in rows])
    ask(doc, [{key: row[key], **more} for row in rows])
    set_found(doc, asked, [[(*place(found), 0.7)] if found else [(0, 0, 0.6)] for _, found in cases])
    return Example(doc, gold)


def test_what_is_an_item():
    one = make(
        QUESTIONS,
        [
            ([(1, 2)], (1, 2)),  # right
            ([(1, 2)], (5, 6)),  # the same text elsewhere is right, as the script has it
            ([(1, 2)], (2, 3)),  # wrong
            ([(1, 2)], None),  # missed
            ([], (3, 4)),  # there is no answer
            ([], None),  # and none is found
        ],
    )
    found = [(x.label, x.gold, x.found) for x in answer_items([one], asked=QUESTIONS)]
    assert found == [
        ("Which 0?", True, True),
        ("Which 1?", True, True),
        ("Which 2?", False, True),
        ("Which 2?", True, False),
        ("Which 3?", True, False),
        ("Which 4?", False, True),
    ]


def test_errors_say_what_was_asked():
    one = make(QUESTIONS, [([(1, 2)], (2, 3)), ([(3, 4)], None), ([], (0, 1)), ([(1, 2)], (1, 2))])
    items = answer_items([one], asked=QUESTIONS)
    shown = worst_examples(items, [one.predicted], asked=True)
    assert [(x.asked, x.said, x.truth) for x in shown] == [
        ("Which 0?", "gamma", "beta"),
        ("Which 2?", "alpha", ""),
        ("Which 1?", "", "delta"),
    ]
    assert ("gamma", True) in shown[0].parts


@pytest.mark.parametrize("asked", ASK)
@pytest.mark.parametrize("seed", range(3))
def test_recall_is_exact_match(asked, seed):
    """Of questions that have an answer."""
    draw = random.Random(seed)
    some = [
        make(asked, [([(a, a + 1)], draw.choice([None, (a, a + 1), (b, b + 1)])) for a, b in zip((0, 2, 3), (1, 3, 5))])
        for _ in range(8)
    ]
    items = answer_items(some, asked=asked)
    gold = sum(x.gold for x in items)
    assert gold == 24
    score = score_answers(some)["qa_em"] if asked == QUESTIONS else score_fillers(some)["cloze_em"]
    assert sum(x.gold and x.found for x in items) / gold == pytest.approx(score)
    assert 0 < score < 1


def test_places_are_of_the_predicted_text():
    one = make(QUESTIONS, [([(1, 2)], None)])
    wide = Doc(VOCAB, words=WORDS, spaces=[False] * 6)
    set_questions(wide, [{"question": "Which 0?"}])
    set_found(wide, QUESTIONS, [[(0, 0, 0.6)]])
    (item,) = answer_items([Example(wide, one.reference)], asked=QUESTIONS)
    assert wide.text[slice(*item.places[0])] == "beta"
