"""Ids that several texts of a run have: their own, not those that they get by their places. They are sorted on disk,
so that a stream of any length takes the memory of a short one."""

import json
import shutil
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TypedDict

from ..stores.sorting import SortedLines
from .given_texts import InputItem

_IN_MEMORY = 1 << 16  # lines
_TOLD = 10  # ids, and places of each


class RepeatedId(TypedDict):
    """An id, and the first places of its texts."""

    id: str
    places: list[str]


class Repeated(TypedDict):
    """ids: that several texts have; documents: that have one of them; first: some of the ids."""

    ids: int
    documents: int
    first: list[RepeatedId]


NONE_REPEATED = Repeated(ids=0, documents=0, first=[])


class OwnIds:
    """The ids of a run, which are added text by text. folder: for lines that are sorted; what is there is replaced."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self._lines = SortedLines(folder, most=_IN_MEMORY)

    def add(self, items: Iterable[InputItem]) -> None:
        for item in items:
            if item.id != item.place:  # its own; a place is another one for each text
                self._lines.add(f"{json.dumps(item.id)}\t{json.dumps(item.place)}\n")

    def repeated(self) -> Repeated:
        found = Repeated(ids=0, documents=0, first=[])
        for id, lines in groupby(self._lines, lambda line: line.partition("\t")[0]):
            places, documents = [], 0
            for line in lines:
                documents += 1
                if documents <= _TOLD:
                    places.append(json.loads(line.partition("\t")[2]))
            if documents > 1:
                found["ids"] += 1
                found["documents"] += documents
                if len(found["first"]) < _TOLD:
                    found["first"].append(RepeatedId(id=json.loads(id), places=places))
        return found
