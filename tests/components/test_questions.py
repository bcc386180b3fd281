"""What `luke_qa` and `luke_cloze` have in common: they learn, score, save and load, and answer alike in any company."""

import json
import pickle

import pytest
import spacy
import torch
from spacy.tokens import DocBin
from spacy.training import Example
from thinc.api import SGD

from spacy_luke.annotations import get_rows, set_rows
from spacy_luke.bridge.optimizer import make_adamw
from tests.components.asked import (
    QUERIES,
    QUESTIONS,
    SETTINGS,
    asked_doc,
    gold_doc,
    make_examples,
    make_pipeline,
    trained,
)
from tests.tiny import SENTENCES, make_checkpoint, make_wordpiece

BOTH = ["luke_qa", "luke_cloze"]
GOLD = {"luke_qa": QUESTIONS, "luke_cloze": QUERIES}
ROWS = {"luke_qa": "luke_answers", "luke_cloze": "luke_fillers"}
SCORES = {"luke_qa": ("qa_em", "qa_f"), "luke_cloze": ("cloze_em", "cloze_f")}


ASK = {"luke_qa": "answer", "luke_cloze": "fill"}
NO_QUESTIONS = ["", " ", {"q": 1}, {"question": 5}, {"question": "\n"}, None, 7, ["Who?"]]
NO_QUERIES = ["", " ", {"q": 1}, {"query": 5}, None, 7, "no gap", "@placeholder @placeholder"]
NO_PLACES = [5, "ab", [[0, 3, 5]], [["a", "b"]], ["ab"], [[1.5, 3]], [[None, 3]], [3], [[3, 3]], [[0, 999]], {0: 3}]


def answers(doc, factory):
    return doc._.luke_answers if factory == "luke_qa" else doc._.luke_fillers


@pytest.mark.parametrize(
    ("factory", "asked"),
    [
        *(("luke_qa", x) for x in NO_QUESTIONS),
        *(("luke_qa", {"question": "Who?", "answers": x}) for x in NO_PLACES),
        *(("luke_qa", {"question": "Who?", "entities": x}) for x in [5, "ab", [[0, 3]], [[0, 1.5, "A"]], [[0, 3, 4]]]),
        *(("luke_cloze", x) for x in NO_QUERIES),
        *(("luke_cloze", {"query": "@placeholder", "candidates": x}) for x in NO_PLACES),
    ],
)
@pytest.mark.parametrize("text", [SENTENCES[0], ""])
def test_what_cannot_be_asked(factory, asked, text):
    """The component says it as the setter does, whether or not the Doc has anything to answer with."""
    nlp = trained(factory)
    doc = nlp.make_doc(text)
    with pytest.raises(ValueError, match=r"The (question|query)\b.* must ") as one:
        getattr(nlp.get_pipe(factory), ASK[factory])(doc, asked)
    with pytest.raises(ValueError, match=r"(Item|Query) 0\b.* must ") as several:
        setattr(doc._, nlp.get_pipe(factory).rows, [asked])
    assert str(one.value).partition(" must ")[2] == str(several.value).partition(" must ")[2]


@pytest.mark.parametrize("factory", BOTH)
def test_who_is_asked_about_what(factory):
    nlp = trained(factory)
    with pytest.raises(ValueError, match="Expected a Doc to ask about"):
        getattr(nlp.get_pipe(factory), ASK[factory])(SENTENCES[0], "Who is @placeholder?")
    if factory == "luke_qa":
        with pytest.raises(ValueError, match="The question must be a string or a dict"):
            nlp.get_pipe(factory).answer(nlp.make_doc(SENTENCES[0]), nlp.make_doc(""))


def asked_docs(nlp):
    """Docs with questions, among them a long one, an empty one, and one without any."""
    golds = [gold_doc(nlp, i) for i in (0, 1, 2, 3)]
    docs = [asked_doc(nlp, gold) for gold in golds]
    long = nlp.make_doc(" ".join(SENTENCES * 3))
    long.user_data["luke_questions"] = [{"question": "Who lived in London?"}]
    start = long.text.rindex("Berlin")
    long.user_data["luke_queries"] = [{"query": "He left @placeholder", "candidates": [[0, 12], [start, start + 6]]}]
    empty = nlp.make_doc("")
    empty.user_data["luke_questions"] = [{"question": "Who?"}]
    empty.user_data["luke_queries"] = [{"query": "@placeholder?"}]
    return [docs[0], nlp.make_doc(SENTENCES[0]), docs[1], long, empty, docs[2], nlp.make_doc(""), docs[3]]


def rows_of(docs, factory):
    return [get_rows(doc, ROWS[factory]) for doc in docs]


def assert_same(one, other):
    """Equal but for rounding: sums in other company may round otherwise."""
    assert len(one) == len(other)
    for some, more in zip(one, other):
        assert (some is None) == (more is None)
        for rows, others in zip(some or [], more or [], strict=True):
            assert len(rows) == len(others)
            for row, another in zip(rows[:3], others[:3]):
                assert row == pytest.approx(another, abs=1e-4)


@pytest.mark.product
@pytest.mark.parametrize("attention", ["full", "one_way"])
@pytest.mark.parametrize("factory", BOTH)
def test_learns_and_scores(factory, attention):
    nlp = trained(factory, attention)
    examples = make_examples(nlp)
    scores = nlp.evaluate(examples)
    assert [scores[name] for name in SCORES[factory]] == [1.0, 1.0]
    docs = list(nlp.pipe(asked_doc(nlp, example.reference) for example in examples))
    for doc, gold in zip(docs, GOLD[factory]):
        assert [(x.question, x.text) for x in answers(doc, factory)] == [(q, a[0] if a else "") for q, a in gold]
        for answer in answers(doc, factory):
            assert 0.5 < answer.score <= 1
            assert answer.span is None or answer.span.doc is doc


@pytest.mark.parametrize("factory", BOTH)
def test_docs_with_words_alone(factory):
    """Where only the words are known a blank is taken to follow each, as in the Doc's text."""
    nlp = trained(factory)
    spaced = spacy.tokens.Doc(nlp.vocab, SENTENCES[0].split())
    assert spaced.has_unknown_spaces
    gold = gold_doc(nlp, 0)
    for key in ("luke_questions", "luke_queries"):
        set_rows(spaced, key, get_rows(asked_doc(nlp, gold), key))
    nlp.get_pipe(factory)(spaced)
    assert [x.text for x in answers(spaced, factory)] == [a[0] for _, a in GOLD[factory][0]]


@pytest.mark.product
@pytest.mark.parametrize("attention", ["full", "one_way"])
@pytest.mark.parametrize("factory", BOTH)
def test_pipe_in_any_company(factory, attention):
    nlp = trained(factory, attention)
    one_by_one = [nlp(doc) for doc in asked_docs(nlp)]
    expected = rows_of(one_by_one, factory)
    assert [rows is None for rows in expected] == [False, True, False, False, False, False, True, False]
    assert expected[4] == ([[[0, 0, 1.0]]] if factory == "luke_qa" else [[]])
    assert answers(one_by_one[4], factory)[0].span is None
    for size in (1, 3, 100):
        assert_same(rows_of(nlp.pipe(asked_docs(nlp), batch_size=size), factory), expected)
    for size in (1, 100):
        nlp.get_pipe(factory).cfg["batch_size"] = size
        assert_same(rows_of(nlp.pipe(asked_docs(nlp)), factory), expected)


@pytest.mark.parametrize("factory", BOTH)
def test_two_processes(factory):
    nlp = trained(factory)
    expected = rows_of([nlp(doc) for doc in asked_docs(nlp)], factory)
    assert_same(rows_of(nlp.pipe(asked_docs(nlp), n_process=2, batch_size=2), factory), expected)


@pytest.mark.parametrize("factory", BOTH)
def test_docs_without_questions_cost_nothing(factory, monkeypatch):
    nlp = trained(factory)

    def never(*args):
        raise AssertionError("read")

    monkeypatch.setattr(nlp.get_pipe(factory).model, "_func", never)
    docs = list(nlp.pipe([*SENTENCES, ""]))
    assert all(get_rows(doc, ROWS[factory]) is None and answers(doc, factory) == [] for doc in docs)


@pytest.mark.product
@pytest.mark.parametrize("attention", ["full", "one_way"])
@pytest.mark.parametrize("factory", BOTH)
def test_saved_and_loaded(factory, attention, tmp_path):
    nlp = trained(factory, attention)
    expected = rows_of([nlp(doc) for doc in asked_docs(nlp)], factory)
    nlp.to_disk(tmp_path / "nlp")
    again = spacy.load(tmp_path / "nlp")
    assert again.get_pipe(factory).cfg == nlp.get_pipe(factory).cfg
    assert rows_of([again(doc) for doc in asked_docs(again)], factory) == expected
    other = spacy.blank("en")
    other.add_pipe(factory, config={**SETTINGS[factory], "model": {"attention": attention}})
    other.from_bytes(nlp.to_bytes())
    assert rows_of([other(doc) for doc in asked_docs(other)], factory) == expected
    component = pickle.loads(pickle.dumps(nlp.get_pipe(factory)))
    assert rows_of([component(doc) for doc in asked_docs(nlp)], factory) == expected
    names = dict(component.named_parameters())
    assert ("encoder.entities.table.weight" in names) == (factory == "luke_cloze")  # frozen for questions


@pytest.mark.parametrize("factory", BOTH)
def test_answers_survive_docbin(factory):
    nlp = trained(factory)
    docs = [nlp(doc) for doc in asked_docs(nlp)]
    binary = DocBin(store_user_data=True)
    for doc in docs:
        binary.add(doc)
    read = list(DocBin().from_bytes(binary.to_bytes()).get_docs(nlp.vocab))
    assert json.dumps(rows_of(read, factory)) == json.dumps(rows_of(docs, factory))  # msgpack makes tuples of lists
    assert_same(rows_of([nlp(doc) for doc in read], factory), rows_of(docs, factory))  # asked by tuples
    assert [x.text for x in answers(read[0], factory)] == [x.text for x in answers(docs[0], factory)]


@pytest.mark.parametrize("factory", BOTH)
def test_updates_add_up(factory):
    """Two updates before one step give the gradient of one update with all examples."""

    def step(parts):
        nlp, component = make_pipeline(factory)
        examples = make_examples(nlp)[:3]
        for part in parts:
            component.update(examples[part])
        component.finish_update(SGD(0.1, L2=0.0, grad_clip=0.0))
        return dict(component.named_parameters())

    together, apart = step([slice(0, 3)]), step([slice(0, 1), slice(1, 3)])
    for name, parameter in together.items():
        assert torch.allclose(parameter, apart[name], atol=2e-5), name


@pytest.mark.parametrize("factory", BOTH)
def test_drop_and_frozen_weights(factory):
    nlp, component = make_pipeline(factory)
    before = {n: p.detach().clone() for n, p in component.model.layers[0].shims[0].module.named_parameters()}
    losses = component.update(make_examples(nlp), drop=0.3)
    assert losses[factory] > 0
    after = dict(component.model.layers[0].shims[0].module.named_parameters())
    assert all(torch.equal(before[name], after[name]) for name in before)  # no step was asked for
    component.finish_update(make_adamw(learn_rate=1e-2))
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert ("entities.table.weight" in moved) == (factory == "luke_cloze")
    assert "words.piece.weight" in moved


def bert_weights():
    return make_checkpoint(tokenizer=make_wordpiece(), position_offset=0, max_positions=100, token_types=2)


@pytest.mark.parametrize("factory", BOTH)
def test_wordpiece_with_token_types(factory):
    """BERT's input: the model learns it, saves it, and the passage's type matters."""
    nlp, component = make_pipeline(factory, weights=bert_weights)
    examples = make_examples(nlp)
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(150):
        if component.update(examples, sgd=optimizer)[factory] < 0.02:
            break
    assert nlp.evaluate(make_examples(nlp))[SCORES[factory][0]] == 1.0
    (batch,) = component.batches(examples[:1])
    assert set(batch.types_N.tolist()) == {0, 1}
    for item in batch.items:
        assert item.pieces.tolist().count(component.tokenizer.sep_id) == 2
        assert item.types.tolist() == sorted(item.types.tolist())
    again = spacy.util.load_model_from_config(nlp.config, auto_fill=False).from_bytes(nlp.to_bytes())
    assert_same(
        rows_of([again(doc) for doc in asked_docs(again)], factory),
        rows_of([nlp(doc) for doc in asked_docs(nlp)], factory),
    )


@pytest.mark.parametrize("factory", BOTH)
def test_other_texts_than_the_gold(factory):
    nlp, component = make_pipeline(factory)
    gold = gold_doc(nlp, 0)
    with pytest.raises(ValueError, match="must have the same text"):
        component.update([Example(nlp.make_doc(gold.text + " More."), gold)])


@pytest.mark.parametrize("factory", BOTH)
def test_nothing_to_learn(factory):
    with pytest.raises(ValueError, match=r"found no (queries|questions)"):
        nlp = spacy.blank("en")
        make_pipeline(factory, examples=[Example(nlp.make_doc("A"), nlp.make_doc("A"))])
    nlp, component = make_pipeline(factory)
    plain = [Example(nlp.make_doc(text), nlp.make_doc(text)) for text in (*SENTENCES, "")]
    assert component.update(plain, sgd=make_adamw())[factory] == 0.0
    assert set(nlp.evaluate(plain)) >= set(SCORES[factory])


@pytest.mark.parametrize("factory", BOTH)
def test_not_initialised(factory):
    nlp, component = make_pipeline(factory, initialize=False)
    assert get_rows(nlp("No questions"), ROWS[factory]) is None
    with pytest.raises(ValueError, match=f"'{factory}' has no weights yet"):
        nlp(asked_docs(nlp)[0])


@pytest.mark.parametrize("factory", BOTH)
@pytest.mark.parametrize("setting", ["stride", "batch_size"])
def test_settings_are_checked(factory, setting):
    with pytest.raises(ValueError, match=f"{setting} must be at least 1, but it is 0"):
        make_pipeline(factory, initialize=False, **{setting: 0})
