"""Text and JSON that others wrote: errors name the file, the place in it and what to do."""

import json
from pathlib import Path
from typing import Any


def parse_json(text: str | bytes, **settings: Any) -> Any:
    """As json.loads; also of values that are nested too deeply for it a JSONDecodeError, which is a ValueError."""
    try:
        return json.loads(text, **settings)
    except RecursionError:
        raise json.JSONDecodeError("the values are nested too deeply", "", 0) from None


def read_text(path: Path) -> str:
    """A whole file in UTF-8, its line ends as they are. ValueError names the byte that is not."""
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {line}: {not_utf8(error, path)}") from None


def read_object(path: Path) -> dict[str, Any]:
    """The object of a JSON file. ValueError where the file holds anything else."""
    try:
        data = parse_json(read_text(path))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} must hold a JSON object, but it holds a {type(data).__name__}.")
    return data


def not_utf8(error: UnicodeDecodeError, path: Path) -> str:
    """What is wrong and what to do, of a file or a part of it that was decoded."""
    return (
        f"expected UTF-8, but byte {error.start} is {error.object[error.start]:#04x} ({error.reason}). Convert it "
        f"from what it is in, such as by iconv -f latin1 -t utf8 {path} > NEW."
    )
