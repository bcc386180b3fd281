"""Label Studio's exports of labelled texts, JSON and JSON-MIN."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ...stores.plain_text import parse_json
from ..json_files import read_json_list, take, take_strings
from ..records import Mention, Place, Record
from .places import other_words

_DIRECTIONS = {"right": (False,), "left": (True,), "bi": (False, True)}  # whether a relation leads from tail to head

_KINDS = ("labels", "hypertextlabels")  # of regions that are mentions
_CHARACTERS, _UTF16 = "characters", "UTF-16"  # what places may be counted in


def read_label_studio(path: str | Path) -> Iterator[Record]:
    """A JSON list of tasks. A task has its "data", the text under "text" or as the only string, and "annotations", of
    which the first that was not cancelled counts: regions of type "labels" or "hypertextlabels" are mentions, one for
    each of their labels, and those of type "relation" relations, one for each of theirs ("related" where there is
    none). JSON-MIN has in one object the "text" and, under the names of the controls, lists of regions or such a list
    as a string: those of objects with "start", "end" and "labels" are read, other lists of objects are left out and
    counted.

    Tasks without an annotation are left out, and counted in `Record.notes` of the last one that has any; further
    annotations of a task, regions of other types, those without a label and relations of these are left out, and
    counted in its own. Raises ValueError where no task has an annotation, where no task of JSON-MIN has a list of
    regions, and where a region's own text is not what stands at its place: places are counted in characters, or, as
    browsers do, in units of UTF-16, which the regions of a task tell together.
    """
    last: Record | None = None
    left_out = 0
    keys: set[str] | None = set()  # of tasks without a list of regions; None: a task has one
    for where, item in read_json_list(path):
        if (task := _small_task(where, item) if "data" not in item else _task(where, item)) is None:
            left_out += 1
            continue
        if last is not None:
            yield last
        last = _record(where, task)
        keys = None if keys is None or task.has_regions else keys | item.keys()
    if keys:
        raise ValueError(
            f"{path}: expected in a task of JSON-MIN a list of regions with 'start', 'end' and 'labels', but no task "
            f"has one; their keys are {sorted(keys)}. Export it anew, as JSON or as JSON-MIN of a project with Labels."
        )
    if left_out and last is None:
        raise ValueError(f"{path}: expected tasks with an annotation, but none of the {left_out} has any.")
    if left_out and last is not None:
        last = replace(last, notes={**last.notes, "tasks without an annotation, left out": left_out})
    if last is not None:
        yield last


class _Task(NamedTuple):
    """notes: what is left out; has_regions: whether it has a list of regions, which may be empty."""

    text: str
    regions: list[dict[str, Any]]
    notes: dict[str, int]
    has_regions: bool = True


def _task(where: str, item: dict[str, Any]) -> _Task | None:
    """None where nobody annotated it."""
    data = take(where, item, "data", dict)
    named = [value for name, value in data.items() if name == "text" and isinstance(value, str)]
    strings = named or [value for value in data.values() if isinstance(value, str)]
    if len(strings) != 1:
        raise ValueError(f"{where}: expected the text under 'text' of its data, but there are {sorted(data)}.")
    done = [one for one in item.get("annotations") or [] if isinstance(one, dict) and not one.get("was_cancelled")]
    if not done:
        return None
    regions = [one for one in take(where, done[0], "result", list) if isinstance(one, dict)]
    further = len(done) - 1
    return _Task(strings[0], regions, {"annotations of a task beside its first, left out": further} if further else {})


def _small_task(where: str, item: dict[str, Any]) -> _Task:
    """A task of JSON-MIN. A text without regions may lack their list."""
    text = take(where, item, "text", str)
    lists = {name: found for name, value in item.items() if name != "text" and (found := _objects(value)) is not None}
    others = {name for name, found in lists.items() if found and not any(map(_is_region, found))}
    regions = [{"type": "labels", "value": one} for name in lists if name not in others for one in lists[name]]
    notes = {f"lists under {name!r} without start, end and labels, left out": 1 for name in sorted(others)}
    return _Task(text, regions, notes, has_regions=lists.keys() > others)


def _objects(value: Any) -> list[dict[str, Any]] | None:
    """A list of objects, also as a string of JSON; None for anything else."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = parse_json(value)
        except json.JSONDecodeError:
            return None
    return value if isinstance(value, list) and all(isinstance(one, dict) for one in value) else None


def _is_region(value: dict[str, Any]) -> bool:
    return {"start", "end"} <= value.keys() and not value.keys().isdisjoint(_KINDS)


def _record(where: str, task: _Task) -> Record:
    text, regions, notes = task.text, task.regions, Counter(task.notes)
    mentions: list[Mention] = []
    numbers: dict[Any, int | None] = {}  # of the first mention of each region, by its id; None: it has no label
    marked = [region for region in regions if region.get("type") in _KINDS]
    values = [take(where, region, "value", dict) for region in marked]
    places = iter(_places(where, values, text))
    for region in regions:
        kind = region.get("type")
        if kind in _KINDS:
            value, (start, end) = region["value"], next(places)
            labels = take_strings(where, value, _KINDS[1] if _KINDS[1] in value else _KINDS[0])
            numbers[region.get("id")] = len(mentions) if labels else None
            notes.update({"regions without a label, left out": 1} if not labels else {})
            mentions += [Mention(start, end, label) for label in labels]
        elif kind != "relation":
            notes[f"regions of type {kind}, left out"] += 1
    relations: list[tuple[int, int, str]] = []
    for region in regions:
        if region.get("type") == "relation":
            head, tail = _ends(where, region, numbers)
            if head is None or tail is None:
                notes["relations of regions without a label, left out"] += 1
            else:
                relations += _relations(region, head, tail)
    return Record(where, text=text, mentions=mentions, relations=relations or None, notes=dict(notes))


def _places(where: str, values: list[dict[str, Any]], text: str) -> list[Place]:
    """Where regions are. One whose text stands at its place in one unit alone proves the unit of those that fit in
    both, and of those without a text; where none does, these are in characters."""
    units = text.encode("utf-16-le", "surrogatepass")
    found = [_readings(where, value, text, units) for value in values]
    proven = {unit for places in found if len(places) == 1 for unit in places}
    chosen = next(iter(proven)) if len(proven) == 1 else _CHARACTERS
    for value, places in zip(values, found, strict=True):
        if len(proven) > 1 and len(set(places.values())) > 1:
            raise ValueError(
                f"{where}: the mention at {value['start']} {value['end']} may be meant in characters or in units of "
                "UTF-16, and other regions of the task prove both. Give the places of all in one unit."
            )
    return [places.get(chosen) or next(iter(places.values())) for places in found]


def _readings(where: str, value: dict[str, Any], text: str, units: bytes) -> dict[str, Place]:
    """The places, in characters, that a region may mean, by the unit that they are counted in. units: the text's."""
    start, end = (take(where, value, name, int) for name in ("start", "end"))
    said = value.get("text")
    places = {_CHARACTERS: (start, end)}
    if len(units) > 2 * len(text):
        first, last = (len(units[: 2 * edge].decode("utf-16-le", "replace")) for edge in (start, end))
        places[_UTF16] = first, last
    if not isinstance(said, str):
        return places
    agree = {unit: (a, b) for unit, (a, b) in places.items() if text[a:b] == said}
    if not agree:
        raise other_words(where, f"{start} {end}", said, text[start:end])
    return agree


def _ends(where: str, region: dict[str, Any], numbers: Mapping[Any, int | None]) -> tuple[int | None, int | None]:
    """Numbers of the head and the tail of a relation."""
    ends = [region.get("from_id"), region.get("to_id")]
    if missing := [one for one in ends if one not in numbers]:
        raise ValueError(f"{where}: a relation leads to the region {missing[0]!r}, but no mention has this id.")
    return numbers[ends[0]], numbers[ends[1]]


def _relations(region: dict[str, Any], head: int, tail: int) -> Iterator[tuple[int, int, str]]:
    for label in region.get("labels") or ["related"]:
        for is_back in _DIRECTIONS.get(region.get("direction", "right"), (False,)):
            yield (tail, head, label) if is_back else (head, tail, label)
