"""What the commands that pretrain share: reading a config, and making settings of its sections."""

import difflib
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from spacy.cli._util import import_code, parse_config_overrides, show_validation_error
from spacy.util import load_config


def read_config(path: Path, arguments: List[str], *, code: Optional[Path]) -> Dict[str, Any]:
    """Interpolated, with overrides as in `spacy train`. code: a Python file with registered functions."""
    overrides = parse_config_overrides(arguments)
    if code is not None:
        import_code(code)
    with show_validation_error(path):
        return load_config(path, overrides=overrides, interpolate=True)


def check_sections(config: Dict[str, Any], sections: Sequence[str]) -> None:
    if set(config) != set(sections):
        near = difflib.get_close_matches(next(iter(set(config) - set(sections)), ""), sections)
        raise ValueError(
            f"A pretraining config must have the sections {list(sections)}, but this one has {list(config)}."
            + (f" Is {near[0]} meant?" if near else "")
        )


def make_settings(kind: type, section: Dict[str, Any], name: str) -> Any:
    """An object of settings from a section, whose name is for messages."""
    try:
        return kind(**section)
    except TypeError as error:
        raise ValueError(f"[{name}] has a setting that does not exist, or lacks one: {error}.") from error
