"""Docs with typed and related entities that a tiny pipeline can learn by heart."""

import functools
import json

import spacy
import torch
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.annotations import get_rows
from spacy_luke.bridge.optimizer import make_adamw
from tests.tiny import SENTENCES, make_checkpoint

TYPES = [  # of each entity; "Ghana" lies inside another one, "Berlin" has none
    {"Ada Lovelace": ["person", "scientist"], "London": ["place"], "Royal Society": ["group"]},
    {"Nadia Haddad": ["person"], "Bank of Ghana": ["group"], "Ghana": ["place"], "Accra": ["place", "city"]},
    {"Kofi Mensah": ["person"], "Berlin": [], "University of Lagos": ["group"]},
    {},
]
RELATIONS = [
    [("Ada Lovelace", "London", "lives_in"), ("London", "Royal Society", "home_of")],
    [("Nadia Haddad", "Bank of Ghana", "works_for"), ("Bank of Ghana", "Accra", "lives_in")],
    [("Kofi Mensah", "University of Lagos", "works_for")],
    [],
]
MORE = [("Ada Lovelace", "London", "knows"), ("Kofi Mensah", "University of Lagos", "knows")]  # second labels
LABELS = {"luke_typer": ["city", "group", "person", "place", "scientist"]}
LABELS["luke_relation"] = ["home_of", "lives_in", "works_for"]
KEY = "mentions"


def place(doc, words):
    start = doc.text.index(words)
    return doc.char_span(start, start + len(words))


def mark(doc, i):
    """The mentions: as entities where they are not nested, and all of them as spans."""
    spans = [place(doc, words) for words in TYPES[i]]
    doc.set_ents([Span(doc, x.start, x.end, label="ENT") for x in spans if x.text != "Ghana"])
    doc.spans[KEY] = spans
    return doc


def gold_doc(nlp, i, *, more=False, pairs=None):
    """more: pairs with two labels too; pairs: those that are given, or none."""
    doc = mark(nlp.make_doc(SENTENCES[i]), i)
    doc.spans["luke_types"] = [
        Span(doc, x.start, x.end, label=label)
        for words, labels in TYPES[i].items()
        for x in [place(doc, words)]
        for label in labels or [""]
    ]
    found = [*RELATIONS[i], *(x for x in MORE if more and x[0] in doc.text)]
    doc._.luke_relations = [(place(doc, head), place(doc, tail), label) for head, tail, label in found]
    if pairs is not None:
        doc._.luke_pairs = [(place(doc, head), place(doc, tail)) for head, tail in pairs[i]]
    return doc


def make_examples(nlp, **settings):
    golds = [gold_doc(nlp, i, **settings) for i in range(len(SENTENCES))]
    examples = [Example(mark(nlp.make_doc(gold.text), i), gold) for i, gold in enumerate(golds)]
    for example in examples:
        if get_rows(example.reference, "luke_pairs") is not None:
            example.predicted.user_data["luke_pairs"] = get_rows(example.reference, "luke_pairs")
    return examples


def docs_of(nlp):
    return [mark(nlp.make_doc(text), i) for i, text in enumerate(SENTENCES)]


def settings_of(name, attention="one_way", *, encoder=None, features=None, bias=True, **config):
    """Settings of a component in a tiny pipeline."""
    if features is None:
        features = "all" if attention == "one_way" else "entity"
    encoder = encoder or {"@architectures": "spacy-luke.LukeEncoder.v1", "train_precision": "float32"}
    model = {"attention": attention, "features": features, "bias": bias, "encoder": encoder}
    if name == "luke_typer":
        config.setdefault("getter", {"@misc": "spacy-luke.span_group.v1", "key": KEY})
    return {"overlap": 32, "model": model, **config}


def make_pipeline(name, attention="one_way", *, examples=None, weights=make_checkpoint, **config):
    """An initialised pipeline with one component of its own encoder."""
    nlp = spacy.blank("en")
    component = nlp.add_pipe(name, config=settings_of(name, attention, **config))
    examples = make_examples(nlp) if examples is None else examples(nlp)
    component.initialize(lambda: examples, nlp=nlp, weights=weights)
    return nlp, component


@functools.cache
def overfit(name, attention, config):
    """A pipeline that knows the sentences by heart, as bytes; its config. config: settings as JSON."""
    nlp, component = make_pipeline(name, attention, **json.loads(config))
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(300):
        if component.update(make_examples(nlp), sgd=optimizer)[name] < 0.02:
            break
    return nlp.to_bytes(), nlp.config


def trained(name, attention="one_way", **config):
    data, config = overfit(name, attention, json.dumps(config))
    nlp = spacy.util.load_model_from_config(config, auto_fill=False, validate=True)
    return nlp.from_bytes(data)


def noisy(name, attention="one_way", *, seed=5, scale=1.0, **config):
    """A pipeline whose head is noise too, so that it finds something nearly everywhere."""
    nlp, component = make_pipeline(name, attention, **config)
    generator = torch.Generator().manual_seed(seed)
    for p in component.model.shims[0].module.classifier.parameters():
        torch.nn.init.normal_(p, std=scale, generator=generator)
    return nlp, component


def types_of(doc, key=KEY):
    """(start, end) -> {label: probability} of each mention."""
    return {(x.start, x.end): x._.luke_types for x in doc.spans[key]}


def relations_of(doc):
    """(head, tail, label), head and tail as words -> probability."""
    found = {(x.head.start, x.head.end, x.tail.start, x.tail.end, x.label): x.score for x in doc._.luke_relations}
    assert len(found) == len(doc._.luke_relations)
    return found


LONG = " ".join(SENTENCES * 3)  # several windows
