"""The benchmarks fit the package: each can be loaded, and all that it imports, late imports too, is there."""

import ast
import importlib
import runpy
from importlib.util import find_spec

import numpy as np
import pytest

from tests.benchmark_files import FOLDER, by_bare_names, load

SCRIPTS = sorted(FOLDER.glob("*.py"))


def imports_of(path):
    """(module, name) of everything that a script takes from the package and from its neighbours, at any depth."""
    neighbours = {script.stem for script in SCRIPTS}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in {"spacy_luke", *neighbours}:
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.fixture(scope="module")
def neighbours():
    with by_bare_names():
        yield


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_it_loads(path, neighbours):
    assert "__doc__" in runpy.run_path(str(path), run_name="loaded")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_what_it_imports_is_there(path, neighbours):
    for module, name in imports_of(path):
        assert hasattr(importlib.import_module(module), name) or find_spec(f"{module}.{name}"), f"{module}.{name}"
        assert not name.startswith("_"), f"{module}.{name} is private"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_it_takes_nothing_from_commands(path):
    assert not [module for module, _ in imports_of(path) if module.startswith("spacy_luke.cli")]


def test_charts_are_drawn_anew(neighbours):
    charts = importlib.import_module("charts")
    for name, draw in charts.CHARTS.items():
        drawn = (charts.IMAGES / name).read_text(encoding="utf8")
        assert draw() == drawn, f"{name} is old: run python benchmarks/charts.py"


def test_sums_over_draws_of_documents():
    """Each draw takes as many documents as there are, some of them more than once, and sums what each has."""
    counts_D2 = np.random.default_rng(1).integers(0, 9, (7, 2))
    sums_R2 = load("measuring").sums_of_draws(counts_D2, 50)
    drawn = np.random.default_rng(0).integers(0, 7, (50, 7))
    assert sums_R2.tolist() == [[sum(int(counts_D2[d, i]) for d in row) for i in (0, 1)] for row in drawn]
    assert len({tuple(row) for row in sums_R2.tolist()}) > 40
