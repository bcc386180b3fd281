"""scripts/ready_encounters.py: sentences of news in which names meet."""

import random
import re
import sys
from pathlib import Path

import pytest
import spacy

from spacy_luke.annotations import RELATIONS_TASK, get_relation_rows, get_scope

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
import ready_encounters
from ready_relations import OURS

NLP = spacy.blank("en")
NAMES = {
    "PER": [[first, last] for first in ("Ada", "Bo", "Cy", "Eva") for last in ("Rossi", "Wang", "Eze", "Olsen", "Roy")],
    "LOC": [["Ulm"], ["Lund"], ["New", "Haven"], ["Oran"], ["Cali"], ["Suva"], ["Kiel"], ["Bari"]],
    "ORG": [["Acme", "Inc."], ["Globex"], ["Initech"], ["Umbrella"], ["Hooli"]],
}
GROUPS = ready_encounters.read_frames()
FRAMES = [line for name in sorted(set(ready_encounters.SHARES)) for line in GROUPS[name]]


@pytest.mark.parametrize("frame", FRAMES)
def test_facts_are_of_names_that_the_frame_has(frame):
    text, _, facts = frame.partition("|")
    assert text.strip().endswith(".")
    letters = re.findall(r"\{[A-Z]+:(\w)}", text)
    told = ready_encounters.split_facts(facts)
    assert {x for fact in told for x in (fact[0], fact[-1])} <= set(letters)
    labels = {fact[1:-1].strip() for fact in told}
    assert all(label == "?" or label.removeprefix("?") in OURS for label in labels)
    docs = [ready_encounters.make_sentence(NLP, frame, NAMES, random.Random(i), GROUPS) for i in range(8)]
    for doc in docs:
        assert not set("{}<>|") & set(doc.text)
        assert len({x.text for x in doc.ents if x.label_ != "TIME"}) == sum(x.label_ != "TIME" for x in doc.ents)
        assert doc[-1].text == "."
    assert {label for doc in docs for *_, label, _ in get_relation_rows(doc) or []} >= {
        label for label in labels if label != "?" and not re.search(r"<[^>]*\{", text)
    }


def test_what_holds_what_may_hold_and_what_does_not():
    frame = "{PER:a} of {ORG:b} met {PER:c} in {LOC:d} . | a employer b, a ?member of b, b ? d"
    doc = ready_encounters.make_sentence(NLP, frame, NAMES, random.Random(0))
    head, firm, _, place = (x.text for x in doc.ents)
    assert {(label, doc.text[a:b], doc.text[c:d]) for a, b, c, d, label, _ in get_relation_rows(doc)} == {
        ("employer", head, firm),
        ("?member of", head, firm),
        ("?", firm, place),
    }
    scope = get_scope(doc, RELATIONS_TASK)
    assert scope.is_annotated("residence")
    assert scope.meaning("?member of") == {"member of", ""}
    assert scope.meaning("?") is None
    assert scope.meaning("employer") == {"employer"}


def test_a_frame_of_which_nothing_is_known():
    doc = ready_encounters.make_sentence(NLP, "{CLUB} beat {CLUB} in {LOC} . | ?", NAMES, random.Random(2))
    n = len(doc.ents)
    assert n >= 3
    assert [label for *_, label, _ in get_relation_rows(doc)] == ["?"] * (n * (n - 1))


def test_additions_hold_nothing():
    draw = random.Random(0)
    frame = "{PER:a} met {PER:b} . | a spouse b"
    docs = [ready_encounters.make_sentence(NLP, frame, NAMES, draw, GROUPS) for _ in range(60)]
    longer = [doc for doc in docs if len(doc.ents) > 2]
    assert 10 < len(longer) < 50
    for doc in docs:
        ((a, b, c, d, label, _),) = get_relation_rows(doc)
        assert label == "spouse"
        assert f"{doc.text[a:b]} met {doc.text[c:d]}" in doc.text
