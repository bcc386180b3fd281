"""The benchmarks fit the package: each can be loaded, and all that it imports, late imports too, is there."""

import ast
import importlib
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def imports_of(path):
    """(module, name) of everything that a script takes from the package and from its neighbours, at any depth."""
    neighbours = {script.stem for script in SCRIPTS}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in {"spacy_luke", *neighbours}:
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.fixture
def neighbours(monkeypatch):
    """Scripts import one another by their bare names, as from their own folder; afterwards nothing of them is left.
    What other tests have imported by these names, such as scripts/ready_data.py, is put aside meanwhile."""
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in [x for x in sys.modules if (FOLDER / f"{x}.py").is_file()]:
        monkeypatch.delitem(sys.modules, name)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if (FOLDER / f"{name}.py").is_file():
            del sys.modules[name]


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
