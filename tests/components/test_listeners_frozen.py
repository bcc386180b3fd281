"""spaCy's own components on an encoder that is frozen, or that learns from some of them."""

import pickle

import pytest
import torch
from spacy.training import Example

from spacy_luke.bridge.optimizer import make_adamw
from tests.components.listening import (
    KINDS,
    changed,
    make_pipeline,
    parameters,
)
from tests.tiny import SENTENCES


@pytest.mark.parametrize("kind", KINDS)
def test_a_frozen_encoder_stays_as_it_is(kind):
    nlp, owner, examples = make_pipeline("luke_ner", "tagger", "textcat", kind=kind)
    optimizer, before = make_adamw(learn_rate=1e-2), parameters(owner)
    losses = [
        nlp.update(examples, sgd=optimizer, exclude=["luke_encoder"], annotates=["luke_encoder"]) for _ in range(30)
    ]
    assert not changed(owner, before)
    assert losses[-1]["tagger"] < losses[0]["tagger"]
    assert losses[-1]["textcat"] < losses[0]["textcat"]
    nlp.update(examples, sgd=optimizer)
    assert changed(owner, before)


@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_that_is_not_trainable(kind):
    nlp, owner, examples = make_pipeline("luke_ner", "tagger", kind=kind, model={"trainable": False})
    optimizer, before = make_adamw(learn_rate=1e-2), parameters(owner)
    losses = [nlp.update(examples, drop=0.2, sgd=optimizer)["tagger"] for _ in range(30)]
    assert losses[-1] < losses[0]
    assert not changed(owner, before)


def test_a_frozen_encoder_that_annotates_nothing_is_an_error():
    nlp, _, examples = make_pipeline("tagger")
    with pytest.raises(ValueError, match="E203"):
        nlp.update(examples, sgd=make_adamw(), exclude=["luke_encoder"])


@pytest.mark.product
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frozen", ["tagger", "textcat"])
@pytest.mark.parametrize("sgd", [True, False])
def test_a_frozen_listener(frozen, kind, sgd):
    """It gives nothing back; the others' gradients are not lost, wherever it stands."""
    nlp, owner, examples = make_pipeline("tagger", "textcat", "luke_ner", kind=kind)
    optimizer, before = make_adamw(learn_rate=1e-3), parameters(owner)
    other = "textcat" if frozen == "tagger" else "tagger"
    frozen_before = nlp.get_pipe(frozen).model.to_bytes()
    for _ in range(3):
        losses = nlp.update(examples, sgd=optimizer if sgd else False, exclude=[frozen])
        if not sgd:  # as in `spacy train`
            for _, component in nlp.pipeline:
                component.finish_update(optimizer)
            assert owner.sharing.pending is None
    assert losses[other] > 0
    assert losses["luke_encoder"] > 0
    assert changed(owner, before)
    assert nlp.get_pipe(frozen).model.to_bytes() == frozen_before
    nlp.update(examples, sgd=optimizer)  # thawed
    assert owner.sharing.pending is None
    nlp.update(examples, sgd=optimizer, exclude=[frozen])
    doc = pickle.loads(pickle.dumps(nlp))(SENTENCES[0])  # while a pass still waits
    assert [x.tag_ for x in doc] == [x.tag_ for x in nlp(SENTENCES[0])]


def test_examples_without_gold():
    """A component that has nothing to learn from a batch gives nothing back."""
    nlp, owner, examples = make_pipeline("ner", "tagger")
    plain = [Example.from_dict(nlp.make_doc(text), {}) for text in SENTENCES]
    optimizer = make_adamw(learn_rate=1e-3)
    for batch in (plain, examples, plain):
        before = {name: x.clone() for name, x in owner.encoder.module.state_dict().items()}
        nlp.update(batch, sgd=False)
        for _, component in nlp.pipeline:
            component.finish_update(optimizer)
        learned = any(not torch.equal(x, before[name]) for name, x in owner.encoder.module.state_dict().items())
        assert learned or batch is plain
        assert owner.sharing.pending is None
