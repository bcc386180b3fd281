"""`luke_qa`: linked entities of Docs, alone and with a shared encoder."""

import pytest
import spacy
import torch
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.entity_vocab import EntityVocab
from tests.components.asked import (
    LONG,
    asked_doc,
    gold_doc,
    items_of,
    link,
    make_examples,
    make_qa,
)
from tests.tiny import ENTITIES, SENTENCES, make_checkpoint


def test_entities_are_read():
    nlp, qa = make_qa()
    doc = link(nlp.make_doc(SENTENCES[1]), "Ghana", "Accra", "Bank")
    question = qa.question_of(link(nlp.make_doc("Is Accra in Japan?"), "Japan", "Accra"))
    assert question["entities"] == [(12, 17, "Japan"), (3, 8, "Accra")]
    (item,) = items_of(qa, doc, question)
    assert item.rows_E.tolist() == [ENTITIES[x] for x in ("Accra", "Japan", "Ghana", "Accra")]
    pieces = [item.pieces[a : b + 1].tolist() for a, b in zip(item.first_E, item.last_E)]
    words = [qa.tokenizer.backend.decode(x).strip() for x in pieces]
    assert words == ["Accra", "Japan", "Ghana", "Accra"]


def test_training_reads_the_entities_of_the_predicted_questions():
    """Those that a component before it found, as in prediction; the gold's own where there are none."""
    nlp, qa = make_qa()
    doc, reference = nlp.make_doc(SENTENCES[1]), nlp.make_doc(SENTENCES[1])
    text = "Is Accra in Japan?"
    reference._.luke_questions = [{"question": text, "answers": [], "entities": [[12, 17, "Japan"]]}]

    def rows():
        return [item.rows_E.tolist() for batch in qa.batches([Example(doc, reference)]) for item in batch.items]

    assert rows() == [[ENTITIES["Japan"]]]
    for asked, title in (("Is Japan in Accra?", "Japan"), (text, "Accra")):
        doc._.luke_questions = [{"question": asked, "entities": [[3, 8, "Accra"]]}]
        assert rows() == [[ENTITIES[title]]]
    doc._.luke_questions = [{"question": text}]
    assert rows() == [[ENTITIES["Japan"]]]
    (asked,) = (item.rows_E.tolist() for item in qa._items([(doc, {"question": text})], {}))
    assert asked == []


def test_entities_matter_where_words_see_them():
    answers = {}
    for attention in ("full", "one_way"):
        nlp, qa = make_qa(attention=attention)
        doc = nlp.make_doc(SENTENCES[1])
        answers[attention] = [qa.answer(doc, "Where?"), qa.answer(link(doc, "Ghana", "Accra"), "Where?")]
        assert bool(len(items_of(qa, doc, "Where?")[0].rows_E)) == (attention == "full")
    (without, linked), (same, again) = answers["full"], answers["one_way"]
    assert without.score != pytest.approx(linked.score, abs=1e-4)
    assert same == again
    assert without.score == pytest.approx(same.score, abs=1e-5)  # without entities there is nothing to be seen


def test_entities_are_those_of_the_window():
    nlp, qa = make_qa()
    doc = link(nlp.make_doc(LONG), "Ghana", "Accra")
    items = items_of(qa, doc, "Who?")
    assert sum(len(item.rows_E) for item in items) >= 2
    for item in items:
        for row, a, b in zip(item.rows_E, item.first_E, item.last_E):
            word = qa.tokenizer.backend.decode(item.pieces[a : b + 1].tolist()).strip()
            assert ENTITIES[word] == row


def test_most_entities_of_a_window():
    nlp, qa = make_qa(max_entities=1)
    doc = link(nlp.make_doc(SENTENCES[1]), "Ghana", "Accra")
    with pytest.warns(UserWarning, match="1 windows have more linked entities than max_entities"):
        (item,) = items_of(qa, doc, "Who?")
    assert item.rows_E.tolist() == [ENTITIES["Ghana"]]
    nlp, qa = make_qa(max_entities=0)
    assert not len(items_of(qa, doc, "Who?")[0].rows_E)


def test_other_getters_and_languages():
    names = [(f"en:{name}" if row in (2, 4, 6) else name, row) for name, row in ENTITIES.items()]
    checkpoint = make_checkpoint()
    checkpoint.entities = EntityVocab(names)
    getter = {"@misc": "spacy-luke.doc_ents.v1"}
    nlp, qa = make_qa(weights=lambda: checkpoint, entity_language="en", entities=getter)
    doc = nlp.make_doc(SENTENCES[1])
    doc.ents = [Span(doc, 7, 8, label="LOC", kb_id="Ghana"), Span(doc, 9, 10, label="LOC")]
    assert items_of(qa, doc, "Who?")[0].rows_E.tolist() == [4]
    asked = {"question": "Who is in Ghana?", "entities": [[10, 15, "Ghana"]]}
    assert items_of(qa, doc, asked)[0].rows_E.tolist() == [4, 4]
    nlp, qa = make_qa(weights=lambda: checkpoint, entities=None)
    assert not len(items_of(qa, doc, asked)[0].rows_E)


@pytest.mark.parametrize("place", [[0, 0, "Ghana"], [3, 99, "Ghana"]])
def test_entities_outside_of_the_question(place):
    nlp, qa = make_qa()
    with pytest.raises(ValueError, match="Entity 0 of the question 'Who' must have characters"):
        qa.answer(nlp.make_doc(SENTENCES[0]), {"question": "Who", "entities": [place]})


def test_entities_that_the_table_lacks():
    """A checkpoint of which only special rows were read."""
    checkpoint = make_checkpoint(entity_size=12)
    rows = sorted(checkpoint.entities.special_rows().values())
    checkpoint.tensors["encoder.entities.table.weight"] = checkpoint.tensors["encoder.entities.table.weight"][rows]
    checkpoint.entities = checkpoint.entities.restricted(rows)
    nlp = spacy.blank("en")
    gold = gold_doc(nlp, 1)
    examples = [Example(link(asked_doc(nlp, gold), "Ghana", "Accra"), gold)]
    with pytest.warns(UserWarning, match="none of 2 linked entities is in the entity table"):
        _, qa = make_qa(weights=lambda: checkpoint, examples=examples)
    assert qa.entity_row("Ghana") is None


def test_entities_are_saved(tmp_path):
    nlp, qa = make_qa()
    doc = link(nlp.make_doc(SENTENCES[1]), "Ghana", "Accra")
    expected = qa.answer(doc, "Where?").score
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    doc = link(again.make_doc(SENTENCES[1]), "Ghana", "Accra")
    assert again.get_pipe("luke_qa").answer(doc, "Where?").score == expected


def test_table_stays_as_it_is():
    nlp, qa = make_qa()
    before = qa.encoder.module.entities.table.weight.detach().clone()
    gold = gold_doc(nlp, 1)
    example = Example(link(asked_doc(nlp, gold), "Ghana", "Accra"), gold)
    dense = qa.encoder.module.entities.dense.weight.detach().clone()
    qa.update([example], sgd=make_adamw(learn_rate=1e-2))
    assert torch.equal(before, qa.encoder.module.entities.table.weight)
    assert not torch.equal(dense, qa.encoder.module.entities.dense.weight)


@pytest.mark.slow
@pytest.mark.parametrize("entity_rows", ["special", "all"])
def test_shared_encoder(entity_rows, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_encoder", config={"entity_rows": entity_rows, "model": {"train_precision": "float32"}})
    shared = {"@architectures": "spacy-luke.SharedEncoder.v1"}
    for name, settings in (
        ("luke_qa", {"stride": 16, "max_question_pieces": 28, "max_answer_pieces": 20, "no_answer_threshold": 0.0}),
        ("luke_cloze", {"stride": 16}),
    ):
        nlp.add_pipe(name, config={**settings, "model": {"encoder": shared}})
    nlp.get_pipe("luke_encoder").initialize(lambda: make_examples(nlp), nlp=nlp, weights=make_checkpoint)
    for name in ("luke_qa", "luke_cloze"):
        nlp.get_pipe(name).initialize(lambda: make_examples(nlp), nlp=nlp)
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(150):
        losses = nlp.update(make_examples(nlp), sgd=optimizer)
        if max(losses["luke_qa"], losses["luke_cloze"]) < 0.02:
            break
    scores = nlp.evaluate(make_examples(nlp))
    assert (scores["qa_f"], scores["cloze_f"]) == (1.0, 1.0)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert again.evaluate(make_examples(again))["qa_f"] == 1.0
    assert again.get_pipe("luke_qa").entity_row("Ghana") == (ENTITIES["Ghana"] if entity_rows == "all" else None)
