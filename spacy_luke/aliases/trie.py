"""Tries of marisa-trie, a library that has no types of its own: texts that are numbered, in little memory.

A finished trie takes two to ten bytes a text, but 60 to 150 while it is built. So more texts than memory shall hold are
in several tries, one after another in a file: the first 64 bytes say what it is, each trie begins at a multiple of 64,
and at the end stand a line of JSON, [[first byte, bytes, first text], ...], and its length in 8 bytes.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from marisa_trie import Trie as MarisaTrie

from ..stores.arrays import map_bytes

_MANY = b"spacy_luke tries 1\n".ljust(64)
_ROOM = len(_MANY)  # also what places are multiples of


class Trie(Protocol):
    """Texts, each with a number from 0 on, in an order that depends on the texts alone."""

    def __len__(self) -> int: ...

    def __contains__(self, text: str) -> bool: ...

    def __getitem__(self, text: str) -> int:
        """The number of a text. KeyError where there is no such text."""

    def get(self, text: str) -> int | None:
        """The number of a text, None where there is no such text."""

    def restore_key(self, number: int) -> str:
        """The text of a number."""

    def iterkeys(self, prefix: str = "") -> Iterator[str]:
        """All texts, or those that begin so."""

    def iter_prefixes_with_ids(self, text: str) -> Iterator[tuple[str, int]]:
        """The texts that a text begins with, and their numbers, the shortest first."""

    def tobytes(self) -> bytes:
        """What `map_trie` reads."""


class _Part(NamedTuple):
    """A trie in a file, and its first text."""

    start: int
    size: int
    first: str


class Tries:
    """Several tries as one: `parts`, the texts of each after those of the one before; firsts: the first text of each;
    data: what they are mapped from, which they do not keep."""

    def __init__(self, parts: Sequence[Trie], firsts: Sequence[str], data: memoryview) -> None:
        self._parts, self._firsts, self._data = list(parts), list(firsts), data
        *self._bases, self._size = accumulate(map(len, parts), initial=0)

    def __len__(self) -> int:
        return self._size

    def __contains__(self, text: str) -> bool:
        return text in self._parts[self._part_of(text)]

    def __getitem__(self, text: str) -> int:
        part = self._part_of(text)
        return self._bases[part] + self._parts[part][text]

    def get(self, text: str) -> int | None:
        part = self._part_of(text)
        number = self._parts[part].get(text)
        return None if number is None else self._bases[part] + number

    def restore_key(self, number: int) -> str:
        part = max(bisect_right(self._bases, number) - 1, 0)
        return self._parts[part].restore_key(number - self._bases[part])

    def iterkeys(self, prefix: str = "") -> Iterator[str]:
        for part in range(self._part_of(prefix), len(self._parts)):
            if self._firsts[part] > prefix and not self._firsts[part].startswith(prefix):
                break
            yield from self._parts[part].iterkeys(prefix)

    def iter_prefixes_with_ids(self, text: str) -> Iterator[tuple[str, int]]:
        for part in range(self._part_of(text[:1]), self._part_of(text) + 1):
            base = self._bases[part]
            for key, number in self._parts[part].iter_prefixes_with_ids(text):
                yield key, base + number

    def tobytes(self) -> bytes:
        return self._data.tobytes()

    def _part_of(self, text: str) -> int:
        return max(bisect_right(self._firsts, text) - 1, 0)


def new_trie(texts: Iterable[str] = ()) -> Trie:
    trie: Trie = MarisaTrie(texts)
    return trie


def build_trie(
    texts: Iterable[str], file: Path, *, most: int, done: Callable[[Trie], None] = lambda part: None
) -> Trie:
    """A trie of texts in order, each once, that is also written to a file: several tries where there are more texts
    than `most`. done: is given each trie when it is built, before the next text is taken."""
    waiting = iter(texts)
    first = next(waiting, None)
    trie = new_trie(() if first is None else chain([first], islice(waiting, most - 1)))
    done(trie)
    following = next(waiting, None)
    if first is None or following is None:
        file.write_bytes(trie.tobytes())
        return trie
    with file.open("wb") as output:
        output.write(_MANY)
        parts = [_write_part(output, trie, first)]
        while following is not None:
            del trie  # before the next one is built
            first, trie = following, new_trie(chain([following], islice(waiting, most - 1)))
            done(trie)
            parts.append(_write_part(output, trie, first))
            following = next(waiting, None)
        listed = json.dumps(parts).encode()
        output.write(listed + len(listed).to_bytes(8, "little"))
    return map_trie(memoryview(map_bytes(file)))


def map_trie(data: memoryview) -> Trie:
    """The trie, or the tries, of these bytes, which are not copied, and which the caller keeps. RuntimeError where they
    are none."""
    if data[:_ROOM] != _MANY:
        return _map(data)
    try:
        size = int.from_bytes(data[-8:], "little")
        parts = [_Part(*part) for part in json.loads(bytes(data[-8 - size : -8]))]
        return Tries([_map(data[x.start : x.start + x.size]) for x in parts], [x.first for x in parts], data)
    except (ValueError, TypeError) as error:
        raise RuntimeError(f"the list of its tries cannot be read: {error}") from error


def _map(data: memoryview) -> Trie:
    empty: Any = new_trie()
    trie: Trie = empty.map(data)
    return trie


def _write_part(output: BinaryIO, trie: Trie, first: str) -> _Part:
    data, start = trie.tobytes(), output.tell()
    output.write(data + bytes(-len(data) % _ROOM))
    return _Part(start, len(data), first)
