"""scripts/ready_pairs.py: pairs of names of which a data set says that nothing holds."""

import random
import runpy
import sys
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_luke.annotations import RELATIONS_TASK, get_pair_rows, get_relation_rows, get_scope, register_extensions
from spacy_luke.readers.datasets.knowledge_net import KnowledgeRow
from spacy_luke.readers.records import Mention
from tests.readers.datasets.knowledge_page import row, write_page

SCRIPTS = Path(__file__).parents[1] / "scripts"
sys.path.insert(0, str(SCRIPTS))
from ready_pairs import MOST, unrelated  # noqa: E402

NLP = spacy.blank("en")
TEXT = "Ada of Shell told Reuters that Ben left Bonn, and that she and Cy never saw Ada in Rome."


@pytest.fixture(autouse=True)
def extensions():
    register_extensions()


def place(words, text=TEXT):
    start = text.index(words)
    return start, start + len(words)


def fact(name, *ends, text=TEXT):
    return KnowledgeRow("here", 1, "7", (0, len(text)), text, name, tuple(place(x, text) for x in ends) or None, {})


def pairs(rows, others=(), text=TEXT):
    """By the property's relations: the words of the pairs."""
    found = {}
    for doc in unrelated(NLP, rows, [Mention(*place(x, text), label) for x, label in others], random.Random(0)):
        scope = get_scope(doc, RELATIONS_TASK)
        assert get_relation_rows(doc) == []
        assert not doc.has_annotation("ENT_IOB") or not get_scope(doc, "entities").is_annotated("PER")
        names = tuple(x for x in ("employer", "member of", "residence", "spouse") if scope.is_annotated(x))
        assert not scope.is_annotated("educated at")
        found[names] = {(text[a:b], text[c:d]) for a, b, c, d in get_pair_rows(doc)}
    return found


def test_what_is_no_fact():
    job = [fact("EMPLOYEE_OR_MEMBER_OF", "Ada", "Shell")]
    assert pairs(job) == {}  # nothing else is marked
    others = [("Reuters", "ORG"), ("Ben", "PER"), ("Bonn", "LOC"), ("of Shell", "ORG")]  # the last overlaps a mark
    assert pairs(job, others) == {("employer", "member of"): {("Ada", "Reuters"), ("Ben", "Reuters"), ("Ben", "Shell")}}


def test_passages_without_a_fact():
    others = [("Ada", "PER"), ("Bonn", "LOC"), ("Rome", "LOC"), ("Shell", "ORG")]
    assert pairs([fact("PLACE_OF_RESIDENCE")], others) == {("residence",): {("Ada", "Bonn"), ("Ada", "Rome")}}
    assert pairs([fact("CEO")], others) == {}  # none of our relations


def test_what_may_mean_the_same_as_a_fact():
    """The other place of a name, spouses in either direction, and what a pronoun lives in; not parents of their
    parents."""
    text = "Ada met Ben. Ben saw Ada. She lives in Rome, not in Bonn."
    rows = [
        fact("SPOUSE", "Ada", "Ben", text=text),
        fact("PLACE_OF_RESIDENCE", "She", "Rome", text=text),
    ]
    found = pairs(rows, [("Rome", "LOC"), ("Bonn", "LOC")], text)
    assert found == {("residence",): {("Ada", "Bonn"), ("Ben", "Bonn")}}
    (doc,) = unrelated(NLP, [fact("CHILD_OF", "Ada", "Ben", text=text)], [], random.Random(0))
    assert [(text[a:b], text[c:d]) for a, b, c, d in get_pair_rows(doc)] == [("Ben", "Ada")]


def test_lists_of_names():
    text = "Ada, Ben, Cy, Di, Ed and Flo."
    (doc,) = unrelated(
        NLP,
        [fact("SPOUSE", text=text)],
        [Mention(*place(x, text), "PER") for x in "Ada Ben Cy Di Ed Flo".split()],
        random.Random(0),
    )
    assert len(get_pair_rows(doc)) == MOST


def test_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "knowledge_net").mkdir()
    passage = '<span id="subject">Ed</span>, Bo and <span id="object">Cy</span> in {}.'
    rows = [row(str(n), (10, 31), (10, 12, 21, 23), "SPOUSE", passage.format(n)) for n in range(20)]
    rows += [row(str(n), (10, 31), (14, 16, 21, 23), "SPOUSE", passage.format(n)) for n in range(20)]
    write_page(tmp_path / "knowledge_net/human_readable-v10-notest.zip", rows)
    monkeypatch.setattr(sys, "argv", ["ready_pairs.py", str(tmp_path), str(tmp_path / "out/pairs.spacy")])
    runpy.run_path(str(SCRIPTS / "ready_pairs.py"), run_name="__main__")
    docs = list(DocBin().from_disk(tmp_path / "out/pairs.spacy").get_docs(NLP.vocab))
    assert 5 < len(docs) < 18  # three in five documents are of the training part
    for doc in docs:
        assert sorted((doc.text[a:b], doc.text[c:d]) for a, b, c, d in get_pair_rows(doc)) == [
            ("Bo", "Ed"),
            ("Ed", "Bo"),
        ]
    assert f"pairs: {2 * len(docs)} pairs; passages by relation: {{'spouse': {len(docs)}}}" in capsys.readouterr().out
