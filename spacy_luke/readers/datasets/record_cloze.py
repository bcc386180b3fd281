"""ReCoRD (Zhang et al., 2018): queries on a passage, which one of its entities fills."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...annotations import Query
from ...stores.plain_text import parse_json
from ..json_files import read_json, read_json_lines, take
from ..records import ENTITY_LABEL, Mention, Record
from .places import unique


def read_record(path: str | Path) -> Iterator[Record]:
    """ReCoRD (Zhang et al., 2018), the original JSON with "data", or SuperGLUE's JSON lines; a passage is a document.

    A passage has "text" and "entities", characters "start" to "end", which belongs to them; they are the candidates of
    the passage's "qas", each with a "query" that holds @placeholder, and "answers" among them.
    """
    for where, item in _record_passages(Path(path)):
        passage = take(where, item, "passage", dict)
        text = take(where, passage, "text", str)
        entities = take(where, passage, "entities", list)
        places = unique([_record_place(f"{where}, entity {i}", text, entity) for i, entity in enumerate(entities)])
        queries: list[Query] = []
        for i, qa in enumerate(take(where, item, "qas", list)):
            at = f"{where}, query {i}"
            query = Query(query=take(at, qa, "query", str), candidates=places)
            query["id"] = next(str(x) for x in (qa.get("id"), qa.get("idx"), i) if x is not None)
            if "answers" in qa:
                answers = take(at, qa, "answers", list)
                found = [_record_place(f"{at}, answer {k}", text, answer) for k, answer in enumerate(answers)]
                query["answers"] = unique(found)
            queries.append(query)
        yield Record(
            where, text=text, mentions=[Mention(start, end, ENTITY_LABEL) for start, end in places], queries=queries
        )


def _record_passages(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
    try:
        is_lines = "passage" in parse_json(first.decode("utf-8-sig"))
    except (ValueError, TypeError):  # one value over several lines
        is_lines = False
    if is_lines:
        yield from read_json_lines(path)
        return
    for i, item in enumerate(take(str(path), read_json(path), "data", list)):
        yield f"{path}, passage {i}", item


def _record_place(where: str, text: str, item: Any) -> list[int]:
    start, end = take(where, item, "start", int), take(where, item, "end", int) + 1
    if not 0 <= start < end <= len(text):
        raise ValueError(
            f"{where}: expected characters of the passage, which has {len(text)}, but got {start} to {end - 1}."
        )
    if "text" in item and item["text"] != text[start:end]:
        raise ValueError(
            f"{where}: expected {item['text']!r:.80} at {start} to {end - 1}, but there is {text[start:end]!r}."
        )
    return [start, end]
