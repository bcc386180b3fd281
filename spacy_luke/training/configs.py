"""Configs of trainings: read with overrides, and checked before anything is made of them."""

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from spacy.schemas import ConfigSchemaInit, ConfigSchemaNlp, ConfigSchemaTraining
from spacy.util import CONFIG_SECTION_ORDER, get_lang_class, load_config
from thinc.api import Config

from ..text.spelling import nearest

_OWN_NAMES = ("paths", "system")  # sections whose settings a config makes up itself
_LARGEST = 1_000_000  # characters of a config, and of what its references make of it
_MOST_SECTIONS = 1000  # spaCy's parser takes time that grows with the square of their number
_LONGEST_CHAIN = 10  # references that lead to another; spaCy's parser follows no more
_REFERENCE = re.compile(r"\$\{([^}]+)\}")
_SCHEMAS: dict[str, type[BaseModel]] = {
    "nlp": ConfigSchemaNlp,
    "training": ConfigSchemaTraining,
    "initialize": ConfigSchemaInit,
}


def read_config(path: Path, overrides: dict[str, Any], *, interpolate: bool = True) -> Config:
    """A config with other settings, by their names with dots. Raises ValueError for a file that is too large to be one,
    a setting that there is not, and references that lead nowhere."""
    _check_size(path)
    known = load_config(path, interpolate=False)
    for name in overrides:
        section, _, setting = name.partition(".")
        if section not in known:
            raise ValueError(f"--{name}: the config has no section [{section}]{nearest(section, known)}")
        if section in _OWN_NAMES and setting not in known[section]:
            raise ValueError(f"--{name}: there is no such setting in [{section}]{nearest(setting, known[section])}")
    _check_references(load_config(path, overrides=overrides, interpolate=False))
    return load_config(path, overrides=overrides, interpolate=interpolate)


def _check_size(path: Path) -> None:
    """ValueError where the file is no text, or reading it would take minutes."""
    try:
        text = path.read_text(encoding="utf8") if path.stat().st_size <= _LARGEST else None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: expected a config, which is text in UTF-8, but byte {error.start} is "
            f"{error.object[error.start]:#04x}. Data are named in a config, or by --paths.train; a config in another "
            "encoding is to be converted."
        ) from None
    sections = 0 if text is None else len(re.findall(r"^\[", text, re.MULTILINE))
    if text is None or sections > _MOST_SECTIONS:
        found = f"{path.stat().st_size:,} bytes" if text is None else f"{sections:,} sections"
        raise ValueError(
            f"{path} has {found}: a config may have {_LARGEST:,} bytes and {_MOST_SECTIONS:,} sections. Is it a config?"
        )


def _check_references(config: Config) -> None:
    """ValueError where ${...} lead back to themselves, or where what they stand for is longer than LARGEST."""
    known: dict[tuple[int, str], tuple[int, int]] = {}

    def measure(value: Any, section: dict[str, Any], chain: list[str]) -> tuple[int, int]:
        """Characters that a value of this section has in the end, and the longest chain of references from it."""
        if isinstance(value, dict):
            parts = [measure(x, value, chain) for x in value.values()]
        elif isinstance(value, list):
            parts = [measure(x, section, chain) for x in value]
        else:
            parts = [follow(name, section, chain) for name in _REFERENCE.findall(str(value))]
            parts.append((len(str(value)), 0))
        return sum(size for size, _ in parts), max((length for _, length in parts), default=0)

    def follow(name: str, section: dict[str, Any], chain: list[str]) -> tuple[int, int]:
        holder, key = _find(config, section, name)
        chain, place = [*chain, name], (id(holder), key)
        if place not in known and len(chain) <= _LONGEST_CHAIN:
            size, length = measure(holder.get(key), holder, chain)
            known[place] = size, length + 1
        size, length = known.get(place, (0, _LONGEST_CHAIN))
        if len(chain) - 1 + length > _LONGEST_CHAIN:
            shown = " -> ".join(f"${{{x}}}" for x in chain[:3])
            raise ValueError(
                f"The config's references {shown} lead back to themselves, or through more than {_LONGEST_CHAIN} "
                "others."
            )
        if size > _LARGEST:
            raise ValueError(f"What ${{{name}}} stands for in the config is longer than {_LARGEST:,} characters.")
        return size, length

    measure(config, config, [])


def _find(config: dict[str, Any], section: dict[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """The section that holds what ${name} stands for, and its name there: as spaCy's parser, the section itself
    first."""
    if name in section and _REFERENCE.fullmatch(str(section[name])) is None:
        return section, name
    *path, key = name.replace(":", ".").split(".")
    holder: Any = config
    for part in path:
        holder = holder.get(part) if isinstance(holder, dict) else None
    return (holder, key) if isinstance(holder, dict) else ({}, key)


def check_config_names(config: Config) -> None:
    """Of a config for training: ValueError for a section that is missing, and for a setting of spaCy's own sections
    that does not exist; spaCy lets these pass."""
    for section in ("nlp", "corpora", "training"):
        if not isinstance(config.get(section), dict):
            raise ValueError(
                f"The config has no section [{section}], which training needs: `spacy init fill-config` adds what is "
                f"missing."
            )
    for section, schema in _SCHEMAS.items():
        known = schema.model_fields
        for name in config.get(section, {}):
            if name not in known:
                raise ValueError(f"{section}.{name}: there is no such setting{nearest(name, known)}")
    pipeline = config["nlp"].get("pipeline")
    for setting in ("frozen_components", "annotating_components"):
        named = config["training"].get(setting, [])
        for name in named if isinstance(named, list) and isinstance(pipeline, list) else []:  # not "${...}"
            if name not in pipeline:
                raise ValueError(
                    f"training.{setting}: the pipeline, {pipeline}, has no {name!r}{nearest(name, pipeline)}"
                )


def with_defaults(config: Config) -> Config:
    """A config for training with what spaCy takes where it says nothing, such as which corpus is train_corpus; settings
    of components apart."""
    lang = config["nlp"].get("lang")
    if lang is None:
        raise ValueError("The config has no lang in [nlp], which says whose tokenizer the pipeline has: set it, as en.")
    return Config(get_lang_class(lang).default_config, section_order=CONFIG_SECTION_ORDER).merge(config)
