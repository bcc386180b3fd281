"""Pipelines of components that share one luke_encoder, and comparisons of what they answer."""

import pytest
import spacy
import torch

from spacy_luke.bridge.optimizer import make_adamw
from tests.components.related import docs_of, make_examples, relations_of, settings_of, types_of
from tests.tiny import SENTENCES, make_checkpoint

SHARED = {"@architectures": "spacy-luke.SharedEncoder.v1"}
NAMES = ["luke_ner", "luke_typer", "luke_relation"]
LONG = " ".join(SENTENCES * 3)


def settings_for(name, attention, encoder, **config):
    if name != "luke_ner":
        return settings_of(name, attention, encoder=encoder, **config)
    model = {"attention": attention, "spans_per_word": None, "encoder": encoder}
    return {"overlap": 32, "max_span_words": 3, "overwrite": True, "model": model, **config}


def make_shared(attention="one_way", *, names=NAMES, owner="luke_encoder", upstream="*", pieces=8192, **encoder):
    """An initialised pipeline of components that share an encoder."""
    nlp = spacy.blank("en")
    model = {"train_precision": "float32", **encoder}
    nlp.add_pipe("luke_encoder", name=owner, config={"shared_pieces": pieces, "overlap": 32, "model": model})
    for name in names:
        nlp.add_pipe(name, config=settings_for(name, attention, {**SHARED, "upstream": upstream}))
    start(nlp, owner)
    return nlp


def start(nlp, owner="luke_encoder"):
    examples = make_examples(nlp)
    for name, component in nlp.pipeline:
        weights = {"weights": make_checkpoint} if name == owner else {}
        component.initialize(lambda: examples, nlp=nlp, **weights)


def noise(nlp):
    """Heads that find something nearly everywhere."""
    generator = torch.Generator().manual_seed(5)
    for name in NAMES:
        for p in nlp.get_pipe(name).model.shims[0].module.classifier.parameters():
            torch.nn.init.normal_(p, generator=generator)
    return nlp


def learn(nlp, steps=40, optimizer=None, **settings):
    optimizer = optimizer or make_adamw(learn_rate=4e-3)
    for _ in range(steps):
        losses = nlp.update(make_examples(nlp), sgd=optimizer, **settings)
    return losses


def state(shim):
    return {name: x.clone() for name, x in shim.module.state_dict().items()}


def equal(one, other):
    return all(torch.equal(x, other[name]) for name, x in one.items())


def answers(nlp, docs=None):
    found = []
    for doc in nlp.pipe(docs_of(nlp) if docs is None else docs):
        ents = {(x.start, x.end, x.label_): x._.luke_score for x in doc.ents}
        found.append((ents, types_of(doc), relations_of(doc)))
    return found


def same(one, other, **tolerance):
    for (ents, types, relations), (ents2, types2, relations2) in zip(one, other, strict=True):
        assert ents2 == pytest.approx(ents, **tolerance)
        assert set(types2) == set(types)
        assert all(types2[key] == pytest.approx(types[key], **tolerance) for key in types)
        assert relations2 == pytest.approx(relations, **tolerance)
