"""What a component counts in what a shared encoder learns; and what is held of an encoder that has learned."""

import numpy as np
import pytest
import spacy
from spacy.training import Example
from tiny import make_checkpoint

from spacy_luke.bridge.optimizer import make_adamw


def make_pipeline(docs, **weights):
    """luke_encoder, luke_ner and another luke_ner; weights: of the two."""
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_encoder", config={"model": {"train_precision": "float32"}})
    for name in ("first", "second"):
        shared = {"@architectures": "spacy-luke.SharedEncoder.v1", "weight": weights.get(name, 1.0)}
        model = {"proposer_size": 8, "encoder": shared}
        nlp.add_pipe("luke_ner", name=name, config={"model": model, "overlap": 32, "max_span_words": 3})
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in docs(nlp)]
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
        found[name] = {
            key: (p.grad / proc._divisor).numpy() for key, p in proc.named_parameters() if p.grad is not None
        }
    parameters = nlp.get_pipe("luke_encoder").encoder.named_parameters()
    found["encoder"] = {key: p.grad.numpy() for key, p in parameters if p.grad is not None}
    return found


def test_gradients_are_summed_by_weight(docs):
    alone = {name: gradients(*make_pipeline(docs), [name]) for name in ("first", "second")}
    both = gradients(*make_pipeline(docs, first=0.25, second=3.0), ["first", "second"])
    for key, found in both["encoder"].items():
        expected = 0.25 * alone["first"]["encoder"][key] + 3.0 * alone["second"]["encoder"][key]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    for name in ("first", "second"):  # heads learn as if they were alone
        for key, found in both[name].items():
            np.testing.assert_allclose(found, alone[name][name][key], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_weight_must_be_positive(docs, weight):
    with pytest.raises(ValueError, match="weight must be above 0"):
        make_pipeline(docs, first=weight)


def test_states_of_before_a_step_are_not_held(docs):
    """Predictions between updates, as in training, are those of the parameters that there are."""
    nlp, examples = make_pipeline(docs)
    optimizer = make_adamw(learn_rate=1e-2)
    texts = [example.reference.text for example in examples]
    for _ in range(2):
        list(nlp.pipe(texts))
        nlp.update(examples, sgd=optimizer)
    fresh, _ = make_pipeline(docs)
    fresh.from_bytes(nlp.to_bytes())
    docs_of = [fresh.make_doc(text) for text in texts]
    found, expected = (pipeline.get_pipe("first").predict(docs_of) for pipeline in (nlp, fresh))
    assert str(found) == str(expected)
    assert nlp.get_pipe("luke_encoder").encoder.cache.encoded > 0
