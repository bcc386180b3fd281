"""The walls of the package: imports point down only, and each library stays in its rooms."""

import ast
import re
from collections import defaultdict
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import get_type_hints

import pytest

from tests.walls import MODULES, RANK, ROOMS

TESTS = Path(__file__).parent

MOST_LINES = 350
MOST_LINES_OF_A_FUNCTION = 80
STILL_LONG: set[str] = set()
ENTRY_POINTS = [point for point in distribution("spacy-luke").entry_points if point.value.startswith("spacy_luke.")]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf8"))


def imported_names(module: str, tree: ast.Module) -> set:
    """Absolute dotted names of everything that a module imports, at any depth, `from x import y` as x.y."""
    package = ["spacy_luke", *module.split(".")[:-1]]
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *([node.module] if node.module else [])]
            names.update(".".join([*base, alias.name]) for alias in node.names)
    return names


def broken_walls(module: str, tree: ast.Module) -> list:
    part = module.split(".")[0]
    broken = []
    for name in sorted(imported_names(module, tree)):
        library, _, rest = name.partition(".")
        if library == "spacy_luke":
            other = rest.split(".")[0]
            if other in RANK and other != part and RANK[other] <= RANK[part]:
                broken.append(f"{module} imports {name}, which is not below it")
        elif library in ROOMS and not any(f"{module}.".startswith(f"{room}.") for room in ROOMS[library]):
            broken.append(f"{module} imports {library}, which may be imported only in {ROOMS[library]}")
    return broken


def test_every_part_has_its_row():
    parts = {module.split(".")[0] for module in MODULES} - {"__init__"}
    assert parts <= set(RANK), "a new part must be entered in ROWS of tests/walls.py"


def test_imports_point_down():
    modules = [module for module in MODULES if module != "__init__"]
    assert [x for module in modules for x in broken_walls(module, parsed(MODULES[module]))] == []


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("model.luke", "from ..batch.batches import Batch\nfrom .config import LukeConfig\nimport torch", 0),
        ("model.luke", "from ..checkpoint import names", 1),
        ("model.luke", "from .. import bridge", 1),
        ("text.align", "def f():\n    import spacy_luke.entity_vocab", 1),
        ("entity_vocab", "from .text.tokenizer import PieceTokenizer", 1),
        ("entity_vocab", "import torch.nn.functional as F", 1),
        ("readers.columns", "from ..components.ner import LukeNer\nfrom spacy.util import registry", 1),
        ("checkpoint.sources", "from spacy.util import registry", 0),
        ("checkpoint.files", "from spacy.util import registry", 1),
        ("checkpoint.sourcesandmore", "from spacy.util import registry", 1),
        ("components.__init__", "from ..cli import app", 1),
    ],
)
def test_the_walk_finds_what_it_should(module, source, expected):
    assert len(broken_walls(module, ast.parse(source))) == expected


def test_rows_of_docs_have_one_owner():
    """What is under the package's keys of user_data is read and written by `spacy_luke.annotations` alone."""
    taken = [
        (module, ast.unparse(node))
        for module, path in MODULES.items()
        if not module.startswith("annotations.")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Subscript)
        or (isinstance(node, ast.Attribute) and node.attr in ("get", "pop", "setdefault", "update"))
        if isinstance(node.value, ast.Attribute) and node.value.attr == "user_data"
    ]
    assert taken == []


def test_no_drawers():
    """`utils` and `common` say nothing; `types` and `typing` would shadow the standard library."""
    assert not {name for module in MODULES for name in module.split(".")} & {
        "utils",
        "util",
        "common",
        "types",
        "typing",
    }


def test_there_is_no_optional():
    """`X | None` says it."""
    assert [module for module, path in MODULES.items() if re.search(r"\bOptional\[", path.read_text("utf8"))] == []


def test_a_public_name_stands_once():
    """Two public classes or functions of one name are two things that somebody takes for one another."""
    places = defaultdict(list)
    for module, path in MODULES.items():
        for node in parsed(path).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                places[node.name].append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_a_public_constant_stands_once():
    """What one file alone uses has an underscore."""
    places = defaultdict(list)
    for module, path in MODULES.items():
        for node in parsed(path).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            named = [x for target in targets for x in (target.elts if isinstance(target, ast.Tuple) else [target])]
            for name in {x.id for x in named if isinstance(x, ast.Name)}:
                if re.fullmatch("[A-Z][A-Z0-9_]+", name):
                    places[name].append(module)
    assert len(places) > 100
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("folder", ["spacy_luke", "tests", "benchmarks"])
def test_no_file_is_too_long(folder):
    paths = [path.relative_to(TESTS.parent) for path in sorted((TESTS.parent / folder).rglob("*.py"))]
    lengths = {str(path): len((TESTS.parent / path).read_text("utf8").splitlines()) for path in paths}
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES and path not in STILL_LONG} == {}


def test_no_function_is_too_long():
    lengths = {
        f"{module}.{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for module, path in MODULES.items()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}


def test_tests_mirror_the_package():
    """A folder of tests is that of a package; what has none is named here."""
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("*.py")}
    assert {str(folder) for folder in folders if not (TESTS.parent / "spacy_luke" / folder).is_dir()} <= {
        "harness",
        "gpu",
    }


def test_no_test_file_is_imported():
    """What test files share is in modules of its own."""
    names = {(str(path), name) for path in TESTS.rglob("*.py") for name in imported_names("x", parsed(path))}
    of_tests = {(path, name) for path, name in names if re.search(r"(^|\.)(test_\w+|conftest)\b", name)}
    assert {(path, name) for path, name in of_tests if "pytest" not in name} == set()


def test_no_test_measures_time():
    """A machine under load is slow: what a test bounds is counted."""
    clocks = r"\b(perf_counter|process_time|monotonic|thread_time|timeit)\b"
    tests = [path for path in sorted(TESTS.rglob("test_*.py")) if path.name != "test_layout.py"]
    assert [path.name for path in tests if re.search(clocks, path.read_text("utf8"))] == []


def test_entry_points_are_installed():
    assert len(ENTRY_POINTS) >= 9, "the installed metadata is old: install the package again"


@pytest.mark.parametrize("point", ENTRY_POINTS, ids=lambda point: point.name)
def test_entry_points_resolve(point):
    """They load, and their annotations are real names: one from `TYPE_CHECKING` would switch validation off."""
    loaded = point.load()
    if point.group != "spacy_cli":
        assert callable(loaded)
        get_type_hints(loaded)
