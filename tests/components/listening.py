"""spaCy's own components that listen to a luke_encoder: pipelines, examples, and what the encoder learns of them."""

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.batch.windows import plan_windows
from spacy_luke.bridge.documents import read_document
from spacy_luke.model.luke import Windows
from tests.tiny import SENTENCES, make_checkpoint

WIDTH = 32  # of the tiny encoder
SHARED = {"encoder": {"@architectures": "spacy-luke.SharedEncoder.v1"}}
LONG = " ".join(SENTENCES) + " Ghana " + "Lagos" * 40 + " " + " ".join(reversed(SENTENCES * 3))


def has_transformers():
    try:
        import spacy_transformers  # noqa: F401
    except ImportError:
        return False
    return True


NEEDED = pytest.mark.skipif(not has_transformers(), reason="spacy-transformers is not installed")
KINDS = ["words", pytest.param("pieces", marks=NEEDED)]


def listener(kind, width=WIDTH, upstream="*"):
    if kind == "words":
        return {"@architectures": "spacy.Tok2VecListener.v1", "width": width, "upstream": upstream}
    return {
        "@architectures": "spacy-transformers.TransformerListener.v1",
        "grad_factor": 1.0,
        "pooling": {"@layers": "reduce_mean.v1"},
        "upstream": upstream,
    }


def textcat_model(kind):
    """By the mean of the words."""
    return {
        "@architectures": "spacy.TextCatReduce.v1",
        "tok2vec": listener(kind),
        "exclusive_classes": True,
        "use_reduce_first": False,
        "use_reduce_last": False,
        "use_reduce_max": False,
        "use_reduce_mean": True,
    }


def settings(name, kind):
    if name == "luke_ner":
        return {"overlap": 32, "max_span_words": 3, "model": SHARED}
    if name == "parser":
        return {"min_action_freq": 1, "model": {"tok2vec": listener(kind)}}
    if name in ("textcat", "soft_textcat"):
        return {"model": textcat_model(kind)}
    return {"model": {"tok2vec": listener(kind)}} if name not in ("sentencizer", "textcat_multilabel") else {}


def make_examples(nlp):
    examples = []
    for i, text in enumerate(SENTENCES):
        doc = nlp.make_doc(text)
        first = [token.text[0].isupper() for token in doc]
        tags = ["." if x.is_punct else "NAME" if name else "WORD" for x, name in zip(doc, first)]
        gold = {
            "tags": tags,
            "lemmas": [token.lower_ for token in doc],
            "morphs": ["Case=Up" if name else "" for name in first],
            "pos": ["PROPN" if name else "X" for name in first],
            "heads": [max(k - 1, 0) for k in range(len(doc))],
            "deps": ["ROOT", *["after"] * (len(doc) - 1)],
            "sent_starts": [1, *[-1] * (len(doc) - 1)],
            "cats": {"rain": float(i == 3), "people": float(i != 3)},
            "entities": [(0, len(doc[:2].text), "PER")] if i < 3 else [],
        }
        example = Example.from_dict(doc, gold)
        example.reference.spans["sc"] = [Span(example.reference, 0, 1 + i % 2, "PER")]
        examples.append(example)
    return examples


def make_pipeline(*names, kind="words", weights=make_checkpoint, **encoder):
    """An initialised pipeline of a luke_encoder and components after it."""
    nlp = spacy.blank("en")
    model = {"train_precision": "float32", **encoder.pop("model", {})}
    owner = nlp.add_pipe("luke_encoder", config={"overlap": 32, "model": model, **encoder})
    for name in names:
        nlp.add_pipe(name, config=settings(name, kind))
    examples = make_examples(nlp)
    owner.initialize(lambda: examples, nlp=nlp, weights=weights)
    nlp.initialize(lambda: examples)
    return nlp, owner, examples


def parameters(owner):
    return {name: p.detach().clone() for name, p in owner.encoder.module.named_parameters()}


def changed(owner, before):
    return {name for name, p in owner.encoder.module.named_parameters() if not torch.equal(p, before[name])}


def word_states(owner, doc):
    """The plain way: each window alone, each word in a loop."""
    document = read_document(doc, owner.tokenizer)
    room = owner.encoder.module.config.max_window - 2
    windows = plan_windows(document, room=room, context="document", share=True, overlap=owner.cfg["overlap"])
    states = []
    for a, b in zip(windows.start_B, windows.end_B):
        ids = [owner.tokenizer.cls_id, *document.pieces.ids_N[a:b].tolist(), owner.tokenizer.sep_id]
        states.append(owner.encoder.module.encode_words(Windows(torch.tensor(ids), [len(ids)])).states_ND)
    rows = []
    for first, last in zip(document.pieces.first_W.tolist(), document.pieces.last_W.tolist()):
        homes = [np.flatnonzero((windows.core_start_B <= x) & (x < windows.core_end_B))[0] for x in range(first, last)]
        homes = [homes[0] if x < windows.end_B[homes[0]] else home for x, home in zip(range(first, last), homes)]
        found = [states[k][x - windows.start_B[k] + 1] for x, k in zip(range(first, last), homes)]
        rows.append(torch.stack(found).mean(0) if found else torch.zeros(owner.encoder.module.config.hidden_size))
    return torch.stack(rows)


def pooled(doc):
    """Word vectors as TransformerListener makes them."""
    from spacy_transformers.layers.trfs2arrays import trfs2arrays
    from thinc.api import reduce_mean

    return trfs2arrays(reduce_mean(), 1.0).predict([doc._.trf_data])[0]


class Collector:
    """An optimizer that keeps the gradients it is given, and changes nothing."""

    def __init__(self):
        self.found = {}

    def __call__(self, key, weights, gradient, **settings):
        self.found.setdefault(key[1], []).append(np.array(gradient))
        return weights, gradient * 0


def gradients(names, *, parts=1, **encoder):
    """What the encoder's step has after an update by `parts` parts, as `spacy train` does it."""
    nlp, owner, examples = make_pipeline(*names, **encoder)
    for name in {"tagger", "textcat"} & set(names):  # whose output layers begin as zeros and let no gradient through
        for node in nlp.get_pipe(name).model.walk():
            if node.has_param("W"):
                noise = np.random.default_rng(0).normal(size=node.get_param("W").shape)
                node.set_param("W", noise.astype("f"))
    size = len(examples) // parts
    for i in range(parts):
        nlp.update(examples[i * size : (i + 1) * size], sgd=False)
    collector = Collector()
    owner.finish_update(collector)
    found = {name: xs[0] for name, xs in collector.found.items()}
    assert all(len(xs) == 1 for xs in collector.found.values())
    assert any(x.any() for x in found.values())
    return found


def assert_sum(found, *parts):
    for name, gradient in found.items():
        total = sum(part[name] for part in parts if name in part)
        assert np.allclose(gradient, total, rtol=1e-3, atol=1e-5), name
