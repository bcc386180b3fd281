"""Sections of a pretraining's config: what each must have, and objects of settings made of them.

All functions raise ValueError with the dotted name of the setting, what was expected and what came.
"""

import difflib
from collections.abc import Sequence
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ..text.spelling import nearest

SettingsT = TypeVar("SettingsT")


def check_sections(config: dict[str, Any], sections: Sequence[str]) -> None:
    if set(config) != set(sections):
        near = difflib.get_close_matches(next(iter(set(config) - set(sections)), ""), sections)
        raise ValueError(
            f"A pretraining config must have the sections {list(sections)}, but this one has {list(config)}."
            + (f" Is {near[0]} meant?" if near else "")
        )


def check_settings(section: Any, name: str, required: Sequence[str], optional: Sequence[str] = ()) -> None:
    """ValueError where a section lacks a setting, or has one that is none."""
    known = [*required, *optional]
    if not isinstance(section, dict):
        raise ValueError(f"[{name}] must be a section, but it is {section!r}.")
    for setting in section:
        if setting not in known:
            raise ValueError(f"{name}.{setting}: there is no such setting{nearest(setting, known)}")
    if missing := [setting for setting in required if setting not in section]:
        raise ValueError(f"[{name}] lacks {', '.join(missing)}: copy what is missing from one of the files in configs.")


def check_count(value: Any, name: str, *, least: int = 1) -> None:
    if type(value) is not int or value < least:
        raise ValueError(f"{name} must be a whole number from {least}, but it is {value!r}.")


def check_switch(value: Any, name: str) -> None:
    if type(value) is not bool:
        raise ValueError(f"{name} must be true or false, but it is {value!r}.")


def _check_types(kind: type[Any], section: dict[str, Any], name: str) -> None:
    """Of numbers, texts and switches; the rest is checked by the settings themselves."""
    for setting, wanted in get_type_hints(kind).items():
        kinds = get_args(wanted) if get_origin(wanted) in (Union, UnionType) else (wanted,)
        if setting in section and all(x in (int, float, str, bool, type(None)) for x in kinds):
            value = section[setting]
            if type(value) not in kinds and not (float in kinds and type(value) is int):
                names = " or ".join("null" if x is type(None) else x.__name__ for x in kinds)
                raise ValueError(f"{name}.{setting} must be {names}, but it is {value!r}.")


def make_settings(kind: type[SettingsT], section: dict[str, Any], name: str) -> SettingsT:
    """An object of settings from a section, whose name is for messages."""
    if not isinstance(section, dict):
        raise ValueError(f"[{name}] must be a section, but it is {section!r}.")
    _check_types(kind, section, name)
    try:
        return kind(**section)
    except TypeError as error:
        raise ValueError(f"[{name}] has a setting that does not exist, or lacks one: {error}.") from error
