"""Modules of benchmarks/, which are scripts and no package."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


def load(name: str) -> ModuleType:
    """One that imports no other."""
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None, name
    assert spec.loader is not None, name
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def by_bare_names() -> Iterator[None]:
    """Scripts import one another by their bare names, as from their own folder; afterwards nothing of them is left.
    What else was imported by these names, such as scripts/ready_data.py, is put aside meanwhile."""
    aside = {name: sys.modules.pop(name) for name in _names()}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield
    for name in _names():
        del sys.modules[name]
    sys.modules.update(aside)


def _names() -> list[str]:
    return [name for name in sys.modules if (FOLDER / f"{name}.py").is_file()]
