"""Docs with questions and queries that a tiny pipeline can learn by heart."""

import functools

import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.annotations import get_rows
from spacy_luke.bridge.optimizer import make_adamw
from tests.tiny import SENTENCES, make_checkpoint

QUESTIONS = [
    [("Who lived in London?", ["Ada Lovelace"]), ("Where did Ada live?", ["London", "London near"])],
    [("Who works for the Bank?", ["Nadia Haddad"])],
    [("Which city did Kofi leave?", ["Berlin"])],
    [("Who came?", [])],
]
QUERIES = [
    [("@placeholder lived there", ["Ada Lovelace"]), ("Ada lived in @placeholder", ["London"])],
    [("It was Haddad of @placeholder", ["Bank of Ghana"])],
    [("He left @placeholder", ["Berlin"])],
    [],
]
CANDIDATES = [
    ["Ada Lovelace", "London", "Royal Society"],
    ["Nadia Haddad", "Bank of Ghana", "Ghana", "Accra"],
    ["Kofi Mensah", "Berlin", "University of Lagos"],
    [],
]
SETTINGS = {
    "luke_qa": {"stride": 16, "max_question_pieces": 28, "max_answer_pieces": 20, "no_answer_threshold": 0.0},
    "luke_cloze": {"stride": 16},
}


def places(text, words):
    return [[text.index(x), text.index(x) + len(x)] for x in words]


def gold_doc(nlp, i):
    text = SENTENCES[i]
    doc = nlp.make_doc(text)
    doc.user_data["luke_questions"] = [
        {"id": f"{i}.{k}", "question": q, "answers": places(text, a)} for k, (q, a) in enumerate(QUESTIONS[i])
    ]
    doc.user_data["luke_queries"] = [
        {"id": f"{i}.{k}", "query": q, "candidates": places(text, CANDIDATES[i]), "answers": places(text, a)}
        for k, (q, a) in enumerate(QUERIES[i])
    ]
    return doc


def asked_doc(nlp, gold):
    """The same questions without answers."""
    doc = nlp.make_doc(gold.text)
    for key in ("luke_questions", "luke_queries"):
        items = get_rows(gold, key)
        doc.user_data[key] = [{k: v for k, v in item.items() if k != "answers"} for item in items]
    return doc


def make_examples(nlp):
    golds = [gold_doc(nlp, i) for i in range(len(SENTENCES))]
    return [Example(asked_doc(nlp, gold), gold) for gold in golds]


def make_pipeline(factory, *, weights=None, examples=None, initialize=True, attention="full", model=None, **config):
    nlp = spacy.blank("en")
    settings = {"attention": attention, **(model or {}), "encoder": {"train_precision": "float32"}}
    component = nlp.add_pipe(factory, config={**SETTINGS[factory], "model": settings, **config})
    if initialize:
        given = make_examples(nlp) if examples is None else examples
        component.initialize(lambda: given, nlp=nlp, weights=weights or make_checkpoint)
    return nlp, component


@functools.cache
def overfit(factory, attention="full"):
    """A pipeline that knows the answers by heart, as bytes; its config."""
    nlp, component = make_pipeline(factory, attention=attention)
    examples = make_examples(nlp)
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(200):
        if component.update(examples, sgd=optimizer)[factory] < 0.01:
            break
    return nlp.to_bytes(), nlp.config


def trained(factory, attention="full"):
    data, config = overfit(factory, attention)
    nlp = spacy.util.load_model_from_config(config, auto_fill=False, validate=True)
    return nlp.from_bytes(data)


QUESTION = "Who lived in London?"
LONG = " ".join([*SENTENCES[1:], *SENTENCES[1:], SENTENCES[0]])


def make_qa(**config):
    return make_pipeline("luke_qa", **config)


def link(doc, *words):
    """Linked entities of a Doc: the words are titles."""
    places = [(doc.text.index(word), doc.text.index(word) + len(word)) for word in words]
    doc.spans["luke_links"] = [
        Span(doc, span.start, span.end, label="ENTITY", kb_id=word)
        for word, span in zip(words, (doc.char_span(*place) for place in places))
    ]
    return doc


def items_of(qa, doc, question, *, learn=False):
    gold = {"question": question, "answers": []} if isinstance(question, str) else question
    reference = doc.copy()
    reference.user_data["luke_questions"] = [gold]
    if learn:
        return [item for batch in qa.batches([Example(doc, reference)]) for item in batch.items]
    return list(qa._items([(doc, gold)], {}))


def only_warning(caught):
    (warning,) = caught
    return str(warning.message)
