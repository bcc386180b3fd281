"""scripts/ready_wire.py: lines of news agencies with names of gazetteers."""

import random
import sys
from pathlib import Path

import pytest
import spacy

SCRIPTS = Path(__file__).parents[1] / "scripts"
sys.path.insert(0, str(SCRIPTS))
from ready_wire import DATELINES, HEADS, KINDS, REPORT_KINDS, draw_value, fill, make_report  # noqa: E402

NLP = spacy.blank("en")
NAMES = {
    "PER": [
        ["Ada", "Rossi"],
        ["Bo", "Wang"],
        ["Cy", "Eze"],
        ["Didi"],
        ["Eva", "Olsen"],
        ["Flo", "Klein"],
        ["Gil", "Roy"],
    ],
    "LOC": [["Ulm"], ["Lund"], ["New", "Haven"], ["Oran"], ["Cali"], ["Suva"]],
    "ORG": [["Acme", "Inc."], ["Globex"], ["Initech"]],
}
FRAMES = [x for text in (HEADS, DATELINES, *REPORT_KINDS.values()) for x in text.strip().splitlines()]


@pytest.mark.parametrize("frame", FRAMES)
def test_every_mark_becomes_a_name(frame):
    words, mentions = fill(frame, NAMES, random.Random(0))
    assert not set("{}[]|") & set(" ".join(words)), words
    marks = [x for x in KINDS if f"{{{x}}}" in frame]
    assert {KINDS[x] for x in marks} <= {label for *_, label in mentions}
    assert len({tuple(words[a:b]) for a, b, _ in mentions}) == len(mentions)  # no name twice
    ends = [0, *(x for a, b, _ in mentions for x in (a, b)), len(words)]
    assert ends == sorted(ends)
    assert frame[0] != "!" or " ".join(words).isupper()


def test_whose_names():
    words, mentions = fill("{SHORT} of {NATION} met [New Agency|ORG] at {LOC} , {n}", NAMES, random.Random(3))
    found = {label: words[a:b] for a, b, label in mentions}
    assert found["ORG"] == ["New", "Agency"]
    (first, last) = found["PER"]
    assert first.endswith(".")
    assert any(name[-1] == last for name in NAMES["PER"])
    assert words[-1].isdigit()


def test_a_report_has_its_sentences_and_entities():
    draw = random.Random(1)
    docs = [make_report(NLP, NAMES, draw) for _ in range(40)]
    assert {ent.label_ for doc in docs for ent in doc.ents} == {"PER", "ORG", "LOC"}
    assert all(2 <= len(list(doc.sents)) <= 11 for doc in docs)
    again = make_report(NLP, NAMES, random.Random(1))
    assert (again.text, [x.text for x in again.ents]) == (docs[0].text, [x.text for x in docs[0].ents])


def test_values():
    draw = random.Random(0)
    assert all(1 <= int(draw_value("d", draw)) <= 31 for _ in range(200))
    assert {len(draw_value("s", draw)) for _ in range(50)} == {1}
