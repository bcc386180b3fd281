"""Modules of benchmarks/, which are scripts and no package."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[1] / "benchmarks"


def load(name: str) -> ModuleType:
    """One that imports no other."""
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None, name
    assert spec.loader is not None, name
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
