"""`luke_encoder`: what components teach the encoder that they share."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import spacy
from spacy.training import Example
from thinc.api import Adam, warmup_linear

from spacy_luke.bridge.optimizer import make_adamw
from tests.components.related import make_examples, relations_of
from tests.components.sharing import (
    NAMES,
    answers,
    equal,
    learn,
    make_shared,
    noise,
    same,
    settings_for,
    state,
)
from tests.tiny import SENTENCES, make_checkpoint


@pytest.mark.slow
def test_learned_together(tmp_path):
    """All three by heart; the encoder is stored once."""
    nlp = make_shared()
    before = state(nlp.get_pipe("luke_encoder").encoder)
    losses = learn(nlp, 45)
    assert max(losses[name] for name in NAMES) < 0.3
    assert not equal(before, state(nlp.get_pipe("luke_encoder").encoder))
    scores = nlp.evaluate(make_examples(nlp))
    assert min(scores[f"{name}_f"] for name in ("ents", "types_micro", "relations")) > 0.9
    expected = answers(nlp)
    nlp.to_disk(tmp_path)
    sizes = {path.parent.name: path.stat().st_size for path in tmp_path.rglob("model.safetensors")}
    assert set(sizes) == {"luke_encoder", *NAMES}
    assert sizes["luke_encoder"] > 100_000
    assert max(sizes[name] for name in NAMES) < 6_000
    again = [spacy.load(tmp_path), pickle.loads(pickle.dumps(nlp)), copy.deepcopy(nlp)]
    again.append(spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()))
    for other in again:
        same(expected, answers(other), abs=1e-6)
        owner = other.get_pipe("luke_encoder")
        assert all(other.get_pipe(name).encoder is owner.encoder for name in NAMES)
        assert owner.encoder is not nlp.get_pipe("luke_encoder").encoder
    for other in again[1:3]:
        learn(other, 1)
    same(expected, answers(nlp), abs=0)  # copies are apart
    same(expected, answers(again[0]), abs=1e-6)


@pytest.mark.parametrize("stepped", [True, False])
def test_a_schedule_that_begins_with_nothing(stepped):
    """`nlp.update` with an optimizer makes a step of the encoder after each component: these are one update."""
    nlp, optimizer = make_shared(), make_adamw(learn_rate=warmup_linear(0.1, 2, 10))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        learn(nlp, 1, optimizer)
        assert not said
        if stepped:
            optimizer.step_schedules()
        learn(nlp, 1, optimizer)
    assert [str(x.message)[:26] for x in said] == ([] if stepped else ["The learning rate is still"])


def gradients_alone(name, attention):
    """The encoder's, of a component that has it for itself."""
    nlp, found = spacy.blank("en"), {}
    component = nlp.add_pipe(name, config=settings_for(name, attention, {"train_precision": "float32"}))
    component.initialize(lambda: make_examples(nlp), nlp=nlp, weights=make_checkpoint)
    component.update(make_examples(nlp), drop=0.0)
    component.finish_update(lambda key, x, d_x: (x, found.setdefault(key, d_x.copy())))
    return {parameter: x for (node, parameter), x in found.items() if node == component.encoder.id}


@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_gradient_is_the_sum_of_the_components(attention):
    """A step has the sum of the gradients of the mean losses: those of encoders of their own, added."""
    nlp = make_shared(attention)
    nlp.update(make_examples(nlp), sgd=False, drop=0.0)
    grad = {}
    nlp.get_pipe("luke_encoder").finish_update(lambda key, x, d_x: (x, grad.setdefault(key[1], d_x.copy())))
    expected = {}
    for name in NAMES:
        for parameter, x in gradients_alone(name, attention).items():
            expected[parameter] = expected.get(parameter, 0) + x
    assert set(grad) == set(expected)
    assert max(np.abs(x).max() for x in expected.values()) > 0.01
    for name, x in expected.items():
        assert np.abs(grad[name] - x).max() <= 1e-5, name


def test_accumulated_updates_give_the_mean():
    """Two updates with the same examples before a step are one."""

    def gradients(times):
        nlp, found = make_shared(), {}
        for _ in range(times):
            nlp.update(make_examples(nlp), sgd=False, drop=0.0)
        for _, component in nlp.pipeline:
            component.finish_update(lambda key, x, d_x: (x, found.setdefault((x.shape, key[1]), d_x.copy())))
        return found

    one, two = gradients(1), gradients(2)
    assert set(one) == set(two)
    for key, x in one.items():
        assert np.abs(two[key] - x).max() <= 1e-6, key


@pytest.mark.parametrize("kind", ["adamw", "thinc", "none"])
def test_optimizers(kind):
    """spaCy's own too; each component makes a step of what it added to the encoder's gradients."""
    nlp = make_shared()
    before = state(nlp.get_pipe("luke_encoder").encoder)
    optimizer = {"adamw": make_adamw(learn_rate=4e-3), "thinc": Adam(4e-3, use_averages=True), "none": None}[kind]
    losses = []
    for _ in range(10):
        found = nlp.update(make_examples(nlp), sgd=optimizer)
        losses.append(sum(found.values()))
    assert losses[-1] < 0.8 * losses[0]
    now = state(nlp.get_pipe("luke_encoder").encoder)
    assert not equal(before, now)
    if kind == "thinc":
        expected = answers(nlp)
        with nlp.use_params(optimizer.averages):
            averaged = answers(nlp)
        assert str(averaged) != str(expected)
        assert equal(now, state(nlp.get_pipe("luke_encoder").encoder))
        same(expected, answers(nlp), abs=0)


@pytest.mark.product
@pytest.mark.parametrize("how", ["exclude", "alone", "trainable"])
@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_frozen_encoder(attention, how):
    """It stays as it is to the last bit; what stands on it learns."""
    nlp = make_shared(attention, **({"trainable": False} if how == "trainable" else {}))
    learn(nlp, 1)  # and it may have learned before
    owner = nlp.get_pipe("luke_encoder")
    before, optimizer = state(owner.encoder), make_adamw(learn_rate=1e-2)
    heads = {name: state(nlp.get_pipe(name).model.shims[0]) for name in NAMES}
    answers(nlp)
    for _ in range(3):
        if how == "alone":
            for name in NAMES:
                nlp.get_pipe(name).update(make_examples(nlp), sgd=optimizer, drop=0.1)
        else:
            nlp.update(
                make_examples(nlp), sgd=optimizer, drop=0.1, exclude=["luke_encoder"] if how == "exclude" else []
            )
        answers(nlp)
    owner.finish_update(optimizer)
    assert equal(before, state(owner.encoder))
    assert all(p.grad is None for p in owner.encoder.module.parameters())
    for name in NAMES:
        assert not equal(heads[name], state(nlp.get_pipe(name).model.shims[0]))


def test_a_frozen_encoder_reads_the_words_of_an_update_once():
    nlp = make_shared()
    cache = nlp.get_pipe("luke_encoder").sharing.cache
    nlp.update(make_examples(nlp), sgd=make_adamw(), exclude=["luke_encoder"])
    assert cache.reused >= cache.encoded > 0
    encoded = cache.encoded
    nlp.update(make_examples(nlp), sgd=make_adamw())  # with gradients nothing is held
    assert cache.encoded == encoded


@pytest.mark.parametrize("frozen", NAMES)
def test_frozen_component(frozen):
    """Its head stays; the encoder learns from the others."""
    nlp = make_shared()
    before, encoder = state(nlp.get_pipe(frozen).model.shims[0]), state(nlp.get_pipe("luke_encoder").encoder)
    learn(nlp, 2, exclude=[frozen])
    assert equal(before, state(nlp.get_pipe(frozen).model.shims[0]))
    assert not equal(encoder, state(nlp.get_pipe("luke_encoder").encoder))


def test_answers_are_never_stale():
    """Predictions after each update equal those of a pipeline that holds nothing."""
    nlp = noise(make_shared())
    optimizer = make_adamw(learn_rate=1e-4)
    found = []
    for _ in range(3):
        learn(nlp, 1, optimizer)
        found.append(answers(nlp))
        nlp.get_pipe("luke_encoder").sharing.cache.clear()
        same(found[-1], answers(nlp), abs=1e-6)
    assert len({str(x) for x in found}) == 3
    nlp.from_bytes(noise(make_shared()).to_bytes())
    same(answers(noise(make_shared())), answers(nlp), abs=1e-6)


@pytest.mark.slow
def test_entities_of_an_update_annotate_the_next_component():
    """annotating_components: relations are learned between the entities that were just found."""
    nlp = make_shared(names=["luke_ner", "luke_relation"])
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(50):
        examples = [Example(nlp.make_doc(x.text), x.reference) for x in make_examples(nlp)]
        losses = nlp.update(examples, sgd=optimizer, annotates=["luke_ner"])
    assert 0 < losses["luke_relation"] < 0.3
    doc = nlp(SENTENCES[0])  # from raw text
    assert [x.text for x in doc.ents] == ["Ada Lovelace", "London", "Royal Society"]
    assert relations_of(doc).keys() == relations_of(examples[0].reference).keys()
