"""Sorting more lines than memory shall hold: sorted runs in temporary files, which are merged in the end."""

import heapq
from collections.abc import Iterable, Iterator
from pathlib import Path

MOST = 1 << 19  # lines in memory: some 100 MB
ROOM = 1 << 27  # characters in memory, where lines are long
MOST_RUNS = 256  # files that are open at once; more are merged first
_READ = 1 << 16  # bytes of each run in memory while they are merged


class _Runs:
    """Files of sorted lines in a new folder, MOST_RUNS at most: where there are so many, they become one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.paths: list[Path] = []
        self._written = 0
        folder.mkdir()

    def add(self, lines: Iterable[str]) -> None:
        """A further run, of lines in order."""
        self._write(lines)
        if len(self.paths) >= MOST_RUNS:
            runs, self.paths = self.paths, []
            self._write(heapq.merge(*map(_read_run, runs)))
            for run in runs:
                run.unlink()

    def _write(self, lines: Iterable[str]) -> None:
        path = self._folder / str(self._written)
        with path.open("w", encoding="utf8", newline="\n") as file:
            file.writelines(lines)
        self.paths.append(path)
        self._written += 1


class SortedLines:
    """Lines in order, each as often as it was added. A line ends in a line feed, and has no other."""

    def __init__(self, folder: Path, *, most: int = MOST, room: int = ROOM) -> None:
        self._most, self._room = most, room
        self._lines: list[str] = []
        self._size = 0
        self._runs = _Runs(folder)

    def add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line)
        if len(self._lines) >= self._most or self._size >= self._room:
            self._lines.sort()
            self._runs.add(self._lines)
            self._lines, self._size = [], 0

    def __iter__(self) -> Iterator[str]:
        self._lines.sort()
        runs = self._runs.paths
        return heapq.merge(self._lines, *map(_read_run, runs)) if runs else iter(self._lines)


class SortedSums:
    """Sums of weights by key, in the order of the keys; a key is a text without line feeds."""

    def __init__(self, folder: Path, *, most: int = MOST) -> None:
        self._most = most
        self._sums: dict[str, float] = {}
        self._runs = _Runs(folder)

    def add(self, key: str, weight: float) -> None:
        sums = self._sums
        sums[key] = sums.get(key, 0) + weight
        if len(sums) >= self._most:
            self._runs.add(sorted(_lines_of(sums)))
            self._sums = {}

    def __iter__(self) -> Iterator[tuple[str, float]]:
        runs = self._runs.paths
        if not runs:
            yield from sorted(self._sums.items())
            return
        last, total = "", 0.0
        for line in heapq.merge(sorted(_lines_of(self._sums)), *map(_read_run, runs)):
            key, _, weight = line.rpartition("\t")
            if key == last:
                total += float(weight)
                continue
            if total:
                yield last, total
            last, total = key, float(weight)
        if total:
            yield last, total


def _lines_of(sums: dict[str, float]) -> Iterator[str]:
    return (f"{key}\t{weight!r}\n" for key, weight in sums.items())


def _read_run(path: Path) -> Iterator[str]:
    with path.open(encoding="utf8", newline="\n", buffering=_READ) as file:
        yield from file
