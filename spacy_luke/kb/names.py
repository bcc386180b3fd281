"""The names of a segment of a knowledge base: its store, its totals and the index of loose names.

Names come in order. Those of a part of their trie are put in the order of its numbers and go to files; these become the
sections of the store in the end. The index is sorted by the first bits of its digests, so that a share of it at a time
is in memory.
"""

from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib.format import open_memmap

from ..aliases.store import check_candidates, order_of_numbers, write_store
from ..aliases.trie import Trie, build_trie
from ..stores.arrays import map_bytes
from ..stores.names import hash_names
from ..text.forms import loose_form_of

_BLOCK = 1 << 14  # names that are hashed at once
_SHARES = 6  # first bits of digests: 64 files of names, each of which is sorted at once
_LOOSE = np.dtype([("hash", "<u8"), ("weight", "<f4"), ("place", "<i8"), ("number", "<u4")])
_COLUMNS = {"link": "<f4", "first": "<u4", "entities": "<u4", "priors": "<f4", "totals": "<f4"}


class Name(NamedTuple):
    """A name in the form of keys, its weight, and the numbers of its candidates, the best first."""

    key: str
    weight: float
    total: float  # what the priors are shares of, 0.0 where they are none
    numbers: list[int]
    priors: list[float]


def write_names(
    names: Iterable[Name], folder: Path, work: Path, titles: Path, *, entities: int, most: int, info: dict[str, Any]
) -> dict[str, int]:
    """The files of names in order, each once, in `folder`; says how many names and candidates there are. work: a new
    folder for temporary files; titles: the trie of the entities, as a file. most: names of a part of the trie."""
    work.mkdir()
    with ExitStack() as opened:
        writer = _Writer(work, opened)
        build_trie(writer.keys(names), work / "trie", most=most, done=writer.end_part)
        writer.files["first"].write(np.uint32(writer.candidates).tobytes())
    columns = {name: _map(work / name, descr) for name, descr in _COLUMNS.items()}
    np.save(folder / "totals.npy", columns["totals"])
    writer.write_loose(folder)
    with (folder / "names").open("wb") as file:
        write_store(
            file, memoryview(map_bytes(work / "trie")), memoryview(map_bytes(titles)), entities=entities,
            link_N=columns["link"], first_N=columns["first"], entity_C=columns["entities"], prior_C=columns["priors"],
            case="exact", longest=writer.longest, info=info,
        )  # fmt: skip
    return {"names": writer.names, "candidates": writer.candidates, "shares": writer.shares}


def _map(file: Path, descr: str) -> np.ndarray:
    return np.memmap(file, descr, mode="r") if file.stat().st_size else np.zeros(0, descr)


class _Writer:
    """names, candidates: of the parts that are written; shares: names whose priors are shares; longest: characters of
    the longest name."""

    def __init__(self, work: Path, opened: ExitStack) -> None:
        self.names = self.candidates = self.shares = self.longest = 0
        self.files: dict[str, BinaryIO] = {name: opened.enter_context((work / name).open("wb")) for name in _COLUMNS}
        self._keys = opened.enter_context((work / "keys").open("w+", encoding="utf8", newline="\n"))
        self._loose = [work / f"loose{share}" for share in range(1 << _SHARES)]
        self._loose_files = [opened.enter_context(path.open("wb")) for path in self._loose]
        self._begin_part()

    def _begin_part(self) -> None:
        self._count_N, self._weight_N, self._total_N = array("I"), array("f"), array("f")
        self._entity_C, self._prior_C = array("I"), array("f")
        self._keys.seek(0)
        self._keys.truncate()

    def keys(self, names: Iterable[Name]) -> Iterator[str]:
        """The names; what is known of them is kept until their part of the trie is built."""
        for name in names:
            self._count_N.append(len(name.numbers))
            self._weight_N.append(name.weight)
            self._total_N.append(name.total)
            self._entity_C.extend(name.numbers)
            self._prior_C.extend(name.priors)
            self._keys.write(name.key + "\n")
            yield name.key

    def end_part(self, trie: Trie) -> None:
        """Write what is known of the names of a part, whose trie is given."""
        check_candidates(self.candidates + len(self._entity_C))
        count_N, total_N = np.array(self._count_N, np.int64), np.array(self._total_N, np.float32)
        number_N = self._number(trie)
        order_N, source_C = order_of_numbers(number_N, count_N)
        sizes_N = count_N[order_N]
        columns = {
            "link": np.ones(len(count_N)),
            "first": self.candidates + np.cumsum(sizes_N) - sizes_N,
            "entities": np.array(self._entity_C, np.uint32)[source_C],
            "priors": np.array(self._prior_C, np.float32)[source_C],
            "totals": total_N[order_N],
        }
        for name, descr in _COLUMNS.items():
            self.files[name].write(columns[name].astype(descr).tobytes())
        self.names += len(count_N)
        self.candidates += len(source_C)
        self.shares += int((total_N > 0).sum())
        self._begin_part()

    def _number(self, trie: Trie) -> np.ndarray:
        """int64 (N,): the numbers of the names of a part, in their order; what the index needs of them is written."""
        number_N, places, digests = np.zeros(len(self._count_N), np.int64), array("q"), [np.zeros(0, np.uint64)]
        waiting: list[bytes] = []
        self._keys.seek(0)
        for i, line in enumerate(self._keys):
            key = line[:-1]
            self.longest = max(self.longest, len(key))
            number_N[i] = trie[key]
            if letters := loose_form_of(key):
                places.append(i)
                waiting.append(letters.encode("utf8"))
            if len(waiting) == _BLOCK:
                digests.append(hash_names(waiting))
                waiting = []
        digests.append(hash_names(waiting))
        place_L = np.array(places, np.int64)
        loose_L = np.zeros(len(place_L), _LOOSE)
        loose_L["hash"], loose_L["weight"] = np.concatenate(digests), np.array(self._weight_N, np.float32)[place_L]
        loose_L["place"], loose_L["number"] = self.names + place_L, self.names + number_N[place_L]
        share_L = loose_L["hash"] >> np.uint64(64 - _SHARES)
        order_L = np.argsort(share_L, kind="stable")
        ends = np.searchsorted(share_L[order_L], np.arange(1 << _SHARES), side="right")
        for file, some in zip(self._loose_files, np.split(loose_L[order_L], ends[:-1]), strict=True):
            file.write(some.tobytes())
        return number_N

    def write_loose(self, folder: Path) -> None:
        """The index: by digest, of one digest the names with the greatest weight first, then in their order."""
        files = {"hash": folder / "loose_hashes.npy", "number": folder / "loose_names.npy"}
        size = sum(path.stat().st_size for path in self._loose) // _LOOSE.itemsize
        sorted_L = {name: open_memmap(files[name], mode="w+", dtype=_LOOSE[name], shape=(size,)) for name in files}
        end = 0
        for path in self._loose:
            loose_L = np.fromfile(path, _LOOSE)
            order_L = np.lexsort((loose_L["place"], -loose_L["weight"], loose_L["hash"]))
            begin, end = end, end + len(loose_L)
            for name, array_L in sorted_L.items():
                array_L[begin:end] = loose_L[name][order_L]
            path.unlink()
