"""Stores of names of version 1, which have no digests, become those of today.

A wrong byte in a trie can end the process that reads it, so another process reads all of the old file first.
"""

import mmap
import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..stores.atomic import write_atomically
from .file import UNCHECKED, damaged, read_header, write_sections
from .store import AliasStore

_SLOWEST = 1e-4  # seconds for a byte; a damaged trie may lead in a circle


def find_unchecked(path: Path) -> Iterator[Path]:
    """The stores of version 1 among a file, or the files in a folder such as a pipeline's. Those of a knowledge base
    are none of them: its manifest has their digests."""
    path = path.resolve()
    files = [path] if path.is_file() else sorted(x for x in path.rglob("*") if x.is_file() and not x.is_symlink())
    for file in files:
        with file.open("rb") as opened:
            begin = opened.read(len(UNCHECKED))
        if begin == UNCHECKED and not (file.parents[1] / "manifest.json").is_file():
            yield file


def add_digests(path: Path) -> None:
    """Read all of a store of version 1, and write it anew with digests. ValueError where it is damaged."""
    reader = multiprocessing.get_context("spawn").Process(target=_read_all, args=(path,))
    reader.start()
    reader.join(60 + _SLOWEST * path.stat().st_size)
    if reader.exitcode is None:
        reader.kill()
        reader.join()
    if reader.exitcode != 0:
        raise damaged(str(path), "its names and entities cannot be read, or are no others than the numbers say")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        with memoryview(mapped) as data:
            header, places = read_header(data, str(path), vouched=True)
            sections = {name: data[place.start : place.end] for name, place in places.items()}
            try:
                with write_atomically(path) as temporary, temporary.open("wb") as new:
                    write_sections(new, header, sections)
            finally:
                for section in sections.values():
                    section.release()


def _read_all(path: Path) -> None:
    """In another process: ends with an error, or at once, where something is wrong."""
    store = AliasStore.open(path, vouched=True)
    for trie in (store._names, store._titles):
        assert all(trie.get(trie.restore_key(number)) == number for number in range(len(trie)))
    first_N, entity_C = np.asarray(store._first, np.int64), np.asarray(store._entities)
    assert first_N[0] == 0
    assert (np.diff(first_N) > 0).all()
    assert not len(entity_C) or entity_C.max() < len(store._titles)
    for share in (np.asarray(store._link), np.asarray(store._priors)):
        assert ((share >= 0) & (share <= 1)).all()
