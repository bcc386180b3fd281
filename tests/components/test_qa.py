"""`luke_qa`: windows, answers and "no answer", linked entities, checkpoints."""

import json

import numpy as np
import pytest
import spacy
import torch
from safetensors.torch import load_file
from spacy.tokens import Doc
from spacy.training import Example

from spacy_luke.annotations import get_rows
from spacy_luke.batch.passages import PassageItem, make_passage_batch
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.checkpoint.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.components import qa as qa_module
from spacy_luke.components.questions.answers import FoundAnswers, Places, different, ranked
from tests.components.asked import (
    LONG,
    QUESTION,
    items_of,
    make_examples,
    make_qa,
    trained,
)
from tests.tiny import SENTENCES, make_checkpoint

# ---- answers


def test_answer_without_asking_the_doc():
    nlp = trained("luke_qa")
    qa = nlp.get_pipe("luke_qa")
    doc = nlp.make_doc(SENTENCES[0])
    by_string, by_item, by_doc = (
        qa.answer(doc, x) for x in (QUESTION, {"question": QUESTION, "id": "x"}, nlp.make_doc(QUESTION))
    )
    assert by_string.text == "Ada Lovelace"
    assert by_string.span == doc[0:2]
    assert by_string == by_item == by_doc
    assert doc.user_data == {}
    scores = [x.score for x in by_string.spans]
    assert sum(scores) == pytest.approx(1)
    assert scores == sorted(scores, reverse=True)
    assert len({x.text for x in by_string.spans}) == len(by_string.spans) == 21  # n_best, and "no answer"
    assert qa.answer(nlp.make_doc(SENTENCES[3]), "Who came?").span is None


def test_answers_of_a_long_doc():
    """The answer is learned and found in whatever window has it, and its place is that in the Doc."""
    nlp = spacy.blank("en")
    gold = nlp.make_doc(LONG)
    start = LONG.index("Ada Lovelace")
    gold.user_data["luke_questions"] = [{"question": QUESTION, "answers": [[start, start + 12]]}]
    examples = [Example(nlp.make_doc(LONG), gold)]
    nlp, qa = make_qa(examples=examples)
    assert len(items_of(qa, nlp.make_doc(LONG), QUESTION)) > 3
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(150):
        if qa.update(examples, sgd=optimizer)["luke_qa"] < 0.02:
            break
    answer = qa.answer(nlp.make_doc(LONG), QUESTION)
    assert (answer.text, answer.span.start_char) == ("Ada Lovelace", start)


def test_small_windows():
    """They hold the question whole, cover the Doc, and give it the answers of their own."""
    nlp = trained("luke_qa")
    qa = nlp.get_pipe("luke_qa")
    doc = nlp.make_doc(SENTENCES[0])
    (whole,) = items_of(qa, doc, QUESTION)
    qa.cfg["window"] = window = len(whole.pieces) - 5
    small = items_of(qa, doc, QUESTION)
    assert len(small) > 1
    assert max(len(item.pieces) for item in small) <= window
    assert {item.offset for item in small} == {whole.offset}
    end = max(item.first + len(item.pieces) - item.offset - 1 for item in small)
    assert end == len(whole.pieces) - whole.offset - 1
    qa.cfg["window"] = 1000
    with pytest.raises(ValueError, match=r"window = 1000, but its encoder reads 64 pieces"):
        items_of(qa, doc, QUESTION)


@pytest.mark.parametrize("window", [24, None])
def test_windows_too_small_for_a_question_and_an_answer(window):
    """A question was cut to all but its last pieces, no window was left, and no answer found, in silence."""
    nlp = trained("luke_qa")
    qa = nlp.get_pipe("luke_qa")
    doc, size = nlp.make_doc(SENTENCES[0]), window or 64
    qa.cfg.update(window=window, cut_questions=True, max_answer_pieces=size - 5)
    with pytest.warns(UserWarning, match="1 questions are cut"):
        (item, *_) = items_of(qa, doc, QUESTION)
    assert item.offset == 2 + (2 if qa.tokenizer.doubles_sep else 1)
    qa.cfg["max_answer_pieces"] += 1
    told = rf"window of at least {size + 1} pieces.* = {size - 4}, but it has {size}\. Set a smaller max_answer_pieces"
    with pytest.raises(ValueError, match=told) as raised:
        qa.answer(doc, QUESTION)
    assert ("a larger window" in str(raised.value)) is (window is not None)


@pytest.mark.parametrize("n_best", [1, 3])
def test_n_best(n_best):
    nlp = trained("luke_qa")
    qa = nlp.get_pipe("luke_qa")
    doc = nlp.make_doc(SENTENCES[0])
    every = qa.answer(doc, QUESTION)
    qa.cfg["n_best"] = n_best
    some = qa.answer(doc, QUESTION)
    assert some.span == every.span
    assert n_best <= len(some.spans) <= n_best + 1
    qa.cfg["no_answer_threshold"] = None
    assert [x.text for x in qa.answer(doc, QUESTION).spans] == [x.text for x in every.spans if x.span][:n_best]


def test_threshold_of_no_answer():
    nlp = trained("luke_qa")
    qa = nlp.get_pipe("luke_qa")
    doc, none = nlp.make_doc(SENTENCES[0]), nlp.make_doc(SENTENCES[3])
    qa.cfg["no_answer_threshold"] = None
    assert qa.answer(none, "Who came?").text
    assert all(x.span is not None for x in qa.answer(none, "Who came?").spans)
    qa.cfg["no_answer_threshold"] = 100.0
    assert qa.answer(none, "Who came?").text
    assert None in [x.span for x in qa.answer(none, "Who came?").spans]
    qa.cfg["no_answer_threshold"] = -100.0
    assert qa.answer(doc, QUESTION).span is None
    assert qa.answer(doc, QUESTION).spans[1].text == "Ada Lovelace"


@pytest.mark.parametrize(
    ("answers", "null", "threshold", "most", "expected"),
    [
        ([], 0.0, None, 2, [(0, 0)]),
        ([(1, 2, 3.0)], 4.0, None, 2, [(1, 2)]),
        ([(1, 2, 3.0)], 4.0, 0.0, 2, [(0, 0), (1, 2)]),
        ([(1, 2, 3.0)], 4.0, 1.0, 2, [(1, 2), (0, 0)]),  # not better by more than 1
        ([(1, 2, 3.0)], 4.0, 0.0, 1, [(0, 0)]),
        ([(1, 2, 3.0)], 4.0, 2.0, 1, [(1, 2), (0, 0)]),
        ([(1, 2, 3.0), (3, 4, 2.0), (5, 6, 1.0)], 2.5, 0.0, 2, [(1, 2), (0, 0)]),
        ([(1, 2, 3.0), (3, 4, 2.0), (5, 6, 1.0)], 0.5, 0.0, 2, [(1, 2), (3, 4), (0, 0)]),
        ([(1, 2, 3.0), (3, 4, 2.0)], 2.5, -1.0, 3, [(0, 0), (1, 2), (3, 4)]),
    ],
)
def test_ranking(answers, null, threshold, most, expected):
    rows = ranked(FoundAnswers(answers, null), most=most, threshold=threshold)
    assert [(a, b) for a, b, _ in rows] == expected
    assert sum(p for _, _, p in rows) == pytest.approx(1)


def test_equal_texts_are_one_answer():
    rows = [(0, 2, 1.0), (6, 8, 3.0), (3, 5, 2.0), (5, 6, 9.0), (0, 5, 1.0), (4, 4, 9.0), (3, 5, 0.5)]
    spans = [Places(*map(np.array, zip(*some))) for some in (rows[:3], rows[3:])]
    assert different("ab cd ab", [], 9) == []
    assert different("ab cd ab", spans, 9) == [(6, 8, 3.0), (3, 5, 2.0), (0, 5, 1.0)]
    assert different("ab cd ab", spans, 1) == [(6, 8, 3.0)]


class CountedText(str):
    """Counts the characters that are taken out of it."""

    taken = 0

    def __getitem__(self, place):
        found = super().__getitem__(place)
        CountedText.taken += len(found)
        return found


def best_plainly(text, spans, most):
    """As the original: all spans from the best on, by their texts."""
    found = {}
    for start, end, score in sorted(spans, key=lambda x: (-x[2], x[0], x[1])):
        if text[start:end].strip():
            found.setdefault(text[start:end], (start, end, score))
    return list(found.values())[:most]


@pytest.mark.parametrize("seed", range(8))
def test_places_of_all_windows_give_the_same_answers(seed):
    """Whatever the number of windows, spans that come again, and equal scores."""
    chosen = np.random.default_rng(seed)
    text = " ".join(chosen.choice(["ab", "cd", "e", "ab cd"], 12))
    start_S = chosen.integers(0, len(text), 200)
    end_S = np.minimum(start_S + chosen.integers(0, 6, 200), len(text))
    score_S = chosen.integers(0, 9, 200).astype(np.float64)
    whole = Places(start_S, end_S, score_S)
    parts = [Places(*(x[i::7] for x in (start_S, end_S, score_S))).best() for i in range(7)]
    for most in (1, 5, 99):
        expected = best_plainly(text, zip(start_S.tolist(), end_S.tolist(), score_S.tolist()), most)
        assert different(text, [whole], most) == different(text, parts, most) == expected


def test_long_words_are_read_once(monkeypatch):
    """The work grows as the text does, not with its square: a text of one word has one answer, read once."""
    nlp, qa = make_qa()
    windows = []

    def counted(text, parts, most):
        windows.append(len(parts))
        assert all(len(part.start_S) == 1 for part in parts)
        return different(CountedText(text), parts, most)

    monkeypatch.setattr(qa_module, "different", counted)
    for size in (500, 1000, 2000):
        CountedText.taken = 0
        doc = Doc(nlp.vocab, words=["x" * size], user_data={"luke_questions": [{"question": "Who?"}]})
        ((found,),) = qa.predict([doc])
        assert found.answers[0][:2] == (0, size)
        assert CountedText.taken == size
    assert windows[0] < windows[1] < windows[2]


def test_threshold_is_tuned():
    nlp = trained("luke_qa")
    qa = nlp.get_pipe("luke_qa")
    examples = make_examples(nlp)
    qa.cfg["no_answer_threshold"] = -100.0
    assert nlp.evaluate(make_examples(nlp))["qa_f"] == pytest.approx(1 / 5)
    tuned = qa.tune(examples)
    assert tuned == {"no_answer_threshold": 0.0, "qa_f": 1.0}
    assert qa.cfg["no_answer_threshold"] == 0.0
    assert all(get_rows(example.predicted, "luke_answers") is None for example in examples)
    assert nlp.evaluate(make_examples(nlp))["qa_f"] == 1.0
    with pytest.raises(ValueError, match=r"needs questions in doc\._\.luke_questions"):
        qa.tune([])


def test_tuning_reads_the_entities_of_the_predicted_questions(monkeypatch):
    nlp = trained("luke_qa")
    qa = nlp.get_pipe("luke_qa")
    examples = make_examples(nlp)
    examples[0].predicted._.luke_questions = [
        {**x, "entities": [[0, 3, "Who"]]} for x in examples[0].predicted._.luke_questions
    ]
    read = []
    predict = qa.predict

    def predict_and_note(docs):
        docs = list(docs)
        read.extend(question.get("entities") for doc in docs for question in doc._.luke_questions)
        return predict(docs)

    monkeypatch.setattr(qa, "predict", predict_and_note)
    qa.tune(examples)
    assert read[:2] == [[[0, 3, "Who"]]] * 2
    assert set(map(str, read[2:])) == {"None"}


# ---- checkpoints


def test_import_and_export(shared, tmp_path):
    """A fine-tuned checkpoint of transformers: the same logits, and all its tensors again when it is exported."""
    folder = shared("golden/hf_luke_question_answering")
    nlp, qa = make_qa(weights=lambda: read_checkpoint(folder), max_question_pieces=None)
    io, data = load_file(folder / "io.safetensors"), json.loads((folder / "io.json").read_text("utf8"))
    items = []
    for b, mask in enumerate(io["inputs/attention_mask"].bool()):
        real = io["inputs/entity_attention_mask"][b].bool()
        places = io["inputs/entity_position_ids"][b][real]
        pieces = io["inputs/input_ids"][b][mask].numpy()
        rows, first, last = io["inputs/entity_ids"][b][real], places[:, 0], places.max(1).values
        items.append(PassageItem(b, pieces, None, 1, 0, pieces > 0, rows.numpy(), first.numpy(), last.numpy()))
    logits = qa.model.predict(make_passage_batch(items))
    real = io["inputs/attention_mask"].bool()
    expected = torch.stack([io[f"outputs/{side}_logits"][real] for side in ("start", "end")], -1)
    assert (logits - expected).abs().max() <= max(1e-5, 10 * data["float32_vs_float64_max_abs_diff"])
    write_huggingface(qa.to_checkpoint(), tmp_path / "out")
    ours, theirs = load_file(tmp_path / "out/model.safetensors"), load_file(folder / "model.safetensors")
    assert set(ours) == set(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    again = read_checkpoint(tmp_path / "out")
    assert again.task == "question_answering"
    doc = nlp.make_doc("Ada lived in London.")
    other_nlp, other = make_qa(weights=lambda: again, max_question_pieces=None)
    assert other.answer(other_nlp.make_doc(doc.text), "Who?").score == qa.answer(doc, "Who?").score


def test_head_of_a_checkpoint_is_kept():
    """A fine-tuned head is trained on; a fresh one depends on the seed alone."""
    checkpoint = make_checkpoint()
    checkpoint.task = "question_answering"
    checkpoint.tensors["head.qa_outputs.weight"] = torch.full((2, 32), 0.25)
    checkpoint.tensors["head.qa_outputs.bias"] = torch.tensor([1.0, 2.0])
    _, qa = make_qa(weights=lambda: checkpoint)
    assert qa.model.shims[0].module.qa_outputs.bias.tolist() == [1.0, 2.0]
    exported = qa.to_checkpoint()
    assert exported.task == "question_answering"
    assert torch.equal(exported.tensors["head.qa_outputs.weight"], checkpoint.tensors["head.qa_outputs.weight"])
    assert torch.equal(
        exported.tensors["encoder.entities.table.weight"], checkpoint.tensors["encoder.entities.table.weight"]
    )
    fresh = [make_qa()[1].model.shims[0].module.qa_outputs.weight for _ in range(2)]
    assert torch.equal(*fresh)
    assert not torch.equal(fresh[0], torch.full((2, 32), 0.25))


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("n_best", 0, "n_best must be at least 1"),
        ("window", 0, "window must be at least 1"),
        ("max_answer_pieces", 0, "max_answer_pieces must be at least 1"),
        ("max_question_pieces", 0, "max_question_pieces must be at least 1"),
        ("max_entities", -1, "max_entities must be 0 or more, but it is -1"),
    ],
)
def test_settings(setting, value, message):
    with pytest.raises(ValueError, match=message):
        make_qa(initialize=False, **{setting: value})


def test_attention_is_checked():
    with pytest.raises(ValueError, match="attention must be one of"):
        make_qa(initialize=False, attention="two_way")
