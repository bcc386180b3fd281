"""scripts/ready_data.py: names that are swapped; configs/ready.cfg: what becomes of the labels of its data sets."""

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
