"""Items of a dump of Wikidata: JSON, an item a line, plain or packed."""

import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from ..stores.opening import open_source
from ..stores.plain_text import parse_json


def read_items(
    path: Path, progress: bool, *, skip: Callable[[ValueError], None] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Lines and items of a dump of Wikidata. ValueError names the line that is none; skip: gets it, and reading goes
    on."""
    with open_source(path, progress=progress) as file, text_of(file) as lines:
        for line, item in parse_items(path, enumerate(lines, 1)):
            if not isinstance(item, ValueError):
                yield line, item
            elif skip is None:
                raise item
            else:
                skip(item)


def parse_items(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, dict[str, Any] | ValueError]]:
    """Of numbered lines of a dump those with items; a ValueError, which names the line, where it is none."""
    for line, data in lines:
        text = data.strip().rstrip(",")
        if not text or text in ("[", "]"):
            continue
        try:
            yield line, _read_item(path, line, text)
        except ValueError as error:
            yield line, error


def _read_item(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        item = parse_json(text)
    except ValueError as error:
        raise ValueError(
            f"{path}, line {line}: not JSON ({error}). Expected an item a line, as Wikidata's dumps have them; the "
            "file may be truncated."
        ) from error
    if not isinstance(item, dict):
        raise ValueError(f"{path}, line {line}: expected an item, but got {text[:80]!r}.")
    return item


def text_of(file: BinaryIO) -> TextIO:
    """The lines of an open file as text."""
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n")


def id_of_claim(claim: dict[str, Any]) -> str | None:
    """The id of the item that a claim leads to; None where its value is no item."""
    value = (claim.get("mainsnak") or {}).get("datavalue") or {}
    return value["value"].get("id") if isinstance(value.get("value"), dict) else None
