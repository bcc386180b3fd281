"""A pipeline of noise with every component of the package, and gold documents that say what it says."""

import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.annotations import get_rows, set_queries, set_questions, set_rows
from tests.tiny import SENTENCES, make_checkpoint

QUESTION, QUERY = "Who left Berlin?", "The village @placeholder was empty."
COMPONENTS = ("luke_ner", "luke_typer", "luke_relation", "luke_qa", "luke_cloze")
SETTINGS = {
    "luke_ner": {"overlap": 32, "max_span_words": 3},
    "luke_typer": {"overlap": 32, "always_best": True},
    "luke_relation": {"overlap": 32, "none": None},
    "luke_qa": {"stride": 16, "no_answer_threshold": 0.0, "entities": None},
    "luke_cloze": {"stride": 16},
}


def make_gold(nlp: Language, text: str) -> Doc:
    """Something to initialise from."""
    doc = nlp.make_doc(text)
    doc.set_ents([Span(doc, 0, 2, "PER"), Span(doc, 4, 5, "LOC")])
    doc.spans["luke_types"] = [Span(doc, 0, 2, "person"), Span(doc, 4, 5, "place"), Span(doc, 4, 5, "city")]
    doc._.luke_relations = [(doc.ents[0], doc.ents[1], "near")]
    places = [(span.start_char, span.end_char) for span in doc.ents]
    set_questions(doc, [{"question": QUESTION, "answers": places[:1]}, {"question": "Why?", "answers": []}])
    set_queries(doc, [{"query": QUERY, "candidates": places, "answers": places[:1]}])
    return doc


def make_example(nlp: Language, text: str, given: Doc | None = None) -> Example:
    """Gold beside `given`, by default a fresh Doc, which gets the gold's entities and nothing else of it."""
    gold = make_gold(nlp, text)
    given = nlp.make_doc(text) if given is None else given
    given.set_ents([Span(given, e.start, e.end, e.label_) for e in gold.ents])
    return Example(given, gold)


def make_pipeline(*names: str, weights=None, **changes: dict) -> Language:
    """names: of components, all where none are named; weights: of the encoder, as `initialize` takes it; changes:
    settings of the components."""
    weights = weights or (lambda: make_checkpoint(max_positions=130))
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("luke_encoder", config={"model": {"train_precision": "float32"}})
    for name in names or COMPONENTS:
        model = {"attention": "one_way", "encoder": {"@architectures": "spacy-luke.SharedEncoder.v1"}}
        nlp.add_pipe(name, config={"model": model, **SETTINGS[name], **changes.get(name, {})})
    sentencizer = nlp.get_pipe("sentencizer")
    examples = [make_example(nlp, text, sentencizer(nlp.make_doc(text))) for text in SENTENCES[:3]]
    for name, component in nlp.pipeline:
        if name == "luke_encoder":
            component.initialize(lambda: examples, nlp=nlp, weights=weights)
        elif name.startswith("luke_"):
            component.initialize(lambda: examples, nlp=nlp)
    if "luke_ner" in nlp.pipe_names:  # a head of noise finds next to nothing
        head = nlp.get_pipe("luke_ner").model.shims[0].module
        head.classifier.bias.data[0] -= 6
    return nlp


def annotate(nlp: Language, texts=SENTENCES) -> list:
    docs = []
    for text in texts:
        doc = nlp.make_doc(text)
        if "luke_qa" in nlp.pipe_names:
            set_questions(doc, [QUESTION, "Why?"])
        if "luke_cloze" in nlp.pipe_names:
            set_queries(doc, [QUERY])
        docs.append(doc)
    return list(nlp.pipe(docs))


def as_gold(doc: Doc) -> Doc:
    """The predictions of a Doc as gold."""
    gold = doc.copy()
    gold.spans["luke_types"] = [
        Span(gold, span.start, span.end, label) for span in doc.ents for label in (span._.luke_types or {"": 1.0})
    ]
    for asked, found in (("luke_questions", "luke_answers"), ("luke_queries", "luke_fillers")):
        items = zip(get_rows(gold, asked) or [], get_rows(gold, found) or [])
        rows = [{**item, "answers": [list(x[:2]) for x in best[:1] if x[1] > x[0]]} for item, best in items]
        set_rows(gold, asked, rows)
        set_rows(gold, found, None)
    return gold


def other_weights(nlp):
    """The same pipeline with other weights in all parts."""
    with torch.no_grad():
        for name in nlp.pipe_names[1:]:
            for shim in nlp.get_pipe(name).own_shims.values():
                for p in shim.module.parameters():
                    p.add_(0.01)
    return nlp


def answers(nlp):
    return [[(e.start, e.end, e.label_, e._.luke_types) for e in doc.ents] for doc in annotate(nlp)]
