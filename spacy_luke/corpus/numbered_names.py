"""Names of entities by number, so that of very many of them only numbers are in memory.

The names of a hundred languages' links are some hundred million: as texts in a dictionary they take a kilobyte each, as
numbers some 50 bytes. The names themselves are sorted in files; which of them are one entity, and which entities are
linked most, is computed of the numbers, which stand in the order of the names.

N names, G groups of names that interwiki links join, E links of names to groups.
"""

import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import tee
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..stores.sorting import SortedLines, SortedSums
from ..wikipedia.interwiki import Name

# Signs up to this one are written as it and another, so that a title has no tab and no line feed, and names as lines
# stand in the order of names: the tab after a language, or a title, is below all other signs.
_MARK = "\x0b"
_LOW, _MARKED = re.compile(f"[\x00-{_MARK}]"), re.compile(f"{_MARK}(.)")


def name_to_line(name: Name) -> str:
    """A name as one line, without its end."""
    language, title = name
    return f"{language}\t{_LOW.sub(lambda sign: f'{_MARK}{chr(32 + ord(sign[0]))}', title)}"


def line_to_name(key: str) -> Name:
    language, _, title = key.partition("\t")
    return language, _MARKED.sub(lambda sign: chr(ord(sign[1]) - 32), title)


class NumberedNames:
    """Names in order, in a file, a line each. links_N: how often each is linked; language_N: its place among
    `languages`."""

    def __init__(self, sums: SortedSums, path: Path) -> None:
        self._path = path
        self.languages: list[str] = []
        links, languages = array("q"), array("h")
        with path.open("w", encoding="utf8", newline="\n") as file:
            for key, total in sums:
                language = key.partition("\t")[0]
                if not self.languages or self.languages[-1] != language:
                    self.languages.append(language)
                links.append(int(total))
                languages.append(len(self.languages) - 1)
                file.write(key + "\n")
        self.links_N: NDArray[np.int64] = np.frombuffer(links, np.int64) if links else np.zeros(0, np.int64)
        self.language_N: NDArray[np.int16] = np.frombuffer(languages, np.int16) if links else np.zeros(0, np.int16)

    def __len__(self) -> int:
        return len(self.links_N)

    def __iter__(self) -> Iterator[str]:
        """The names as lines, without their ends."""
        with self._path.open(encoding="utf8", newline="\n") as file:
            for line in file:
                yield line[:-1]

    def find(self, keys: Iterable[str]) -> Iterator[int | None]:
        """The number of each key, None where there is none. keys: in order, each as often as wanted."""
        own = enumerate(self)
        number, mine = next(own, (0, None))
        for key in keys:
            while mine is not None and mine < key:
                number, mine = next(own, (0, None))
            yield number if mine == key else None

    def among(self, keys: SortedSums) -> NDArray[np.bool_]:
        """Which names are among the keys: (N,)."""
        found_N = np.zeros(len(self), bool)
        for number in self.find(key for key, _ in keys):
            if number is not None:
                found_N[number] = True
        return found_N

    def take(self, numbers: NDArray[np.int64]) -> dict[int, Name]:
        """The names of some numbers."""
        wanted = np.zeros(len(self), bool)
        wanted[numbers] = True
        return {i: line_to_name(key) for i, key in enumerate(self) if wanted[i]}


def group_names(names: NumberedNames, groups: Iterable[list[Name]], folder: Path) -> NDArray[np.int64]:
    """The lowest number of the names that are one entity, because a chain of groups joins them: (N,). Names of the
    groups that are not among `names` join, too. folder: new, for temporary files."""
    lines, n_groups = SortedLines(folder), 0
    for group in groups:
        if len(group) > 1:
            for name in group:
                lines.add(f"{name_to_line(name)}\t{n_groups}\n")
            n_groups += 1
    if not n_groups:
        return np.arange(len(names))
    ones, others = array("q"), array("q")
    last, first = "", -1
    lines_again, keys = tee((key, int(number)) for key, _, number in (line.rpartition("\t") for line in lines))
    for (key, group_number), number in zip(lines_again, names.find(key for key, _ in keys), strict=True):
        node = len(names) + group_number
        if number is None and key != last:
            first = node
        ones.append(first if number is None else number)  # the groups of a name that nobody links are one
        others.append(node)
        last = key
    ends = (np.frombuffer(x, np.int64) for x in (ones, others))
    return lowest_of_each(len(names) + n_groups, *ends)[: len(names)]


def lowest_of_each(size: int, ones_E: NDArray[np.int64], others_E: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lowest node that a chain of links joins to each node: (size,)."""
    lowest = np.arange(size)
    while True:
        one_E, other_E = lowest[ones_E], lowest[others_E]
        apart_E = one_E != other_E
        if not apart_E.any():
            return lowest
        ones_E, others_E, one_E, other_E = ones_E[apart_E], others_E[apart_E], one_E[apart_E], other_E[apart_E]
        np.minimum.at(lowest, np.maximum(one_E, other_E), np.minimum(one_E, other_E))
        while ((above := lowest[lowest]) != lowest).any():
            lowest = above
