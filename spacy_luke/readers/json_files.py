"""JSON files and JSON lines, with errors that say where."""

import codecs
import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from ..stores.plain_text import decode_text, not_utf8, parse_json, single_keys

T = TypeVar("T")


def read_json(path: str | Path) -> Any:
    """The value of a JSON file; ValueError with file and line where it is none, and where a key is there twice."""
    path = Path(path)
    return _parse_whole(path, path.read_bytes())


def _parse_whole(path: Path, raw: bytes) -> Any:
    text = decode_text(raw, path)
    try:
        data = parse_json(text, object_pairs_hook=single_keys)
    except json.JSONDecodeError as error:
        several = error.msg == "Extra data"
        advice = " The file must be one value, such as one list, not one a line." if several else ""
        raise ValueError(
            f"{path}, line {error.lineno}: expected JSON, but {error.msg} (column {error.colno}).{advice}"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}.") from None
    _check_unicode(str(path), text, data)
    return data


def read_json_lines(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each line that is not blank "FILE, line N" and its object; ValueError where there is none."""
    with Path(path).open("rb") as file:
        yield from _objects_of_lines(Path(path), file)


def _objects_of_lines(path: Path, lines: Iterable[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    empty = True
    for number, raw in enumerate(lines, 1):
        if raw.strip():
            empty = False
            where = f"{path}, line {number}"
            yield where, _parse(where, raw, "utf-8-sig" if number == 1 else "utf-8")
    if empty:
        raise ValueError(f"{path}: expected JSON lines, but the file holds none.")


def read_json_list(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each object of a file that is one JSON list "FILE, item N" (from 0) and the object."""
    path = Path(path)
    yield from _objects_of_list(path, read_json(path))


def _objects_of_list(path: Path, items: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(items, list) or not items:
        raise ValueError(
            f"{path}: expected a JSON list of objects, but got {type(items).__name__} {str(items)[:60]!r}."
        )
    for i, item in enumerate(items):
        where = f"{path}, item {i}"
        if not isinstance(item, dict):
            raise ValueError(f"{where}: expected an object, but got {str(item)[:80]!r}.")
        yield where, item


def read_json_objects(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """As `read_json_list` where the file begins with a bracket, and as `read_json_lines` elsewhere. It is opened once,
    and so may be a pipe."""
    path = Path(path)
    with path.open("rb") as file:
        begin: list[bytes] = []  # up to the first line that is not blank
        start = b""
        while not start and (line := file.readline()):
            start = (line if begin else line.removeprefix(codecs.BOM_UTF8)).strip()
            begin.append(line)
        if start.startswith(b"["):
            yield from _objects_of_list(path, _parse_whole(path, b"".join([*begin, *file])))
        else:
            yield from _objects_of_lines(path, chain(begin, file))


def take(where: str, item: Any, name: str, kind: type[T]) -> T:
    """item[name], which must be there and of this type."""
    if not isinstance(item, dict):
        raise ValueError(f"{where}: expected an object with {name!r}, but got {str(item)[:80]!r}.")
    value = item.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        got = f"{value!r:.80}" if name in item else f"an object with {sorted(item)}"
        raise ValueError(f"{where}: expected {name!r} ({kind.__name__}), but got {got}.")
    return value


def take_strings(where: str, item: Any, name: str) -> list[str]:
    values = take(where, item, name, list)
    if wrong := [i for i, value in enumerate(values) if not isinstance(value, str) or not value]:
        raise ValueError(
            f"{where}: expected strings under {name!r}, not empty, but number {wrong[0]} is {values[wrong[0]]!r}."
        )
    return values


def _parse(where: str, raw: bytes, encoding: str) -> dict[str, Any]:
    try:
        text = raw.decode(encoding)
        data = parse_json(text, object_pairs_hook=single_keys)
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: {not_utf8(error, Path(where.rpartition(', line ')[0]))}") from None
    except ValueError as error:
        raise ValueError(
            f"{where}: expected a JSON object in UTF-8, one a line, but got {raw[:80]!r} ({error})."
        ) from None
    if not isinstance(data, dict):
        raise ValueError(f"{where}: expected an object, one a line, but got {str(data)[:80]!r}.")
    _check_unicode(where, text, data)
    return data


def _check_unicode(where: str, text: str, data: Any) -> None:
    """ValueError for half of a pair of surrogates, which JSON can write and no text can hold."""
    if "\\ud" not in text and "\\uD" not in text:
        return
    try:
        json.dumps(data, ensure_ascii=False).encode("utf8")
    except UnicodeEncodeError as error:
        before = error.object[max(0, error.start - 40) : error.start]
        raise ValueError(
            f"{where}: expected Unicode, but it has half of a pair of surrogates, "
            f"\\u{ord(error.object[error.start]):04x}, after {before!r}: a text was cut inside an emoji. Write the "
            "whole character, or U+FFFD."
        ) from None
