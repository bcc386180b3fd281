"""project.yml, as `python -m spacy project run` reads it."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import srsly
from spacy.util import SimpleFrozenDict
from weasel.util.config import load_project_config, substitute_project_variables

ROOT = Path(__file__).parents[1]


def load_project(overrides: dict[str, Any] = SimpleFrozenDict()) -> dict[str, Any]:
    """With other values of its variables. The file is read once in a process."""
    found: dict[str, Any] = substitute_project_variables(deepcopy(_read(ROOT)), overrides)
    return found


@cache
def _read(folder: Path) -> dict[str, Any]:
    """weasel makes the folders that project.yml names, and fails where another process makes one at the same moment, as
    two processes of the tests do in a fresh clone: they are made before, whoever makes them.
    """
    for name in srsly.read_yaml(folder / "project.yml")["directories"]:
        (folder / name).mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = load_project_config(folder, interpolate=False)
    return found
