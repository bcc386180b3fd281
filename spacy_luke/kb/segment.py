"""One segment of a knowledge base, read from memory-mapped files (see `kb.files`), which the caller has checked."""

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..aliases.store import AliasStore
from ..aliases.trie import map_trie
from ..stores.arrays import AGAIN, map_array, map_bytes
from ..stores.names import hash_names
from ..text.forms import letters_of, loose_form_of
from .files import NONE
from .record import ABOUT_NOTHING, About


class Segment:
    """Entities and names that were written at once. base: the row of its first new entity; number: an entity's number
    in the segment's own store, which is its row in the first segment."""

    def __init__(self, folder: Path, *, base: int, entities: int) -> None:
        self.store = AliasStore.open(folder / "names", vouched=True)
        self.base, self.entities = base, entities
        n = self.store.header.entities
        self._counts = map_array(folder / "counts.npy", "<u4", (n,)).data
        self._persons = map_array(folder / "persons.npy", "|u1", (n,)).data
        self._starts = map_array(folder / "description_starts.npy", "<i8", (n,)).data
        text = folder / "descriptions.txt"
        self._text = map_bytes(text) if text.stat().st_size else b""
        about = folder / "about.txt"
        self._abouts = map_bytes(about) if about.is_file() and about.stat().st_size else b""
        self._about_starts = map_array(folder / "about_starts.npy", "<i8", (n,)).data if self._abouts else None
        totals = folder / "totals.npy"
        self._totals = map_array(totals, "<f4", (len(self.store),)).data if totals.is_file() else None
        self._redirects_data = map_bytes(folder / "redirects.trie")  # the trie does not keep what it is mapped from
        try:
            self._redirects = map_trie(memoryview(self._redirects_data))
        except RuntimeError as error:
            raise ValueError(f"{folder / 'redirects.trie'} is damaged ({error}). {AGAIN}") from error
        self._targets = map_array(folder / "redirect_numbers.npy", "<u4", (len(self._redirects),)).data
        self._hashes = map_array(folder / "loose_hashes.npy", "<u8", None).data
        self._loose = map_array(folder / "loose_names.npy", "<u4", (len(self._hashes),)).data
        self._rows: memoryview | None = None
        self._numbers: memoryview | None = None  # of the new rows, in segments that were added
        if base:
            rows = map_array(folder / "rows.npy", "<u4", (n,))
            self._rows = rows.data
            new = np.flatnonzero(rows >= base)
            self._numbers = new[np.argsort(rows[new])].data

    def row_of(self, entity: str) -> int:
        """-1 where this segment does not know the id."""
        number = self.number_of(entity)
        return number if number < 0 or self._rows is None else self._rows[number]

    def number_of(self, entity: str) -> int:
        number = self.store.entity_number_of(entity)
        if number is None:
            place = self._redirects.get(entity) if len(self._redirects) else None
            number = self._targets[place] if place is not None else NONE
        return -1 if number == NONE else number

    def number_of_row(self, row: int) -> int:
        return row if self._numbers is None else self._numbers[row - self.base]

    def candidates(self, number: int) -> list[tuple[int, float]]:
        """Rows and priors of the candidates of a name, the best first."""
        found = self.store.numbers_of(number)
        rows = self._rows
        return found if rows is None else [(rows[entity], prior) for entity, prior in found]

    def total(self, number: int) -> float:
        """What the priors of a name are shares of; 0.0 where they are none, or where it is not known."""
        return 0.0 if self._totals is None else self._totals[number]

    def count(self, number: int) -> int:
        return self._counts[number]

    def is_person(self, number: int) -> bool:
        return bool(self._persons[number])

    def description(self, number: int) -> str:
        start = self._starts[number]
        return self._text[start : self._text.find(b"\n", start)].decode("utf8") if start >= 0 else ""

    def about(self, number: int) -> About:
        start = -1 if self._about_starts is None else self._about_starts[number]
        if start < 0:
            return ABOUT_NOTHING
        return About.from_line(self._abouts[start : self._abouts.find(b"\n", start)].decode("utf8"))

    def redirects(self) -> Iterator[tuple[str, int]]:
        """Further ids, and the rows that they lead to."""
        return ((title, row) for title in self._redirects.iterkeys() if (row := self.row_of(title)) >= 0)

    def loose_names(self, key: str) -> Iterator[str]:
        """The names that are the same as a key but for case and punctuation; the most frequent first."""
        wanted = loose_form_of(key)
        for letters in dict.fromkeys((wanted, letters_of(key.casefold()))):  # the latter of older stores
            digest = int(hash_names([letters.encode("utf8")])[0])
            place = bisect_left(self._hashes, digest)
            while place < len(self._hashes) and self._hashes[place] == digest:
                name = self.store.name_of(self._loose[place])
                if loose_form_of(name) == wanted:
                    yield name
                place += 1
