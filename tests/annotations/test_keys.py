"""Names of annotations are written in one file."""

import ast
from pathlib import Path

import pytest

import spacy_luke
from spacy_luke.annotations import keys

ROOT = Path(spacy_luke.__file__).parent
NAMES = {value for name, value in vars(keys).items() if name.isupper() and isinstance(value, str)} - {keys.NIL}


@pytest.mark.slow
def test_names_are_written_once():
    """NIL apart, which is also a label of the original NER."""
    written = [
        (path.relative_to(ROOT).as_posix(), node.value)
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8")))
        if isinstance(node, ast.Constant) and node.value in NAMES
    ]
    assert {path for path, _ in written} == {"annotations/keys.py"}
    assert {name for _, name in written} == NAMES
