"""A knowledge base in a folder: names and the entities that they may mean, memory-mapped, opened at once.

Entities have ids (a Wikipedia title, a Wikidata id, or what a file says) and rows, from 0 on, which stay as they are
when entities are added. See `kb.files` for the files and `kb.build` for making them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..aliases.store import AliasStore, Candidate
from ..annotations import EntityRecord
from ..stores.atomic import hold
from ..stores.folder import MANIFEST, StoreFolder
from ..text.forms import fold_case, key_of, letters_of, signs_of, title_case_of, without_possessive
from ..vectors.store import EntityVectors
from .files import KB, VECTORS
from .record import make_record
from .search import Hit, search_kb
from .segment import Segment


@contextmanager
def hold_kb(path: Path) -> Iterator[None]:
    """Keep others from changing the knowledge base in a folder. ValueError where another process does."""
    with hold(path / MANIFEST, busy=tell_busy(path)):
        yield


def tell_busy(path: Path) -> str:
    """What is said of a knowledge base that another process writes."""
    return f"{path} is being made or changed by another process (build-kb, embed-entities). Run this again after it."


def _check_top(top: int | None) -> None:
    if top is not None and top < 1:
        raise ValueError(f"top must be at least 1, or None for all candidates, but it is {top}.")


class EntityKB(StoreFolder):
    """A knowledge base. Nothing in it changes; `kb.build.build_kb` makes new ones, `add_to_kb` larger ones. Processes
    share what the system keeps of the files.

    manifest: {"segments": [{"entities", "names", "candidates"}, ...], "info"}; vectors: of the entities, where there
    are some.
    """

    kind = KB

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        super().__init__(path, manifest)
        self.segments: list[Segment] = []
        for number, entry in enumerate(manifest["segments"]):
            segment = Segment(path / str(number), base=len(self), entities=entry["entities"])
            self.segments.append(segment)
        vectors = path / VECTORS
        self.vectors: EntityVectors | None = EntityVectors.open(vectors) if vectors.is_dir() else None

    def __len__(self) -> int:
        """Number of entities."""
        return sum(segment.entities for segment in self.segments)

    def __contains__(self, entity: object) -> bool:
        return isinstance(entity, str) and self.row(entity) >= 0

    def __repr__(self) -> str:
        return f"EntityKB({str(self.path)!r}, {len(self):,} entities, {self.n_names:,} names)"

    @cached_property
    def n_names(self) -> int:
        """Number of names. Those that were added are looked up once, a second for some hundred thousand."""
        stores = [segment.store for segment in self.segments]
        return len(stores[0]) + sum(
            all(other.number_of_key(name) is None for other in stores[:i])
            for i, store in enumerate(stores[1:], start=1)
            for name in store
        )

    def candidates(self, name: str, *, top: int | None = None) -> list[Candidate]:
        """The entities that a name may mean, with p(entity | name), the best first; [] where nothing is found.

        A name that is not known is looked for as `find_name` says. top: so many at most, None: all.
        """
        _check_top(top)
        key = self.find_name(name)
        if key is None:
            return []
        if len(self.segments) == 1:  # the same, faster
            store = self.segments[0].store
            number = store.number_of_key(key)
            assert number is not None
            return store.candidates_of(number, top=top)
        return [Candidate(self.name_of(row), prior) for row, prior in self._exact(key)[:top]]

    def candidate_rows(self, name: str, *, top: int | None = None) -> list[tuple[int, float]]:
        """As `candidates`, with the rows of the entities in place of their ids."""
        _check_top(top)
        key = self.find_name(name)
        return [] if key is None else self._exact(key)[:top]

    def find_name(self, name: str) -> str | None:
        """The name in the knowledge base that stands for `name`, None where there is none.

        The first that is found of: the name itself (blanks beside punctuation and Unicode forms make no difference); in
        capitals, with one at the beginning of each word alone ("JAPAN": "Japan", as deep-ed does); another case
        ("japan"); the same for the name without a possessive's ending ("Japan's"); without punctuation and blanks
        ("U.S.": "US"), of the same case if possible, but with the same numbers, and the same + and # behind words
        ("C++" is not "C"). Of several names the most frequent.
        """
        try:
            return self._find(key_of(name, case="exact"))
        except UnicodeEncodeError:
            return None  # half of a character, which no name has

    def search(self, text: str, *, top: int = 10, vector: np.ndarray | None = None) -> list[Hit]:
        """Entities that a text may mean, each once: by its name (see `find_name`), by names of one slip (a letter too
        many, missing, wrong, or two exchanged; of a text of 4 to 64 letters), by names that begin so, and by vectors
        near one, such as that of the text by the encoder that made the knowledge base's (`TextEncoder.encode`). Within
        each way the best first."""
        return search_kb(self, text, top=top, vector=vector)

    def row(self, entity: str) -> int:
        """The row of an entity, by its id or one that redirects to it; -1 where it is not known."""
        try:
            return next((row for segment in self.segments if (row := segment.row_of(entity)) >= 0), -1)
        except UnicodeEncodeError:
            return -1  # as in `find_name`

    def name_of(self, row: int) -> str:
        """The id of the entity in a row."""
        segment = self._segment_of(row)
        return segment.store.entity_of(segment.number_of_row(row))

    def description(self, row: int) -> str:
        """What the entity is, in a sentence; "" where no source told."""
        segment = self._segment_of(row)
        return segment.description(segment.number_of_row(row))

    def record(self, row: int) -> EntityRecord:
        """What is known of the entity in a row."""
        segment = self._segment_of(row)
        number = segment.number_of_row(row)
        return make_record(segment.store.entity_of(number), segment.about(number), segment.description(number))

    def count(self, row: int) -> int:
        """Links to the entity (or what its source gave as its count); 0 where no source told."""
        segment = self._segment_of(row)
        return segment.count(segment.number_of_row(row))

    def is_person(self, row: int) -> bool:
        """Whether the entity is known to be a person; False for row -1."""
        if row == -1:
            return False
        segment = self._segment_of(row)
        return segment.is_person(segment.number_of_row(row))

    def entities(self) -> Iterator[str]:
        """All ids, by row."""
        return map(self.name_of, range(len(self)))

    def names(self) -> Iterator[str]:
        """All names, in the form of keys (see `text.forms`); one to which candidates were added later comes
        again."""
        for segment in self.segments:
            yield from segment.store

    def alias_store(self) -> AliasStore:
        """Its names with their candidates as one store, which `entity_annotator` finds them by. ValueError where
        entities were added since it was built, so that names are in several stores."""
        if len(self.segments) > 1:
            raise ValueError(
                f"{self.path} has {len(self.segments)} parts, as entities were added to it. Make them one, with "
                f"`python -m spacy luke compact-kb {self.path}`."
            )
        return self.segments[0].store

    def names_beginning(self, text: str) -> Iterator[str]:
        """Names that begin with a text, as it is, with a capital at its beginning or at that of each word, or all in
        capitals."""
        key = key_of(text, case="exact")
        words = " ".join(word[:1].upper() + word[1:] for word in key.split(" "))
        forms = [key, title_case_of(key), key[:1].upper() + key[1:], words, key.upper()]
        try:
            for form in dict.fromkeys(forms if key else []):
                for segment in self.segments:
                    yield from segment.store.names_beginning(form)
        except UnicodeEncodeError:
            return  # as in `find_name`

    def verify(self, *, progress: bool = False) -> None:
        """Read all files, those of the vectors too, and compare their digests. ValueError names the file that is not
        the one that was written."""
        super().verify(progress=progress)
        if self.vectors is not None:
            self.vectors.verify(progress=progress)

    def paths(self) -> dict[str, Path]:
        """The files by name, those of the vectors among them."""
        vectors = {} if self.vectors is None else self.vectors.paths()
        return {**super().paths(), **{f"{VECTORS}/{name}": path for name, path in vectors.items()}}

    def first_segments(self, number: int) -> "EntityKB":
        """The first segments alone, one or more, without vectors."""
        files = {name: file for name, file in self.manifest["files"].items() if int(name.partition("/")[0]) < number}
        return EntityKB(self.path, {**self.manifest, "segments": self.manifest["segments"][:number], "files": files})

    def _segment_of(self, row: int) -> Segment:
        for segment in self.segments:
            if 0 <= row - segment.base < segment.entities:
                return segment
        raise ValueError(
            f"Expected a row from 0 to {len(self) - 1:,}, but got {row}. An entity that is not known (-1) has no row."
        )

    def _find(self, key: str) -> str | None:
        if self._knows(key):
            return key
        forms = list(dict.fromkeys([key, without_possessive(key)]))
        for form in forms:
            for other in (form, title_case_of(form)):
                if self._knows(other):
                    return other
            if (found := self._loose(form, 1)) is not None:
                return found
        return next((found for form in forms if (found := self._loose(form, 3)) is not None), None)

    def _knows(self, key: str) -> bool:
        for segment in self.segments:
            if segment.store.number_of_key(key) is not None:
                return True
        return False

    def _exact(self, key: str) -> list[tuple[int, float]]:
        """Candidates of a name that is known. Of several segments those that are shares of a total are shares of the
        sum of the totals; others are added (see `kb.staging`)."""
        numbers = [(segment, segment.store.number_of_key(key)) for segment in self.segments]
        known = [(segment, number) for segment, number in numbers if number is not None]
        found = [(segment.candidates(number), segment.total(number)) for segment, number in known]
        if len(found) == 1:
            return found[0][0]
        whole = sum(total for _, total in found)
        priors: dict[int, float] = {}
        for candidates, total in found:
            share = total / whole if total else 1.0
            for row, prior in candidates:
                priors[row] = min(1.0, priors.get(row, 0.0) + prior * share)
        return sorted(priors.items(), key=lambda pair: (-pair[1], self.name_of(pair[0])))

    def _loose(self, form: str, levels: int) -> str | None:
        """levels: 1 takes names that differ in case alone, 3 all that differ in case and punctuation alone."""
        letters, folded, signs = letters_of(form), fold_case(form), signs_of(form)
        if not letters:
            return None
        found: dict[str, int] = {}  # levels of names, those of a segment by how frequent they are
        for segment in self.segments:
            for name in segment.loose_names(form):
                level = 0 if fold_case(name) == folded else 1 if letters_of(name) == letters else 2
                if level < levels and signs_of(name) == signs:
                    found.setdefault(name, level)
        best = min(found.values(), default=None)
        return max((name for name, level in found.items() if level == best), key=self._total, default=None)

    def _total(self, key: str) -> float:
        """What the priors of a name are shares of, in all segments."""
        numbers = ((segment, segment.store.number_of_key(key)) for segment in self.segments)
        return sum(segment.total(number) for segment, number in numbers if number is not None)
