"""Systems of speed.py that are spaCy pipelines as users have them: spaCy's CNN `ner`, GLiNER2, luke_ner on MiniLM."""

from collections.abc import Sequence
from typing import Any

import spacy
from gliner2_peer import load_gliner2
from hf_systems import Entities, System
from measuring import MINILM
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from speed_systems import entities_of, luke_system, make_doc, make_luke

from spacy_luke.checkpoint.sources import find_source


def make_spacy_cnn() -> Language:
    """spaCy's `ner` of its default size with random weights, which take as long as learned ones."""
    nlp = spacy.blank("en")
    nlp.add_pipe("ner")
    gold = Doc(nlp.vocab, words=["London"])
    gold.set_ents([Span(gold, 0, 1, label="LOC")])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=["London"]), gold)])
    return nlp


def spacy_cnn_system(name: str) -> System:
    return _pipeline_system(name, make_spacy_cnn())


def gliner2_system(name: str) -> System:
    nlp = load_gliner2()
    if nlp is None:
        raise ImportError("gliner2 is not installed: pip install --no-deps gliner2")
    return _pipeline_system(name, nlp)


def small_luke_system(name: str, *, spans_per_word: float) -> System:
    """One-way attention on MiniLM, six layers of 384."""
    ner = make_luke(find_source(MINILM), "one_way", spans_per_word=spans_per_word)
    return luke_system(name, ner, context="document")


def _pipeline_system(name: str, nlp: Language) -> System:
    def run(documents: Sequence[Any], *, batch: int | None, precision: str, sentences: Any = None) -> Entities:
        return [entities_of(doc) for doc in nlp.pipe([make_doc(nlp.vocab, x) for x in documents], batch_size=64)]

    return System(name, run, formats=("float32",))
