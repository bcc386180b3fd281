"""The benchmarks fit the package: each can be loaded, and all that it imports, late imports too, is there."""

import ast
import importlib
import runpy
from importlib.util import find_spec

import pytest

from tests.benchmark_files import FOLDER, by_bare_names

SCRIPTS = sorted(FOLDER.glob("*.py"))


def imports_of(path):
    """(module, name) of everything that a script takes from the package and from its neighbours, at any depth."""
    neighbours = {script.stem for script in SCRIPTS}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in {"spacy_luke", *neighbours}:
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.fixture
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
