"""Which pipeline it is: what it is called, and a digest of all its files."""

import json
from pathlib import Path

from ..pipelines.info import folder_of
from ..stores.digests import digest_bytes, digest_file
from ..stores.plain_text import read_object


def identify_pipeline(pipeline: str) -> dict[str, str]:
    """The folder, or the name of an installed package, as a plan has it: "name" with its version, "digest" of names and
    contents of all files. ValueError where it is none."""
    folder = folder_of(pipeline)
    if folder is None or not (folder / "meta.json").is_file():
        raise ValueError(
            "Expected the folder of a pipeline, such as training/mine/model-best, or the name of an installed one, "
            f"but got {pipeline}."
        )
    inner = [x.parent for x in folder.glob("*/config.cfg")]  # a package has the pipeline in a folder of its own
    root = folder if (folder / "config.cfg").is_file() or not inner else inner[0]
    meta = read_object(root / "meta.json")
    name = f"{meta.get('lang', '')}_{meta.get('name', '')} {meta.get('version', '')}".strip(" _")
    return {"name": name, "digest": _digest(root)}


def _digest(folder: Path) -> str:
    files = sorted(x for x in folder.rglob("*") if x.is_file() and "__pycache__" not in x.parts)
    return digest_bytes(json.dumps([[x.relative_to(folder).as_posix(), digest_file(x)] for x in files]).encode())
