"""Weights and gradients that are no numbers: one error that names the component, and no score that is none."""

import contextlib
import math

import pytest
import spacy
import torch
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.annotations import set_queries, set_questions
from spacy_luke.bridge.optimizer import make_adamw
from tests.components.every import KEY, MAKERS, asked, facts, make_all
from tests.tiny import SENTENCES

NAMES = ["luke_ner", "luke_typer", "luke_relation", "luke_qa", "luke_cloze", "luke_linker"]
ERNIE = ["ernie_typer", "ernie_relation"]
VALUES = [math.nan, math.inf, -math.inf, 1e30, 3e38]


@pytest.fixture(scope="module")
def luke(tmp_path_factory):
    return make_all(tmp_path_factory.mktemp("luke"))


@pytest.fixture(scope="module")
def ernie(tmp_path_factory):
    return MAKERS["ernie"][0](tmp_path_factory.mktemp("ernie"))


def with_entities(nlp, text):
    doc = asked(nlp, text)
    doc.set_ents([Span(doc, 0, 1, "PER"), Span(doc, 2, 4, "LOC")])
    return doc


def ernie_doc(nlp, text):
    return MAKERS["ernie"][1](nlp, "ada met bob in london .")


@contextlib.contextmanager
def broken(shim, value, only=None):
    """A value in the place of all parameters, or of one, for a while."""
    before = {name: x.clone() for name, x in shim.module.state_dict().items()}
    with torch.no_grad():
        for name, p in shim.module.named_parameters():
            if only is None or only in name:
                p.fill_(value)
    try:
        yield
    finally:
        shim.fill(before)


def check_prediction(nlp, names, shim, make_doc, *, must_fail):
    """The error that names a component and the Doc, or numbers alone."""
    docs = [make_doc(nlp, text) for text in SENTENCES[:2]]
    said = ""
    try:
        with nlp.select_pipes(enable=names):
            found = [facts(doc) for doc in nlp.pipe(docs)]
    except ValueError as error:
        said = str(error)
    if said:
        assert said.startswith(f"'{names[0]}': expected numbers as scores of the Doc that begins")
        assert any(repr(doc.text[:60]) in said for doc in docs)
        return True
    assert not must_fail
    assert all(math.isfinite(score) for scores in found for score in scores.values())
    return False


@pytest.mark.parametrize("part", ["head", "encoder"])
@pytest.mark.parametrize("name", [*NAMES, *ERNIE])
def test_predictions(name, part, luke, ernie):
    nlp, make_doc = (ernie, ernie_doc) if name in ERNIE else (luke, with_entities)
    component = nlp.get_pipe(name)
    shim = component.model.shims[0] if part == "head" else component.encoder
    assert not check_prediction(nlp, [name], shim, make_doc, must_fail=False)
    for value in VALUES:
        with broken(shim, value):
            check_prediction(nlp, [name], shim, make_doc, must_fail=math.isnan(value))
    assert not check_prediction(nlp, [name], shim, make_doc, must_fail=False)


def test_predictions_of_a_broken_proposer(luke):
    shim = luke.get_pipe("luke_ner").model.shims[0]
    with broken(shim, math.nan, only="proposer"):
        assert check_prediction(luke, ["luke_ner"], shim, with_entities, must_fail=True)


def test_word_states_for_listeners(luke):
    owner = luke.get_pipe("luke_encoder")
    with broken(owner.encoder, math.nan):
        with pytest.raises(ValueError, match=r"'luke_encoder': expected numbers as scores of the Doc that begins 'Ada"):
            owner.predict([luke.make_doc(SENTENCES[0])])


def gold_example(nlp, text):
    doc, gold = with_entities(nlp, text), with_entities(nlp, text)
    places = [(x.start_char, x.end_char) for x in gold.ents]
    gold.set_ents([Span(gold, x.start, x.end, x.label_, kb_id="Q1") for x in gold.ents])
    gold.spans["luke_types"] = [Span(gold, x.start, x.end, label) for x in gold.ents for label in ("person", "place")]
    gold.spans["luke_links"] = [Span(gold, x.start, x.end, kb_id="Entity 1") for x in gold.spans[KEY]]
    gold._.luke_relations = [(gold.ents[0], gold.ents[1], "near")]
    set_questions(gold, [{"question": "Who?", "answers": places[:1]}])
    set_queries(gold, [{"query": "It was @placeholder .", "candidates": places, "answers": places[:1]}])
    gold.cats = {"one": 1.0, "other": 0.0}
    return Example(doc, gold)


def ernie_example(nlp, text):
    doc, gold = (ernie_doc(nlp, text) for _ in range(2))
    gold.spans["luke_types"] = [Span(gold, x.start, x.end, x.label_.lower()) for x in gold.ents]
    gold._.luke_relations = [(gold.ents[0], gold.ents[1], "knows")]
    return Example(doc, gold)


@pytest.mark.parametrize("part", ["head", "encoder"])
@pytest.mark.parametrize("name", [*NAMES, *ERNIE])
def test_losses(name, part, luke, ernie):
    nlp, make_example = (ernie, ernie_example) if name in ERNIE else (luke, gold_example)
    component = nlp.get_pipe(name)
    shim = component.model.shims[0] if part == "head" else component.encoder
    examples = [make_example(nlp, text) for text in SENTENCES[:2]]
    assert math.isfinite(component.update(examples)[name])
    for value in (math.nan, math.inf):
        with broken(shim, value):
            with pytest.raises(
                ValueError, match=rf"^'{name}': expected a number as the loss, but it is (nan|inf) after 0 step"
            ):
                component.update(examples)
        assert all(p.grad is None for _, p in component.named_parameters())  # nothing is left for the next step
        assert component.encoder.sharing is None or name not in component.encoder.sharing.shares


@pytest.mark.parametrize("name", [*NAMES, *ERNIE])
@pytest.mark.parametrize("grad_clip", [0.0, 1.0])
def test_a_learning_rate_that_is_too_high(name, grad_clip, luke, ernie):
    """Training ends with an error that says what to lower; what is broken is not used without a word."""
    nlp, make_example = (ernie, ernie_example) if name in ERNIE else (luke, gold_example)
    nlp = spacy.util.load_model_from_config(nlp.config, auto_fill=False, validate=True).from_bytes(nlp.to_bytes())
    examples = [make_example(nlp, text) for text in SENTENCES[:2]]
    owner = nlp.pipe_names[nlp.pipe_names.index("luke_encoder" if name in NAMES else "ernie_encoder")]
    optimizer = make_adamw(learn_rate=1e36, grad_clip=grad_clip)
    with (
        nlp.select_pipes(enable=[owner, name]),
        pytest.raises(
            ValueError, match=rf"^'({name}|{owner})': expected a number as the .*{'Lower the learning rate'}"
        ),
    ):
        for _ in range(20):
            nlp.update(examples, sgd=optimizer)


def test_a_gradient_that_is_no_number_makes_no_step():
    weights = torch.nn.Parameter(torch.ones(3))
    optimizer = make_adamw(learn_rate=0.1, grad_clip=1.0)
    for _ in range(2):
        weights.grad = torch.ones(3)
        optimizer.step("some", [("w", weights)])
    before = weights.detach().clone()
    weights.grad = torch.tensor([1.0, math.inf, 0.0])
    with pytest.raises(
        ValueError, match=r"^'some': .* norm of the gradient, but it is inf after 2 step.*Lower the learning"
    ):
        optimizer.step("some", [("w", weights)])
    assert torch.equal(weights, before)
    assert weights.grad is None


def test_gradients_of_listeners(luke):
    owner = luke.get_pipe("luke_encoder")
    examples = [gold_example(luke, text) for text in SENTENCES[:2]]
    owner.update(examples)
    listener = owner.word_listeners()[0]
    assert listener in owner.listener_map["textcat"]
    gradients = [torch.full((len(x.predicted), 32), 1e30).numpy() for x in examples]
    with pytest.raises(ValueError, match="'textcat' gave back a gradient to 'luke_encoder' whose squares sum to inf"):
        owner.sharing.pending.take_words(listener, gradients)
    owner.sharing.pending.close()
