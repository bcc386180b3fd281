"""Pipelines as commands want them: with components of their own, with other settings than those that they were saved
with, on a GPU."""

from pathlib import Path
from typing import Any

import spacy
from spacy.cli._util import setup_gpu
from spacy.language import Language
from spacy.util import import_file

from ..text.spelling import nearest


def import_code(path: str | Path | None) -> None:
    """Run a Python file that registers components and functions, before a pipeline that has them is loaded; None: there
    is none. Raises ValueError where it ends in an error."""
    if path is None:
        return
    try:
        import_file("python_code", path)
    except Exception as error:
        raise ValueError(f"{path}: the Python file of --code ends in {type(error).__name__}: {error}") from error


def load_pipeline(path: str, overrides: dict[str, Any]) -> Language:
    """A pipeline with other settings of its components than those that it was saved with."""
    nlp = spacy.load(path)
    for name in overrides:
        component, setting = ([*name.split(".")[1:3], "", ""])[:2]
        if not name.startswith("components.") or component not in nlp.pipe_names:
            raise ValueError(f"--{name}: expected components.NAME.SETTING with one of {nlp.pipe_names} as NAME.")
        if setting not in nlp.config["components"][component]:
            raise ValueError(
                f"--{name}: there is no such setting{nearest(setting, nlp.config['components'][component])}"
            )
    return spacy.load(path, config=overrides) if overrides else nlp


def use_gpu(gpu_id: int) -> None:
    """Let spaCy work on this GPU; -1: on the CPU. As spaCy's `setup_gpu`, with an error that says what to install."""
    try:
        setup_gpu(gpu_id)
    except ValueError as error:
        raise ValueError(
            f'--gpu-id {gpu_id}: {error}. On a GPU spaCy needs CuPy (pip install "spacy-luke[cuda12x]", or cuda13x, as '
            f"your driver "
            "is), and a torch that finds the GPU; on the CPU leave out --gpu-id."
        ) from error
