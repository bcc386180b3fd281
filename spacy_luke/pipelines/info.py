"""What is installed here, and what a pipeline is made of: for reports of faults, and to know what one has."""

import importlib.metadata as metadata
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.language import Language

from ..bridge.digests import shim_digest
from ..bridge.wrapper import TorchShim
from ..components.base import LukeComponent
from ..text.spelling import shorten
from .card import CARD, SOURCES

Rows = list[tuple[str, str]]
_PACKAGES = ("spacy-luke", "spacy", "thinc", "torch", "tokenizers", "safetensors", "numpy", "marisa-trie")
EXTRAS = {
    "huggingface-hub": "hub",
    "pykeen": "kg",
    "pyarrow": "parquet",
    "ray": "ray",
    "resvg-py": "report",
    "starlette": "serve",
    "uvicorn": "serve",
    "prometheus-client": "serve",
    "spacy-transformers": "transformers",
    "cupy-cuda12x": "cuda12x",
    "cupy-cuda13x": "cuda13x",
}
_DIGITS = 12  # of a digest


class Part(NamedTuple):
    """A component of a pipeline. settings: those that are not the default; digest: the beginning of those of its own
    weights, of an encoder and a head; "" where there are none."""

    name: str
    factory: str
    finds: str
    settings: str
    digest: str


def versions() -> Rows:
    """Of this package and of what it needs; then of what its extras bring, or which extra brings it."""
    found = [("python", f"{platform.python_version()}, {platform.system()} {platform.machine()}")]
    found += [(name, _version(name) or "missing") for name in _PACKAGES]
    return found + [
        (name, _version(name) or f"not here; the extra [{extra}] brings it") for name, extra in EXTRAS.items()
    ]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def parts_of(nlp: Language) -> list[Part]:
    """The components of a pipeline in their order, those of spaCy too. Weights that several share are the first's."""
    seen: set[int] = set()
    return [_part(nlp, name, pipe, seen) for name, pipe in nlp.pipeline]


def _part(nlp: Language, name: str, pipe: Any, seen: set[int]) -> Part:
    labels = [str(label) for label in getattr(pipe, "labels", ())]
    meta, config = nlp.get_pipe_meta(name), nlp.get_pipe_config(name)
    usual = meta.default_config or {}
    shown = [
        f"{key}={value}"
        for key, value in config.items()
        if key in usual and value != usual[key] and not isinstance(value, dict)
    ]
    digests = []
    if isinstance(pipe, LukeComponent):
        for shim in (shim for node in pipe.model.walk() for shim in node.shims):
            if isinstance(shim, TorchShim) and id(shim) not in seen:
                seen.add(id(shim))
                digests.append(shim_digest(shim)[:_DIGITS])
                if getattr(shim, "is_int8", False):
                    shown.insert(0, "int8")
    return Part(name, meta.factory, shorten(labels), ", ".join(shown), " ".join(digests))


def about_pipeline(nlp: Language, path: Path | None) -> Rows:
    """Its name, what it was trained with, and its scores. path: of its folder."""
    meta = nlp.meta
    rows = [
        ("pipeline", f"{meta['lang']}_{meta['name']} {meta['version']}"),
        ("description", str(meta.get("description") or "")),
        ("licence", str(meta.get("license") or "")),
        ("made for", f"spaCy {meta['spacy_version']}"),
        ("trained by", ", ".join(_training(nlp) if meta.get("performance") else ())),
        ("scores", ", ".join(_scores(_computed(nlp, meta.get("performance") or {})))),
    ]
    if path is not None and path.is_dir():
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        rows.append(("folder", f"{path}, {size / 1e6:,.1f} MB"))
        rows += [("card", str(path / name)) for name in (CARD, SOURCES) if (path / name).is_file()]
    return [row for row in rows if row[1]]


def _training(nlp: Language) -> Iterator[str]:
    T = nlp.config.get("training", {})
    for name in ("max_epochs", "max_steps"):
        if T.get(name):
            yield f"{name} {T[name]}"
    rate = T.get("optimizer", {}).get("learn_rate")
    if isinstance(rate, dict):
        yield from (f"{key} {rate[key]}" for key in ("initial_rate", "counted") if rate.get(key))


def _computed(nlp: Language, performance: dict[str, Any]) -> dict[str, Any]:
    """Without the 0 that `spacy train` writes of scores that were not computed, as of sentences that dev data lack:
    where a score has no weight it says nothing."""
    weights = nlp.config.get("training", {}).get("score_weights", {})
    return {name: x for name, x in performance.items() if x != 0 or weights.get(name, 1)}


def _scores(performance: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, value in performance.items():
        if isinstance(value, dict) and not name.endswith("_per_type"):
            yield from _scores(value, f"{path}{name}.")
        elif isinstance(value, int | float) and name.endswith(("_f", "_accuracy", "_em")):
            yield f"{path}{name} {value:.3f}"


def folder_of(pipeline: str) -> Path | None:
    """Of a pipeline by its folder, or by the name of its package."""
    if Path(pipeline).is_dir():
        return Path(pipeline)
    try:
        return spacy.util.get_package_path(pipeline)
    except ImportError:
        return None
