"""Docs whose entities have candidates, and an initialised luke_linker for them."""

import numpy as np
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.annotations import set_candidates_given
from spacy_luke.bridge.documents import read_document
from spacy_luke.components.linker.inputs import link_tasks
from spacy_luke.vectors.build import build_vectors
from tests.tiny import SENTENCES, make_checkpoint

SIZE = 12
ENTITIES = [f"Entity {i}" for i in range(20)]
NAMES = ["Ada Lovelace", "London", "Royal Society", "Nadia Haddad", "Bank of Ghana", "Accra", "Kofi Mensah", "Berlin"]


def make_store(folder):
    """Vectors with a bias in the last place."""
    rows = np.random.default_rng(0).normal(size=(len(ENTITIES), SIZE + 1)).astype(np.float32)
    return build_vectors(rows, folder / "vectors", names=ENTITIES).store


def candidates_of(name):
    """One to five entities, by the name."""
    first = sum(map(ord, name))
    return [(ENTITIES[(first + 3 * i) % len(ENTITIES)], 1 / (i + 2)) for i in range(first % 5 + 1)]


def make_doc(nlp, text):
    doc = nlp.make_doc(text)
    found = [doc.char_span(i, i + len(n)) for n in NAMES for i in range(len(text)) if text.startswith(n, i)]
    doc.set_ents([Span(doc, x.start, x.end, "X") for x in found])
    set_candidates_given(doc, [(x.start_char, x.end_char, candidates_of(x.text)) for x in found])
    return doc


def make_example(nlp, text):
    given, gold = make_doc(nlp, text), make_doc(nlp, text)
    gold.set_ents([Span(gold, x.start, x.end, "X", kb_id=candidates_of(x.text)[-1][0]) for x in gold.ents])
    return Example(given, gold)


def make_linker(
    store, *, attention="full", prior=False, nil=False, weights=make_checkpoint, examples=(), model=None, **config
):
    nlp = spacy.blank("en")
    settings = {"attention": attention, "prior": prior, "nil": nil, "encoder": {"train_precision": "float32"}}
    settings.update(model or {})
    linker = nlp.add_pipe("luke_linker", config={"model": settings, "overlap": 16, **config})
    examples = list(examples) or [make_example(nlp, text) for text in SENTENCES]
    linker.initialize(lambda: examples, nlp=nlp, weights=weights, vectors=str(store.path))
    for p in linker.model.shims[0].module.parameters():
        p.data += 0.3
    return nlp, linker


def make_tasks(linker, docs, table):
    tasks = []
    for doc in docs:
        mentions = [(x.start, x.end) for x in doc.ents]
        found = [table.candidates(x) for x in linker.candidates(doc, mentions)]
        tasks += [
            x for x, _ in link_tasks(linker.input(), read_document(doc, linker.tokenizer), mentions, found, table)
        ]
    return tasks
