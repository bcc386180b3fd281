"""luke_ner with a tiny LUKE of noise, and a few sentences that it can learn by heart."""

import functools

import spacy
from spacy.training import Example

from spacy_luke.bridge.optimizer import make_adamw
from tests.tiny import SENTENCES, make_checkpoint

FLAT = [
    [("Ada Lovelace", "PER"), ("London", "LOC"), ("Royal Society", "ORG")],
    [("Nadia Haddad", "PER"), ("Bank of Ghana", "ORG"), ("Accra", "LOC")],
    [("Kofi Mensah", "PER"), ("Berlin", "LOC"), ("University of Lagos", "ORG")],
    [],
]
NESTED = [[], [("Ghana", "LOC")], [("Lagos", "LOC")], []]
LABELS = ["LOC", "ORG", "PER"]


def gold_docs(nlp, spans_key=None):
    """The sentences with their entities; under a spans_key, with the nested ones too."""
    docs = []
    for text, flat, nested in zip(SENTENCES, FLAT, NESTED, strict=True):
        doc = nlp.make_doc(text)
        found = [doc.char_span(text.index(x), text.index(x) + len(x), label=label) for x, label in flat + nested]
        if spans_key is None:
            doc.set_ents(found[: len(flat)])
        else:
            doc.spans[spans_key] = found
        docs.append(doc)
    return docs


def make_examples(nlp, spans_key=None):
    return [Example(nlp.make_doc(doc.text), doc) for doc in gold_docs(nlp, spans_key)]


def make_ner(*, weights=None, initialize=True, lang="en", attention="one_way", model=None, encoder=None, **config):
    """An initialised pipeline (unless `initialize` is false) and its component."""
    nlp = spacy.blank(lang)
    settings = {"attention": attention, **(model or {}), "encoder": {"train_precision": "float32", **(encoder or {})}}
    ner = nlp.add_pipe("luke_ner", config={"overlap": 32, "max_span_words": 3, "model": settings, **config})
    if initialize:
        examples = make_examples(nlp, config.get("spans_key"))
        ner.initialize(lambda: examples, nlp=nlp, weights=weights or make_checkpoint)
    return nlp, ner


def make_noisy_ner(**config):
    """A pipeline whose head is noise too, so that it finds very many spans; no proposer."""
    model = {"spans_per_word": None, **config.pop("model", {})}
    checkpoint = make_checkpoint(labels=["NIL", *LABELS])
    checkpoint.tensors["head.classifier.bias"][0] -= 3
    config.setdefault("weights", lambda: checkpoint)
    return make_ner(model=model, **config)


@functools.cache
def overfit(attention, spans_key=None):
    """A pipeline that knows the sentences by heart, as bytes; its config."""
    nlp, ner = make_ner(attention=attention, spans_key=spans_key)
    optimizer = make_adamw(learn_rate=4e-3)
    name = "ents_f" if spans_key is None else f"spans_{spans_key}_f"
    for _ in range(300):
        loss = ner.update(make_examples(nlp, spans_key), sgd=optimizer)["luke_ner"]
        if loss < 0.05 and nlp.evaluate(make_examples(nlp, spans_key))[name] == 1.0:
            break
    return nlp.to_bytes(), nlp.config


def trained(attention="one_way", spans_key=None):
    """A pipeline of its own that knows the sentences by heart."""
    data, config = overfit(attention, spans_key)
    nlp = spacy.util.load_model_from_config(config, auto_fill=False, validate=True)
    return nlp.from_bytes(data)


def found_in(doc, spans_key=None):
    """What a component found in a Doc: (start, end, label) -> probability."""
    spans = doc.ents if spans_key is None else doc.spans[spans_key]
    return {(span.start, span.end, span.label_): span._.luke_score for span in spans}


MODES = ["full", "one_way"]
TEXTS = [*SENTENCES, "", " ", "Accra", " ".join(SENTENCES), "\n\n", "Ada Lovelace joined the Bank of Ghana ."]
