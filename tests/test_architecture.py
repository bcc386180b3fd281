"""docs/architecture.md is true: its map is that of the walls, and what it says is somewhere is there."""

import re

import pytest

from tests.architecture import PAGE, first_line, packages_of, with_map
from tests.walls import MODULES, ROWS

TEXT = PAGE.read_text(encoding="utf8")
ROOT = PAGE.parents[1]
# What somebody who has never seen the code looks for; each must be found by its own name in the table.
NOUNS = [
    "tokenizer",
    "windows",
    "entity vocabulary",
    "attention",
    "NER head",
    "checkpoint names",
    "HF export",
    "training loop",
    "annotations",
    "TransE",
    "CoNLL reader",
    "knowledge base",
    "entity vectors",
    "alias dictionary",
    "candidate generation",
    "dump reader",
    "losses",
    "optimizer",
    "bfloat16",
    "threshold search",
]
PLACES = dict(re.findall(r"^\| ([^|`]+?) \| (`[^|]+) \|", TEXT.partition("## What is where")[2], re.MULTILINE))


def test_the_map_is_drawn_anew():
    assert with_map(TEXT) == TEXT, "the map is old: run python -m tests.architecture"


@pytest.mark.parametrize("part", [name for row in ROWS for part in row for name in packages_of(part)])
def test_every_package_says_what_it_is(part):
    said = first_line(part if part in MODULES else f"{part}.__init__")
    assert 10 < len(said) <= 240, f"the docstring of {part} must begin with one sentence about what is there"


@pytest.mark.parametrize("noun", NOUNS)
def test_a_stranger_finds(noun):
    assert noun in PLACES


@pytest.mark.parametrize("page", [PAGE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_paths_exist(page):
    paths = re.findall(r"`((?:spacy_luke|tests|benchmarks|configs|assets)/[\w/.]*)`", page.read_text(encoding="utf8"))
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_places_are_paths():
    for noun, places in PLACES.items():
        assert re.search(r"`spacy_luke/[\w/]+\.py`", places), f"{noun} must lead to a module"
