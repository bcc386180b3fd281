"""scripts/ready_data.py: names that are swapped, punctuation that is attached; configs/ready.cfg: its labels."""

import random
import runpy
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.util import load_config

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "scripts/ready_data.py"), run_name="loaded")
NLP = spacy.blank("en")
NAMES = {"PER": [["Bo", "Li"]], "LOC": [["Ulm"]], "ORG": [["A", "B", "Co"]]}


def make_doc(spans, *, group=False):
    words = "Ada Lovelace met IBM in Rome . Nothing is here . York has York Minster .".split()
    starts = {0, 7, 11}
    doc = Doc(NLP.vocab, words=words, sent_starts=[i in starts for i in range(len(words))])
    made = [Span(doc, *span) for span in spans]
    if group:
        doc.spans["entities"] = made
    else:
        doc.set_ents(made)
    return doc


def texts(doc, spans):
    return doc.text, [(span.text, span.label_) for span in spans]


def test_other_names(monkeypatch):
    monkeypatch.setitem(SCRIPT["swap_names"].__globals__, "SHARE", 1.0)
    doc = make_doc([(0, 2, "PER"), (3, 4, "corporation"), (5, 6, "place"), (11, 12, "MISC")])
    swapped = list(SCRIPT["swap_names"](NLP, doc, NAMES, random.Random(0)))
    assert [texts(x, x.ents) for x in swapped] == [
        ("Bo Li met A B Co in Ulm . ", [("Bo Li", "PER"), ("A B Co", "corporation"), ("Ulm", "place")])
    ]


def test_nested_names_stay(monkeypatch):
    monkeypatch.setitem(SCRIPT["swap_names"].__globals__, "SHARE", 1.0)
    nested = [(0, 2, "person"), (11, 12, "place"), (13, 14, "place"), (13, 15, "place")]
    swapped = list(SCRIPT["swap_names"](NLP, make_doc(nested, group=True), NAMES, random.Random(0)))
    assert [texts(x, x.spans["entities"]) for x in swapped] == [("Bo Li met IBM in Rome . ", [("Bo Li", "person")])]


def test_names_keep_their_share():
    doc = make_doc([(5, 6, "LOC")])
    draw = random.Random(0)
    found = [next(SCRIPT["swap_names"](NLP, doc, NAMES, draw)).ents[0].text for _ in range(400)]
    assert found.count("Rome") == pytest.approx(400 * (1 - SCRIPT["SHARE"]), abs=25)


class Drawn(random.Random):
    """One number, always."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


def attached(words, spans, *, everywhere, group=False):
    doc = Doc(NLP.vocab, words=words.split(), sent_starts=[i == 0 for i in range(len(words.split()))])
    made = [Span(doc, *span) for span in spans]
    if group:
        doc.spans["entities"] = made
    else:
        doc.set_ents(made)
    new = list(SCRIPT["attach_punctuation"](NLP, doc, Drawn(0.0 if everywhere else 0.9)))
    return [([x.text for x in doc], texts(doc, doc.spans["entities"] if group else doc.ents)[1]) for doc in new]


def test_punctuation_is_attached_to_words():
    words, spans = (
        "Ann , of Acme Inc . ( Ulm ) , left Bonn .",
        [(0, 1, "PER"), (3, 6, "ORG"), (7, 8, "LOC"), (11, 12, "LOC")],
    )
    named = [("Ann,", "PER"), ("Acme Inc.", "ORG"), ("(Ulm),", "LOC"), ("Bonn.", "LOC")]
    assert attached(words, spans, everywhere=True) == [("Ann, of Acme Inc. (Ulm), left Bonn.".split(), named)]
    assert attached(words, spans, everywhere=True, group=True) == [
        ("Ann, of Acme Inc. (Ulm), left Bonn.".split(), named)
    ]
    own = [("Ann", "PER"), ("Acme Inc .", "ORG"), ("Ulm", "LOC"), ("Bonn.", "LOC")]
    assert attached(words, spans, everywhere=False) == [("Ann , of Acme Inc . ( Ulm ) , left Bonn.".split(), own)]


def test_punctuation_that_is_a_name_of_its_own_stays():
    """ "!" is the name of a band: it is not attached to the word before it, which is none."""
    assert attached("We saw ! in Ulm .", [(2, 3, "MISC"), (4, 5, "LOC")], everywhere=True) == [
        ("We saw ! in Ulm.".split(), [("!", "MISC"), ("Ulm.", "LOC")])
    ]


def test_sentences_whose_names_have_no_punctuation_are_left_out():
    assert attached("Ann , left Ulm today .", [(3, 4, "LOC")], everywhere=True) == []
    assert attached("Ann left Ulm .", [], everywhere=False) == []


def test_every_source_says_what_its_labels_become():
    config = load_config(ROOT / "configs/ready.cfg")
    ours = set(config["initialize"]["components"]["luke_ner"]["labels"])
    for corpus in ("train", "dev"):
        for name, source in config["corpora"][corpus]["sources"].items():
            entities = source.get("entities")
            if entities is None or entities is False:
                continue
            targets = {x for x in entities.get("labels", {}).values() if x is not None}
            assert targets <= ours, name
            assert set(entities.get("annotates", ours)) <= ours, name
