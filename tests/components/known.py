"""Docs with linked entities that have vectors, and pipelines of a tiny ERNIE that reads them."""

import numpy as np
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.vectors.build import build_vectors
from tests.tiny import ENTITY_SIZE as SIZE
from tests.tiny import make_ernie

NAMES = ["Q1", "Q2", "Q3"]
TEXTS = ["ada met bob in london .", "in london ada lost a hat . bob found it .", "nothing was here ."]
ADA, BOB, LONDON = ("ada", "Q1"), ("bob", "Q2"), ("london", "Q3")


def make_vectors(folder):
    values = np.random.default_rng(0).normal(size=(3, SIZE)).astype("float32")
    build_vectors(values, folder / "vectors", names=NAMES)
    return folder / "vectors"


def annotate(doc, *, linked=True):
    ents = []
    for word in doc:
        for text, name in (ADA, BOB, LONDON):
            if word.text == text:
                ents.append(
                    Span(doc, word.i, word.i + 1, "LOC" if text == "london" else "PER", kb_id=name if linked else "")
                )
    doc.set_ents(ents)
    return doc


def gold_of(nlp, text):
    doc = annotate(nlp.make_doc(text))
    doc.spans["luke_types"] = [Span(doc, e.start, e.end, label=e.label_.lower()) for e in doc.ents]
    if len(doc.ents) > 1:
        doc._.luke_relations = [(doc.ents[0], doc.ents[1], "knows")]
    return doc


def make(names, vectors, *, shared=False, weights=None, **changes):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    own = {}
    if shared:
        nlp.add_pipe("ernie_encoder", config={"overlap": 8})
        own = {"model": {"encoder": {"@architectures": "spacy-luke.SharedEncoder.v1"}}}
    for name in names:
        nlp.add_pipe(name, config={**own, **changes.get(name, {})})
    golds = [gold_of(nlp, text) for text in TEXTS]
    examples = [Example(annotate(nlp.make_doc(x.text)), x) for x in golds]
    for name, pipe in nlp.pipeline:
        if name == "ernie_encoder" or (name.startswith("ernie") and not shared):
            pipe.initialize(lambda: examples, nlp=nlp, weights=weights or (lambda: make_ernie(vectors)))
        elif name.startswith("ernie"):
            pipe.initialize(lambda: examples, nlp=nlp)
    return nlp, examples


def annotated(nlp, texts=TEXTS, *, linked=True, batch_size=None):
    docs = [annotate(nlp.make_doc(text), linked=linked) for text in texts]
    return list(nlp.pipe(docs, batch_size=batch_size or 2))


def results(docs):
    return [
        (
            [(e.start, {k: round(v, 5) for k, v in (e._.luke_types or {}).items()}) for e in doc.ents],
            [(r.head.start, r.tail.start, r.label, round(r.score, 5)) for r in doc._.luke_relations],
        )
        for doc in docs
    ]


BOTH = ("ernie_typer", "ernie_relation")
ALWAYS = {"ernie_typer": {"always_best": True}, "ernie_relation": {"none": None}}
