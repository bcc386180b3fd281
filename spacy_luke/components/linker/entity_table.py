"""The entities that candidates are, each once, and the numbers that a model reads of them.

K candidates of a mention, F features of a candidate, U entities whose vectors are read, V numbers of a vector.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...batch.linking import LinkVectors
from ...kb.knowledge_base import EntityKB
from ...vectors.store import EntityVectors
from .candidates import Found, Named

_UNKNOWN = "[UNK]"  # the entity that stands for those without a vector, where the store has it
_LEAST_PRIOR = 1e-4


@dataclass(frozen=True)
class Candidates:
    """Candidates of a mention, the best by its prior first, as a model reads them.

    numbers_K: of their entities in an `EntityTable`, each once; places_K: which of `named` these are (several without a
    vector share a number, and the first of them is scored); features_KF: log prior and log in-links, and how each
    agrees with its mention where that is asked for.
    """

    named: Named
    numbers_K: np.ndarray
    places_K: np.ndarray
    features_KF: np.ndarray


class EntityTable:
    """The entities that some Docs' candidates are, each once: their vectors are read together (`vectors`).

    store: its vectors have `size` numbers, or one more, the bias. kb: counts of in-links, where there is one. An entity
    without a vector is [UNK] where the store has that, else a vector of zeros.
    """

    def __init__(self, store: EntityVectors | None, *, size: int, kb: EntityKB | None = None):
        self._store, self.size, self.kb = store, size, kb
        self.rows: list[int] = []  # of the store, -1 for zeros
        self.unknown = -2 if store is None else store.row(_UNKNOWN)
        self._numbers: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._number_of_row: dict[int, int] = {}

    @property
    def store(self) -> EntityVectors:
        assert self._store is not None, "entities without vectors"
        return self._store

    def __len__(self) -> int:
        return len(self.rows)

    def number(self, entity: str) -> int:
        if entity not in self._numbers:
            self.add([entity])
        return self._numbers[entity]

    def add(self, entities: Sequence[str]) -> None:
        """Look up many entities at once."""
        new = [x for x in dict.fromkeys(entities) if x not in self._numbers]
        for entity, row in zip(new, self.rows_of(new) if new else [], strict=True):
            if row < 0 or row not in self._number_of_row:
                self._number_of_row[row] = len(self.rows)
                self.rows.append(row)
            self._numbers[entity] = self._number_of_row[row]

    def rows_of(self, entities: Sequence[str]) -> list[int]:
        """Where the vectors of entities are, -1 for one of zeros."""
        rows: list[int] = self.store.rows(entities).tolist()
        for i, (entity, row) in enumerate(zip(entities, rows, strict=True)):
            if row < 0 and self.kb is not None:  # a redirect
                kb_row = self.kb.row(entity)
                row = self.store.row(self.kb.name_of(kb_row)) if kb_row >= 0 else -1
            rows[i] = self.unknown if row < 0 else row
        return rows

    def candidates(self, found: Found) -> Candidates:
        named = found.named
        self.add([entity for entity, _ in named])
        numbers = [self._numbers[entity] for entity, _ in named]
        first: dict[int, int] = {}
        for place, number in enumerate(numbers):
            first.setdefault(number if self.rows[number] >= 0 else -1 - place, place)
        places = list(first.values())
        features = [[math.log(max(named[i][1], _LEAST_PRIOR)), math.log1p(self._count(named[i][0]))] for i in places]
        both = np.array(features, dtype=np.float32).reshape(-1, 2)
        return Candidates(
            named,
            np.array([numbers[i] for i in places], dtype=np.int64),
            np.array(places, dtype=np.int64),
            both if found.match is None else np.concatenate([both, found.match[places]], axis=1),
        )

    def vectors(self) -> LinkVectors:
        """Of all entities that were asked for, by their numbers."""
        rows_U = np.array(self.rows, dtype=np.int64)
        known_U = rows_U >= 0
        both = np.zeros((len(rows_U), self.store.size), dtype=np.float32)
        both[known_U] = self.store.gather(rows_U[known_U])
        bias_U = both[:, self.size] if self.store.size > self.size else np.zeros(len(rows_U), np.float32)
        return LinkVectors(np.ascontiguousarray(both[:, : self.size]), np.ascontiguousarray(bias_U))

    def _count(self, entity: str) -> int:
        if self.kb is None:
            return 0
        if entity not in self._counts:
            row = self.kb.row(entity)
            self._counts[entity] = self.kb.count(row) if row >= 0 else 0
        return self._counts[entity]


class NamedEntities(EntityTable):
    """Entities without vectors, where names, priors and types alone decide; those that the knowledge base does not have
    are given with a Doc."""

    def __init__(self, kb: EntityKB | None):
        super().__init__(None, size=0, kb=kb)
        self._given = 0

    def rows_of(self, entities: Sequence[str]) -> list[int]:
        """A row for each."""
        self._given += len(entities)
        return list(range(self._given - len(entities), self._given))

    def vectors(self) -> LinkVectors:
        return LinkVectors(np.zeros((len(self.rows), 0), np.float32), np.zeros(len(self.rows), np.float32))


def check_store(store: EntityVectors, size: int) -> None:
    """Raises ValueError where a store's vectors are not those of the encoder's entities."""
    if store.size not in (size, size + 1):
        raise ValueError(
            f"The vectors in {store.path} have {store.size} numbers, but the encoder's entities have {size} (or "
            f"{size + 1} with a bias). Make them with this encoder (`spacy luke embed-entities`), or give the "
            "encoder's own."
        )
