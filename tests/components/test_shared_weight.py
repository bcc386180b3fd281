"""What a component counts in what a shared encoder learns; and what is held of an encoder that has learned."""

import numpy as np
import pytest
import spacy
import torch
from spacy.training import Example
from thinc.api import Adam

from spacy_luke.bridge.optimizer import make_adamw
from tests.components.recognised import gold_docs
from tests.components.related import make_examples as related_examples
from tests.components.sharing import make_shared, settings_for, state
from tests.tiny import make_checkpoint


def make_pipeline(**weights):
    """luke_encoder, luke_ner and another luke_ner; weights: of the two."""
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_encoder", config={"model": {"train_precision": "float32"}})
    for name in ("first", "second"):
        shared = {"@architectures": "spacy-luke.SharedEncoder.v1", "weight": weights.get(name, 1.0)}
        model = {"proposer_size": 8, "encoder": shared}
        nlp.add_pipe("luke_ner", name=name, config={"model": model, "overlap": 32, "max_span_words": 3})
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in gold_docs(nlp)]
    nlp.get_pipe("luke_encoder").initialize(lambda: examples, nlp=nlp, weights=make_checkpoint)
    for seed, name in enumerate(("first", "second")):
        nlp.get_pipe(name).initialize(lambda: examples, nlp=nlp, seed=seed)
    return nlp, examples


def gradients(nlp, examples, names):
    """Of the encoder, and of the heads of the components that are updated, before the step."""
    nlp.get_pipe("luke_encoder").update(examples)
    found = {}
    for name in names:
        proc = nlp.get_pipe(name)
        proc.update(examples)
        found[name] = {key: (p.grad / proc.divisor).numpy() for key, p in proc.named_parameters() if p.grad is not None}
    found["encoder"] = encoder_gradients(nlp.get_pipe("luke_encoder"))
    return found


def encoder_gradients(component):
    """Those that the next step is made with."""
    if component.shared or component.name == "luke_encoder":
        component.encoder.sharing.gather()
    parameters = component.encoder.named_parameters()
    divisor = 1.0 if component.shared or component.name == "luke_encoder" else component.divisor
    return {key: (p.grad / divisor).numpy() for key, p in parameters if p.grad is not None}


def head_gradients(component):
    head = component.model.shims[0]
    return {key: (p.grad / component.divisor).numpy() for key, p in head.named_parameters() if p.grad is not None}


def assert_close(found, expected):
    assert found.keys() == expected.keys()
    assert found
    for key, x in expected.items():
        np.testing.assert_allclose(found[key], x, rtol=1e-4, atol=1e-6 * max(1.0, abs(x).max()), err_msg=key)


def test_gradients_are_summed_by_weight():
    alone = {name: gradients(*make_pipeline(), [name]) for name in ("first", "second")}
    both = gradients(*make_pipeline(first=0.25, second=3.0), ["first", "second"])
    assert both["encoder"]
    for key, found in both["encoder"].items():
        expected = 0.25 * alone["first"]["encoder"][key] + 3.0 * alone["second"]["encoder"][key]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    for name in ("first", "second"):  # heads learn as if they were alone
        for key, found in both[name].items():
            np.testing.assert_allclose(found, alone[name][name][key], rtol=1e-4, atol=1e-5)


NAMES = ("luke_ner", "luke_typer", "luke_relation")


def make_own(*names):
    """Components with encoders of their own."""
    nlp = spacy.blank("en")
    for name in names:
        component = nlp.add_pipe(name, config=settings_for(name, "one_way", {"train_precision": "float32"}))
        component.initialize(lambda: related_examples(nlp), nlp=nlp, weights=make_checkpoint)
    return nlp


def without(example, *kinds):
    """The example without gold for some components."""
    gold = example.reference.copy()
    if "luke_ner" in kinds:
        gold.set_ents([], missing=[gold[:]])
    if "luke_typer" in kinds:
        del gold.spans["luke_types"]
    if "luke_relation" in kinds:
        gold.user_data.update(luke_pairs=[], luke_relations=[])
    return Example(example.predicted.copy(), gold)


def learned(nlp, updates, names):
    """Gradients of encoder and heads, after updates, for the step."""
    for examples in updates:
        nlp.update(examples, sgd=False)
    found = {}
    for name in names:
        component = nlp.get_pipe(name)
        found[name] = head_gradients(component)
        if not component.shared:
            found["encoder"] = encoder_gradients(component)
    if "luke_encoder" in nlp.pipe_names:
        found["encoder"] = encoder_gradients(nlp.get_pipe("luke_encoder"))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_updates_without_gold_change_nothing(name):
    """An encoder that is shared learns what an own one does."""
    nlp = make_shared(names=[name])
    gold = related_examples(nlp)[:3]
    empty = [without(x, name) for x in gold[:2]]
    expected = learned(make_own(name), [gold], [name])
    for updates in ([gold], [gold, empty], [empty, gold, empty]):
        for pipeline in (make_own(name), make_shared(names=[name])):
            found = learned(pipeline, updates, [name])
            for part in (name, "encoder"):
                assert_close(found[part], expected[part])


@pytest.mark.filterwarnings("ignore:.*have a head or tail that is no mention")
def test_halves_are_the_whole():
    """Of a shared encoder too, where the halves have different numbers of losses, and components gold in one only."""
    first, second, third = related_examples(make_shared())[:3]
    second, third = without(second, "luke_relation"), without(third, "luke_ner", "luke_typer")
    whole = learned(make_shared(), [[first, second, third]], NAMES)
    for updates in ([[first], [second, third]], [[third], [first], [second]]):
        halves = learned(make_shared(), updates, NAMES)
        for part in (*NAMES, "encoder"):
            assert_close(halves[part], whole[part])


@pytest.mark.parametrize("make_optimizer", [lambda: make_adamw(learn_rate=1e-2), lambda: Adam(1e-2)])
def test_steps_are_those_of_an_own_encoder(make_optimizer):
    """Several steps, each of an update with gold and one without; nothing of a step is left for the next."""
    after = []
    for nlp in (make_own("luke_typer"), make_shared(names=["luke_typer"])):
        optimizer = make_optimizer()
        gold = related_examples(nlp)[:3]
        for _ in range(3):
            nlp.update(gold, sgd=False)
            nlp.update([without(gold[0], "luke_typer")], sgd=False)
            for _, component in nlp.pipeline:
                component.finish_update(optimizer)
        typer = nlp.get_pipe("luke_typer")
        assert typer.encoder.sharing is None or not typer.encoder.sharing.shares
        assert all(p.grad is None for p in typer.encoder.module.parameters())
        after.append({**state(typer.encoder), **state(typer.model.shims[0])})
    for key, x in after[0].items():
        torch.testing.assert_close(after[1][key], x, atol=2e-4, rtol=1e-3)  # Adam's first steps take signs


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_weight_must_be_positive(weight):
    with pytest.raises(ValueError, match="weight must be above 0"):
        make_pipeline(first=weight)


def test_states_of_before_a_step_are_not_held():
    """Predictions between updates, as in training, are those of the parameters that there are."""
    nlp, examples = make_pipeline()
    optimizer = make_adamw(learn_rate=1e-2)
    texts = [example.reference.text for example in examples]
    for _ in range(2):
        list(nlp.pipe(texts))
        nlp.update(examples, sgd=optimizer)
    fresh, _ = make_pipeline()
    fresh.from_bytes(nlp.to_bytes())
    docs_of = [fresh.make_doc(text) for text in texts]
    found, expected = (pipeline.get_pipe("first").predict(docs_of) for pipeline in (nlp, fresh))
    assert str(found) == str(expected)
    assert nlp.get_pipe("luke_encoder").sharing.cache.encoded > 0
