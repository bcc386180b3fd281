"""`luke_qa`: windows, gold that they hold, questions that are too long."""

import pytest
import spacy
from spacy.training import Example

from tests.components.asked import (
    LONG,
    QUESTION,
    gold_doc,
    items_of,
    make_qa,
    only_warning,
    trained,
)
from tests.tiny import SENTENCES


def test_gold_places():
    nlp, qa = make_qa()
    doc = nlp.make_doc(LONG)
    start = LONG.index("Ada Lovelace")
    items = items_of(qa, doc, {"question": QUESTION, "answers": [[start, start + 12]]}, learn=True)
    backend = qa.tokenizer.backend
    texts = [backend.decode(item.pieces[item.gold[0] : item.gold[1] + 1].tolist()).strip() for item in items]
    assert set(texts) == {"Ada Lovelace", ""}
    assert {item.gold for item, text in zip(items, texts) if not text} == {(0, 0)}
    unanswerable = items_of(qa, doc, QUESTION, learn=True)
    assert {item.gold for item in unanswerable} == {(0, 0)}
    assert [item.pieces.tolist() for item in items_of(qa, doc, QUESTION)] == [
        item.pieces.tolist() for item in sorted(unanswerable, key=lambda item: item.first)
    ]


def test_first_answer_of_a_window_is_learned():
    nlp, qa = make_qa()
    doc = nlp.make_doc(SENTENCES[0])
    places = [[22, 28], [0, 12]]
    ((first, second),) = (
        [items_of(qa, doc, {"question": "?", "answers": x}, learn=True)[0].gold for x in (places, places[::-1])],
    )
    assert first != second


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("da Lovel", "1 answers do not begin and end with a word"),
        ("Ada Lovelace lived in London near the Royal Society", "1 answers are longer than max_answer_pieces"),
        (" ", "1 answers hold nothing that the encoder sees"),
    ],
)
def test_answers_that_cannot_be_found(words, message):
    nlp = spacy.blank("en")
    gold = gold_doc(nlp, 0)
    start = gold.text.index(words)
    gold.user_data["luke_questions"] = [{"question": "?", "answers": [[start, start + len(words)]]}]
    with pytest.warns(UserWarning, match=message) as caught:
        make_qa(examples=[Example(nlp.make_doc(gold.text), gold)], max_answer_pieces=8)
    assert "of 1 answers of the training data" in only_warning(caught)


def test_answers_in_no_window():
    nlp = spacy.blank("en")
    gold = nlp.make_doc(LONG)
    gold.user_data["luke_questions"] = [{"question": "?", "answers": [[3, 180], [0, len(LONG)]]}]
    with pytest.warns(UserWarning, match="2 answers are in no window"):
        make_qa(examples=[Example(nlp.make_doc(LONG), gold)])


def test_questions_without_answer_and_no_threshold():
    with pytest.warns(UserWarning, match="1 questions have no answer, but no_answer_threshold = null") as caught:
        make_qa(no_answer_threshold=None)
    assert "cannot be found" not in only_warning(caught)


@pytest.mark.parametrize("place", [[3, 3], [-1, 4], [0, 1000]])
def test_answers_outside_of_the_text(place):
    nlp = spacy.blank("en")
    gold = gold_doc(nlp, 0)
    gold.user_data["luke_questions"] = [{"question": "Where?", "answers": [place]}]
    with pytest.raises(ValueError, match=rf"row 0 must be .*'Where\?'.*characters \[{place[0]}, {place[1]}\)"):
        make_qa(examples=[Example(nlp.make_doc(gold.text), gold)])


def test_long_questions():
    nlp = trained("luke_qa")
    qa = nlp.get_pipe("luke_qa")
    doc = nlp.make_doc(SENTENCES[0])
    question = "Who lived in London " * 5
    with pytest.raises(ValueError, match=r"has [0-9]+ pieces, but max_question_pieces is 20.*cut_questions = true"):
        qa.cfg["max_question_pieces"] = 20
        qa.answer(doc, question)
    qa.cfg["max_question_pieces"] = None
    with pytest.raises(ValueError, match="a window of 64 with answers of max_answer_pieces = 20 leaves 40"):
        qa.answer(doc, question)
    qa.cfg["cut_questions"] = True
    with pytest.warns(UserWarning, match="1 questions are cut"):
        assert len(qa.answer(doc, question).spans) > 1


@pytest.mark.parametrize("question", [{"question": 3}, {"question": " "}, {}, [], ["Who?"]])
def test_questions_that_are_none(question):
    nlp, _ = make_qa(initialize=False)
    with pytest.raises(ValueError, match="Item 0 must be a string or a dict"):
        nlp.make_doc("A")._.luke_questions = [question]
