"""Guessed entities as the files of ERNIE's release have them."""

from typing import Any

from ..json_files import take


def read_guesses(where: str, item: Any, name: str) -> list[tuple[int, int, str, float]]:
    """(start, end, id, score) of each [id, start, end, score] in a file of ERNIE's release, characters."""
    guesses = []
    for i, row in enumerate(take(where, item, name, list)):
        kinds = (str, int, int, int | float)
        good = isinstance(row, list) and len(row) == len(kinds)
        if not good or any(isinstance(x, bool) or not isinstance(x, kind) for x, kind in zip(row, kinds, strict=True)):
            raise ValueError(f"{where}: expected {name!r} as [id, start, end, score], but number {i} is {row!r:.80}.")
        guesses.append((row[1], row[2], row[0], float(row[3])))
    return guesses
