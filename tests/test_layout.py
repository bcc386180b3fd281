"""The walls of the package: imports point down only, and each library stays in its rooms."""

import ast
import re
from importlib.metadata import distribution
from pathlib import Path
from typing import get_type_hints

import pytest

import spacy_luke

ROOT = Path(spacy_luke.__file__).parent
# A part may import parts of lower rows; parts of one row never import each other.
ROWS = [
    ["cli"],
    ["components", "readers", "scorers", "training", "pretraining"],
    ["architectures"],
    ["encoders"],
    ["bridge"],
    ["checkpoint"],
    ["model"],
    ["batch"],
    ["graph", "corpus"],
    ["kb"],
    ["aliases"],
    ["vectors", "wikipedia"],
    ["text", "entity_vocab"],
    ["saving"],
    ["stores"],
    ["annotations"],
]
RANK = {part: rank for rank, row in enumerate(ROWS) for part in row}
# Where a library may be imported; other parts work without it.
ROOMS = {
    "spacy": [
        "cli",
        "components",
        "readers",
        "scorers",
        "training",
        "annotations",
        "architectures",
        "encoders",
        "bridge",
        "checkpoint.sources",
        "corpus.from_docs",
        "pretraining.registry",
    ],
    "thinc": ["cli", "components", "training", "pretraining.registry", "architectures", "encoders", "bridge"],
    "torch": [
        "components",
        "training",
        "pretraining",
        "architectures",
        "encoders",
        "bridge",
        "checkpoint",
        "model",
        "graph",
    ],
    "marisa_trie": ["aliases"],
    "pykeen": ["graph"],
    "ray": ["corpus"],
    "transformers": [],
    "seqeval": [],
}
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sorted(ROOT.rglob("*.py"))}
ENTRY_POINTS = [point for point in distribution("spacy-luke").entry_points if point.value.startswith("spacy_luke.")]


def imported_names(module: str, source: str) -> set:
    """Absolute dotted names of everything that a module imports, at any depth, `from x import y` as x.y."""
    package = ["spacy_luke", *module.split(".")[:-1]]
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *([node.module] if node.module else [])]
            names.update(".".join([*base, alias.name]) for alias in node.names)
    return names


def broken_walls(module: str, source: str) -> list:
    part = module.split(".")[0]
    broken = []
    for name in sorted(imported_names(module, source)):
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
    assert parts <= set(RANK), "a new part must be entered in ROWS (and in the README's map)"


@pytest.mark.parametrize("module", [module for module in MODULES if module != "__init__"])
def test_imports_point_down(module):
    assert broken_walls(module, MODULES[module].read_text(encoding="utf8")) == []


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
    assert len(broken_walls(module, source)) == expected


@pytest.mark.parametrize("module", [module for module in MODULES if not module.startswith("annotations.")])
def test_rows_of_docs_have_one_owner(module):
    """What is under the package's keys of user_data is read and written by `spacy_luke.annotations` alone."""
    lines = MODULES[module].read_text(encoding="utf8").splitlines()
    assert [line for line in lines if re.search(r"\w\.user_data\b", line) and re.search(r"luke_|\[[a-z]", line)] == []


def test_no_drawers():
    """`utils` and `common` say nothing; `types` and `typing` would shadow the standard library."""
    assert not {name for module in MODULES for name in module.split(".")} & {
        "utils",
        "util",
        "common",
        "types",
        "typing",
    }


def test_entry_points_are_installed():
    assert len(ENTRY_POINTS) >= 9, "the installed metadata is old: install the package again"


@pytest.mark.parametrize("point", ENTRY_POINTS, ids=lambda point: point.name)
def test_entry_points_resolve(point):
    """They load, and their annotations are real names: one from `TYPE_CHECKING` would switch validation off."""
    loaded = point.load()
    if point.group != "spacy_cli":
        assert callable(loaded)
        get_type_hints(loaded)
