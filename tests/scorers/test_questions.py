import collections
import random
import re
import string

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.training import Example
from spacy.util import registry

from spacy_luke.annotations import get_rows, set_rows
from spacy_luke.readers.datasets.table import dataset_docs
from spacy_luke.readers.given import copy_given
from spacy_luke.scorers.questions import make_cloze_scorer, make_qa_scorer, normalize_answer

NLP = spacy.blank("en")
TEXT = "The U.S. Army, an army of 1,200 men -- and The Who! -- reached 'the' old Bonn; Bonn burned a lot."
score_qa = make_qa_scorer()
score_cloze = make_cloze_scorer()
PLACES = st.tuples(st.integers(0, len(TEXT) - 1), st.integers(1, 25)).map(lambda x: [x[0], min(sum(x), len(TEXT))])


def plain_normal(text):
    """What the papers' scripts describe, step by step."""
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    words = re.split(r"\s+", re.sub(r"\b(a|an|the)\b", " ", text).strip())
    return [word for word in words if word]


def plain_f1(prediction, gold, empty):
    p, g = plain_normal(prediction), plain_normal(gold)
    if not p or not g:
        return empty if p == g else 0
    common = sum(min(p.count(word), g.count(word)) for word in set(p))
    if common == 0:
        return 0
    precision, recall = common / len(p), common / len(g)
    return 2 * precision * recall / (precision + recall)


def plain_squad2(golds, predictions):
    """SQuAD 2.0: em, f1, and these by whether there is an answer; golds are lists of texts."""
    rows = collections.defaultdict(list)
    for texts, prediction in zip(golds, predictions, strict=True):
        kept = [text for text in texts if plain_normal(text)] or [""]
        em = max(int(plain_normal(text) == plain_normal(prediction)) for text in kept)
        f1 = max(plain_f1(prediction, text, 1) for text in kept)
        rows["all"].append((em, f1))
        rows[bool(texts)].append((em, f1))
    return {name: [sum(x) / len(x) for x in zip(*values, strict=True)] for name, values in rows.items()}


def example_of(golds, predictions, *, asked="luke_questions", answers="luke_answers", text=TEXT):
    """golds: a list of places for each question; predictions: the place of each, None for no answer."""
    field = "question" if asked == "luke_questions" else "query"
    gold = NLP.make_doc(text)
    gold.user_data[asked] = [{"id": str(i), field: f"@placeholder {i}?", "answers": x} for i, x in enumerate(golds)]
    doc = copy_given(gold, NLP.vocab, questions=True)
    doc.user_data[answers] = [[[*(place or [0, 0]), 0.9], [5, 9, 0.1]] for place in predictions]
    return Example(doc, gold)


def texts(places):
    return [TEXT[start:end] for start, end in places]


@given(st.lists(st.tuples(st.lists(PLACES, max_size=3), st.none() | PLACES), min_size=1, max_size=5))
def test_equal_to_squad(questions):
    golds, predictions = [q[0] for q in questions], [q[1] for q in questions]
    predictions = [g[0] if g and i % 2 else p for i, (g, p) in enumerate(zip(golds, predictions, strict=True))]
    scores = score_qa([example_of(golds, predictions)])
    expected = plain_squad2([texts(x) for x in golds], [TEXT[p[0] : p[1]] if p else "" for p in predictions])
    assert [scores["qa_em"], scores["qa_f"]] == pytest.approx(expected["all"])
    if False in expected:
        assert scores["qa_no_answer_accuracy"] == pytest.approx(expected[False][0])
        both = [scores["qa_has_answer_em"], scores["qa_has_answer_f"]]
        assert both == (pytest.approx(expected[True]) if True in expected else [None, None])
    else:
        assert scores["qa_no_answer_accuracy"] is None
        assert scores["qa_has_answer_em"] is None


@given(st.lists(st.tuples(st.lists(PLACES, min_size=1, max_size=3), PLACES), min_size=1, max_size=5))
def test_equal_to_record(queries):
    golds, predictions = [q[0] for q in queries], [q[1] for q in queries]
    scores = score_cloze([example_of(golds, predictions, asked="luke_queries", answers="luke_fillers")])
    ems, f1s = [], []
    for gold, (start, end) in zip(golds, predictions, strict=True):
        ems.append(max(plain_normal(text) == plain_normal(TEXT[start:end]) for text in texts(gold)))
        f1s.append(max(plain_f1(TEXT[start:end], text, 0) for text in texts(gold)))
    assert scores["cloze_em"] == pytest.approx(sum(ems) / len(ems))
    assert scores["cloze_f"] == pytest.approx(sum(f1s) / len(f1s))


@given(
    st.text(max_size=30)
    | st.lists(st.sampled_from(["the", "a", "An", "cat", "'s", "-", "  "]), max_size=6).map(" ".join)
)
def test_normalisation(text):
    assert normalize_answer(text).split() == plain_normal(text)
    assert normalize_answer(normalize_answer(text)) == " ".join(plain_normal(" ".join(plain_normal(text))))


def test_known_values():
    place = [TEXT.index("1,200 men"), TEXT.index(" --")]
    scores = score_qa([example_of([[place], []], [[place[0] - 12, place[1]], None])])  # "an army of 1,200 men"
    assert normalize_answer("The U.S. Army,") == "us army"
    assert normalize_answer("A-team  (the 'An')") == "ateam"
    assert scores["qa_em"] == 0.5
    assert scores["qa_f"] == pytest.approx((2 * 0.5 * 1 / 1.5 + 1) / 2)
    assert (scores["qa_has_answer_em"], scores["qa_no_answer_accuracy"]) == (0.0, 1.0)


def test_the_text_counts_and_not_the_place():
    first, second = TEXT.index("Bonn"), TEXT.rindex("Bonn")
    example = example_of([[[first, first + 4]]], [[second, second + 4]], asked="luke_queries", answers="luke_fillers")
    assert score_cloze([example])["cloze_em"] == 1.0


@pytest.mark.slow
def test_on_xquad(shared):
    """Real questions; a prediction is the gold answer, one word more, or another answer of the paragraph."""
    rng = random.Random(0)
    golds, predictions, examples = [], [], []
    for doc in dataset_docs(NLP, shared("data/xquad_en/xquad.en.json"), format="squad"):
        places = [question["answers"] for question in get_rows(doc, "luke_questions")]
        chosen = [rng.choice([x[0], [x[0][0], min(x[0][1] + 8, len(doc.text))], rng.choice(places)[0]]) for x in places]
        predicted = copy_given(doc, NLP.vocab, questions=True)
        predicted.user_data["luke_answers"] = [[[*place, 1.0]] for place in chosen]
        examples.append(Example(predicted, doc))
        golds += [[doc.text[a:b] for a, b in x] for x in places]
        predictions += [doc.text[a:b] for a, b in chosen]
    scores = score_qa(examples)
    assert len(golds) == 1190
    assert [scores["qa_em"], scores["qa_f"]] == pytest.approx(plain_squad2(golds, predictions)["all"])


def test_questions_without_gold_or_without_answers():
    example = example_of([[[0, 3]], [[4, 8]]], [[4, 8], [4, 8]])
    first, second = get_rows(example.reference, "luke_questions")
    set_rows(example.reference, "luke_questions", [{k: v for k, v in first.items() if k != "answers"}, second])
    assert score_qa([example])["qa_em"] == 1.0
    set_rows(example.predicted, "luke_answers", None)  # nothing was answered: every prediction is ""
    assert score_qa([example])["qa_em"] == 0.0
    nothing = Example(NLP.make_doc(TEXT), NLP.make_doc(TEXT))
    assert set(score_qa([nothing]).values()) == set(score_cloze([]).values()) == {None}


def test_what_was_not_asked_is_left_out_and_counted():
    example = example_of([[[0, 3]], [[4, 8]], []], [[0, 3], [0, 3], None])
    none = Example(NLP.make_doc(TEXT), example.reference)  # as `spacy evaluate` gives them
    with pytest.warns(UserWarning, match=r"^3 of 3 gold items of doc._.luke_questions were not asked") as caught:
        scores = score_qa([none])
    assert (scores.pop("qa_not_asked"), set(scores.values()), len(caught)) == (3, {None}, 1)
    first, second, third = get_rows(example.predicted, "luke_questions")
    rows = get_rows(example.predicted, "luke_answers")
    set_rows(example.predicted, "luke_questions", [third, {**second, "question": "Another?"}, first])
    set_rows(example.predicted, "luke_answers", rows[::-1])
    with pytest.warns(UserWarning, match=r"^4 of 6 gold items") as caught:
        scores = score_qa([example, none])
    assert (scores["qa_em"], scores["qa_no_answer_accuracy"], scores["qa_not_asked"], len(caught)) == (1.0, 1.0, 4, 1)


def test_as_registered_scorers():
    assert registry.scorers.get("spacy-luke.qa_scorer.v1") is make_qa_scorer
    assert registry.scorers.get("spacy-luke.cloze_scorer.v1") is make_cloze_scorer
    assert score_qa([], batch_size=1)["qa_f"] is None
