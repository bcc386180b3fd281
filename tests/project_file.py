"""project.yml, as `python -m spacy project run` reads it."""

from pathlib import Path
from typing import Any

import srsly
from spacy.util import SimpleFrozenDict
from weasel.util.config import load_project_config

ROOT = Path(__file__).parents[1]


def load_project(overrides: dict[str, Any] = SimpleFrozenDict()) -> dict[str, Any]:
    """weasel makes the folders that project.yml names, and fails where another process makes one at the same moment, as
    two processes of the tests do in a fresh clone: they are made before, whoever makes them.
    """
    for folder in srsly.read_yaml(ROOT / "project.yml")["directories"]:
        (ROOT / folder).mkdir(parents=True, exist_ok=True)
    return load_project_config(ROOT, overrides=overrides)
