"""The form in the docs writes what the command writes: both run on the same facts."""

import itertools
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from spacy_luke.quickstart.rules import QUICKSTART_TASKS, RULES, Shape, Wanted, draft, encoders

ROOT = Path(__file__).parents[2]
SCRIPT = """
const { draft } = require(process.argv[1]);
const [rules, cases] = [process.argv[2], 0].map((x) => JSON.parse(require("fs").readFileSync(x, "utf8")));
process.stdout.write(JSON.stringify(cases.map(([wanted, shape]) => draft(rules, wanted, shape))));
"""
GOLD = {
    "mentions": 12_345,
    "ner_labels": 4,
    "typed": 70,
    "type_labels": 9,
    "relations": 1000,
    "relation_labels": 2,
    "questions": 5,
    "queries": 6,
    "linked": 7,
}
SHAPES = [
    Shape(1, 1, **GOLD),
    Shape(48, 6178, **GOLD, longest_span=8, unanswerable=3),
    Shape(48, 6178, **GOLD, longest_span=9, nested=True, several=True, crossing=True, longest_gap=101),
    Shape(1_000_000, 123_456_789, **GOLD, longest_span=333, pairs=9, longest_gap=100),
    Shape(3, 100_000, **GOLD, nested=True, spans_key="inner", longest_gap=777),
]
CASES = [
    (
        Wanted(tasks, encoder, machine, lang="de", train='a "b".spacy', dev="ü.spacy", kb="kb", vectors=bool(n % 2)),
        shape,
    )
    for n in (1, 2, 5)
    for tasks in itertools.combinations(QUICKSTART_TASKS, n)
    if "links" not in tasks or n == 1
    for encoder in encoders()
    for machine in ("cpu", "gpu")
    for shape in SHAPES
    if not (shape.nested and not shape.pairs and "relations" in tasks and "ner" not in tasks)
]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node, which runs the form's script")
def test_the_form_writes_what_the_command_writes():
    given = json.dumps([(wanted._asdict(), shape._asdict()) for wanted, shape in CASES])
    command = ["node", "-e", SCRIPT, str(ROOT / "docs/_site/quickstart.js"), str(RULES)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert len(found) == len(CASES) > 600
    for (wanted, shape), text in zip(CASES, found, strict=True):
        assert text == draft(wanted, shape), (wanted, shape)
    assert len(set(found)) > 500


FAULTS = """
const { faultOf } = require(process.argv[1]);
const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(cases.map(([wanted, shape]) => faultOf(wanted, shape))));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node, which runs the form's script")
def test_the_form_says_what_is_wrong():
    good = {"tasks": ["ner"], "lang": "en"}, {"documents": 5, "words": 100, "mentions": 9}
    cases = [
        (good, ""),
        (({**good[0], "tasks": []}, good[1]), "task"),
        (({**good[0], "tasks": ["ner", "links"]}, good[1]), "by itself"),
        ((good[0], {**good[1], "mentions": -5}), '"entities" must be a whole number'),
        ((good[0], {**good[1], "words": 0.5}), '"words in all" must be'),
        ((good[0], {**good[1], "documents": 0}), "How many documents"),
        ((good[0], {**good[1], "documents": 5000}), "more documents than words"),
        (({**good[0], "lang": "zz$$"}, good[1]), "language"),
    ]
    command = ["node", "-e", FAULTS, str(ROOT / "docs/_site/quickstart.js")]
    given = json.dumps([case for case, _ in cases])
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found[0] == ""
    for text, (_, part) in zip(found[1:], cases[1:], strict=True):
        assert part in text
