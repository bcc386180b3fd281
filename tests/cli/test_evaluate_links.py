"""`spacy luke evaluate` of a luke_linker."""

import re

import numpy as np
import spacy
import srsly
from spacy.cli._util import app as spacy_app
from spacy.tokens import Span
from spacy.training import Example
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.annotations import set_candidates_given
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.given import copy_given
from spacy_luke.vectors.build import build_vectors
from tests.tiny import SENTENCES, make_checkpoint

CANDIDATES = [("A", 0.5), ("B", 0.3), ("C", 0.2)]


def make_gold(nlp, text):
    """The first word is one of three entities, the last one NIL."""
    doc = nlp.make_doc(text)
    doc.set_ents([Span(doc, 0, 1, "X", kb_id="A"), Span(doc, len(doc) - 1, len(doc), "X", kb_id="NIL")])
    set_candidates_given(doc, [(0, len(doc[0]), CANDIDATES)])
    return doc


def test_own_links_are_right(tmp_path):
    nlp = spacy.blank("en")
    rows = np.random.default_rng(0).normal(size=(3, 13)).astype(np.float32)
    vectors = build_vectors(rows, tmp_path / "vectors", names=["A", "B", "C"]).store
    golds = [make_gold(nlp, text) for text in SENTENCES if len(nlp.make_doc(text)) > 2]
    examples = [Example(copy_given(gold, nlp.vocab, links=True), gold) for gold in golds]
    linker = nlp.add_pipe("luke_linker", config={"model": {"encoder": {"train_precision": "float32"}}})
    linker.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint, vectors=str(vectors.path))
    for gold in golds:  # what it answers is right
        answer = nlp(copy_given(gold, nlp.vocab, links=True))
        first, last = answer.ents
        assert {one.id for one in first._.luke_candidates} == {"A", "B", "C", "NIL"}
        gold.set_ents([Span(gold, 0, 1, "X", kb_id=first.kb_id_), Span(gold, last.start, last.end, "X", kb_id="NIL")])
    nlp.to_disk(tmp_path / "pipeline")
    write_docbin(golds, tmp_path / "gold.spacy")
    arguments = ["luke", "evaluate", tmp_path / "pipeline", tmp_path / "gold.spacy", "-o", tmp_path / "metrics.json"]
    result = CliRunner().invoke(spacy_app, [*map(str, arguments), "--gold-links"])
    text = " ".join(result.output.split())
    assert result.exit_code == 0, text
    for row in ("given mentions, micro 100.00", "end to end, micro 100.00", "entity among the candidates 100.00"):
        assert re.search(row, text), text
    scores = srsly.read_json(tmp_path / "metrics.json")
    assert scores["links_accuracy"] == scores["links_mentions_f"] == 1.0
    sure = CliRunner().invoke(
        spacy_app, [*map(str, arguments), "--gold-links", "--components.luke_linker.threshold", "1"]
    )
    assert sure.exit_code == 0, sure.output
    assert srsly.read_json(tmp_path / "metrics.json")["links_accuracy"] == 0.0  # everything is NIL
    for wrong, message in (
        ("--components.luke_linker.splits", "there is no such setting. Is split meant?"),
        ("--components.linker.split", "expected components.NAME.SETTING with one of ['luke_linker'] as NAME"),
        ("--training.seed", "expected components.NAME.SETTING"),
    ):
        refused = CliRunner().invoke(spacy_app, [*map(str, arguments), wrong, "1"])
        assert refused.exit_code == 1
        assert message in " ".join(refused.output.split())
    bare = CliRunner().invoke(spacy_app, list(map(str, arguments)))  # nothing finds the mentions
    assert bare.exit_code == 0
    told = "'luke_linker' has no mentions to link: no component before it finds any. --gold-links gives it those"
    assert told in " ".join(bare.output.split())
    assert "no mentions to link" not in text + sure.output
    assert srsly.read_json(tmp_path / "metrics.json")["links_accuracy"] == 0.0
