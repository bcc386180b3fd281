"""The manifest of a store that is a folder: what it is, and of which version."""

import json
from pathlib import Path
from typing import Any, Callable, Dict

MANIFEST = "manifest.json"


def read_manifest(
    path: Path,
    *,
    what: str,
    form: str,
    version: int,
    is_whole: Callable[[Dict[str, Any]], bool],
    build: str,
    again: str,
) -> Dict[str, Any]:
    """The manifest of a folder. what: such as "store of vectors"; form, version: that are read; build, again: the advice
    where it is something else, and where it is damaged.

    Raises ValueError for what is no such store, one of another version, or one whose manifest is not whole.
    """
    file = path / MANIFEST
    if not file.is_file():
        raise ValueError(f"{path} is no {what}: there is no {MANIFEST}. {build}")
    try:
        manifest = json.loads(file.read_text(encoding="utf8"))
        found_form, found_version = manifest["format"], manifest["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no {what}: {MANIFEST} is not readable ({error!r}). {build}") from error
    if found_form != form:
        raise ValueError(f"{path} is no {what}: {MANIFEST} says format {found_form!r}. {build}")
    if found_version != version:
        raise ValueError(
            f"{path} is a {what} of version {found_version}, but this spacy_luke reads version {version}. Build it again."
        )
    if not is_whole(manifest):
        raise ValueError(f"{path} is a damaged {what}: {MANIFEST} is not whole. {again}")
    return manifest


def check_replaceable(folder: Path, *, form: str, what: str) -> None:
    """ValueError where a folder that is no store of this format would be replaced by one. what: such as "vectors"."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; expected the name of a folder for {what}.")
    if folder.is_dir() and any(folder.iterdir()):
        manifest = folder / MANIFEST
        if not manifest.is_file() or form not in manifest.read_text(encoding="utf8", errors="replace"):
            raise ValueError(
                f"{folder} would be replaced, but it holds something else than {what}. Choose another name."
            )
