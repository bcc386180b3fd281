"""Pipelines of every component, Docs with all that a component reads, and all that was found in a Doc."""

import numpy as np
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.aliases.build import build_store
from spacy_luke.annotations import get_rows, register_extensions, set_candidates_given, set_queries, set_questions
from spacy_luke.vectors.build import build_vectors
from tests import pipelines
from tests.components import known
from tests.components.listening import textcat_model
from tests.tiny import SENTENCES, make_checkpoint

ENTITIES = [f"Entity {i}" for i in range(9)]
WORDS = " ".join(SENTENCES).split()
KEY = "mentions"  # what the linker links
NAMES = "name\tentity\tcount\toccurrences\nBank of Ghana\tBank\t5\t5\nGhana\tGhana\t1\t2\nLondon\tLondon\t3\t9\n"


def random_texts(n, words=WORDS):
    chosen = np.random.default_rng(3)
    return [" ".join(chosen.choice(words, chosen.integers(1, 15))) for _ in range(n)]


def asked(nlp, text):
    """A Doc with everything that a component reads."""
    doc = nlp.make_doc(text)
    set_questions(doc, ["Who?", f"Where is {doc[0].text}?"])
    doc.spans[KEY] = [doc[i : i + 1] for i in range(0, len(doc), 4)]
    some = [(ENTITIES[(len(text) + i) % len(ENTITIES)], 1 / (i + 2)) for i in range(3)]
    set_candidates_given(doc, [(x.start_char, x.end_char, some) for x in doc.spans[KEY]])
    places = sorted({(x.idx, x.idx + len(x)) for x in doc})[:4]
    set_queries(doc, [{"query": "It was @placeholder .", "candidates": places}])
    return doc


def facts(doc):
    """All that was found, with its score."""
    found = {("ent", x.start, x.end, x.label_, x.kb_id_): x._.luke_score or 0.0 for x in doc.ents}
    for group in doc.spans.values():
        scores = group.attrs.get("scores", np.zeros(len(group)))
        found.update({(group.name, x.start, x.end, x.label_, x.kb_id_): y for x, y in zip(group, scores.tolist())})
    for x in doc.ents:
        found.update({("type", x.start, x.end, label): y for label, y in (x._.luke_types or {}).items()})
    for x in doc._.luke_relations:
        found["relation", x.head.start, x.head.end, x.tail.start, x.tail.end, x.label] = x.score
    for key in ("luke_answers", "luke_fillers"):
        for i, rows in enumerate(get_rows(doc, key) or []):
            found.update({(key, i, a, b): score for a, b, score in rows})
    for a, b, candidates in get_rows(doc, "luke_linked") or []:
        found.update({("link", a, b, name): score for name, _, score in candidates})
    found.update({("vector", i): float(row[0]) for i, row in enumerate(doc.tensor) if doc.tensor.ndim == 2})
    return found | {("category", name): score for name, score in doc.cats.items()}


def make_all(folder, attention="one_way", weights=None):
    """Every component of LUKE, and a listener; on one encoder, or in full attention each with its own."""
    shared = {"@architectures": "spacy-luke.SharedEncoder.v1"}
    nlp = pipelines.make_pipeline(weights=weights) if attention == "one_way" else make_own(weights)
    (folder / "names.tsv").write_text(NAMES, encoding="utf8")
    annotator = nlp.add_pipe("entity_annotator", config={"questions": False})
    annotator.store = build_store([folder / "names.tsv"], case="exact").store
    vectors = np.random.default_rng(0).normal(size=(len(ENTITIES), 13)).astype(np.float32)
    build_vectors(vectors, folder / "vectors", names=ENTITIES)
    encoder = shared if attention == "one_way" else {"train_precision": "float32"}
    config = {"model": {"attention": attention, "encoder": encoder}, "overlap": 16}
    linker = nlp.add_pipe("luke_linker", config={**config, "getter": {"@misc": "spacy-luke.span_group.v1", "key": KEY}})
    doc = asked(nlp, SENTENCES[0])
    gold = doc.copy()
    gold.spans["luke_links"] = [Span(gold, x.start, x.end, kb_id=ENTITIES[0]) for x in gold.spans[KEY]]
    weights = None if attention == "one_way" else weights or make_checkpoint
    linker.initialize(lambda: [Example(doc, gold)], nlp=nlp, weights=weights, vectors=str(folder / "vectors"))
    for p in linker.model.shims[0].module.parameters():
        p.data += 0.3
    if attention == "one_way":
        nlp.get_pipe("luke_encoder").cfg["overlap"] = 32  # as the others have it, for the listener
        gold.cats = {"one": 1.0, "other": 0.0}
        textcat = nlp.add_pipe("textcat", config={"model": textcat_model("words")})
        textcat.initialize(lambda: [Example(doc, gold)], nlp=nlp)
    return nlp


def make_own(weights=None):
    register_extensions()  # before there is any component that would do it
    nlp = spacy.blank("en")
    examples = [pipelines.make_example(nlp, text) for text in SENTENCES[:3]]
    for name in pipelines.COMPONENTS:
        model = {"attention": "full", "encoder": {"train_precision": "float32"}}
        model.update({"spans_per_word": None} if name == "luke_ner" else {})
        component = nlp.add_pipe(name, config={"model": model, **pipelines.SETTINGS[name]})
        component.initialize(lambda: examples, nlp=nlp, weights=weights or make_checkpoint)
    nlp.get_pipe("luke_ner").model.shims[0].module.classifier.bias.data[0] -= 3
    return nlp


def make_ernie(folder):
    return known.make(known.BOTH, known.make_vectors(folder), shared=True, **known.ALWAYS)[0]


MAKERS = {
    "shared": (make_all, asked, WORDS),
    "own_full": (lambda folder: make_all(folder, "full"), asked, WORDS),
    "ernie": (make_ernie, lambda nlp, text: known.annotate(nlp.make_doc(text)), " ".join(known.TEXTS).split()),
}
