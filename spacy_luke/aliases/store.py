"""Names with their link probabilities and candidate entities: millions of them in one file that is memory-mapped.

Opening checks the file (see `aliases.file`, which describes it); a lookup reads the pages of the file that it needs,
which all processes share.
"""

import io
import mmap
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..stores.atomic import write_atomically
from ..text.forms import check_case, key_of
from .file import Header, check_digests, damaged, read_header, write_sections
from .trie import map_trie, new_trie


class Candidate(NamedTuple):
    """An entity that a name may mean, and p(entity | name)."""

    entity: str
    prior: float


class AliasStore:
    """Reads a store: a file (`open`), or its bytes. Nothing in it can be changed; `aliases.build` makes new ones.

    Raises ValueError for what is no store, not a whole one or one of another version.
    """

    def __init__(
        self,
        data: bytes | mmap.mmap,
        *,
        source: str = "the bytes",
        file: Path | None = None,
        vouched: bool = False,
    ) -> None:
        """file: that data is mapped from; vouched: the caller has compared a digest of all of it."""
        self._data = memoryview(data)
        self.header, places = read_header(self._data, source, vouched=vouched)
        if not vouched:
            check_digests(self._data, places, source=source, file=file)
        sections = {name: self._data[place.start : place.end] for name, place in places.items()}
        try:
            self._names, self._titles = (map_trie(sections[name]) for name in ("names", "titles"))
            self._link, self._priors = sections["link"].cast("f"), sections["priors"].cast("f")
            self._first, self._entities = sections["first"].cast("I"), sections["entities"].cast("I")
            sizes = (len(self._names), len(self._titles), len(self._link), len(self._first) - 1, self._first[-1])
        except (RuntimeError, TypeError, IndexError) as error:
            raise damaged(source, str(error)) from error
        names, candidates = self.header.names, self.header.candidates
        if sizes != (names, self.header.entities, names, names, candidates) or {
            len(self._entities),
            len(self._priors),
        } != {candidates}:
            raise damaged(source, "its parts disagree in size")

    @classmethod
    def open(cls, path: str | Path, *, vouched: bool = False) -> "AliasStore":
        """A store in a file, memory-mapped: the file must not be written to, but it may be replaced or removed."""
        path = Path(path)
        if not path.is_file():
            raise ValueError(f"Expected a store of names at {path}, but there is no such file.")
        with path.open("rb") as file:
            if not file.read(1):
                raise ValueError(f"{path} is empty; expected a store of names.")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return cls(data, source=str(path), file=path, vouched=vouched)

    def to_bytes(self) -> bytes:
        """What `open` reads; the same store gives the same bytes."""
        return self._data.tobytes()

    def save(self, path: str | Path) -> None:
        """Write the file, atomically: also over the one that this store is mapped from."""
        with write_atomically(Path(path)) as temporary, temporary.open("wb") as file:
            file.write(self._data)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with all it holds, so that it can be read on another machine."""
        return type(self), (self.to_bytes(),)

    @property
    def case(self) -> str:
        """Whether names are compared as they are ("exact") or without case ("casefold")."""
        return self.header.case

    @property
    def longest(self) -> int:
        """Characters of the longest name."""
        return self.header.longest

    @property
    def info(self) -> dict[str, Any]:
        """What the builder noted: sources, numbers of pages and links."""
        return dict(self.header.info)

    def __len__(self) -> int:
        """Number of names."""
        return self.header.names

    def __iter__(self) -> Iterator[str]:
        """All names in the form of keys (see `text.forms`), in an order that depends on the names alone."""
        return iter(self._names.iterkeys())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.number_of(name) is not None

    def __repr__(self) -> str:
        return f"AliasStore({len(self):,} names, {self.header.entities:,} entities, case={self.case!r})"

    def candidates(self, name: str) -> list[Candidate]:
        """The entities that a name may mean, the most frequent first; [] for an unknown name."""
        number = self.number_of(name)
        return [] if number is None else self.candidates_of(number)

    def link_probability(self, name: str) -> float:
        """Times linked / times occurring (LUKE paper, appendix C); 0.0 for an unknown name."""
        number = self.number_of(name)
        return 0.0 if number is None else self._link[number]

    def entities(self) -> Iterator[str]:
        """All titles, in an order that depends on the titles alone."""
        return iter(self._titles.iterkeys())

    # ---- by a name's number, for those that look up many

    def number_of(self, name: str) -> int | None:
        """The number of a name, None of an unknown one."""
        return self._names.get(key_of(name, case=self.case))

    def number_of_key(self, key: str) -> int | None:
        """As `number_of`, of a name that is in the form of keys already."""
        return self._names.get(key)

    def numbers_of_prefixes(self, key: str) -> Iterator[tuple[str, int]]:
        """Names that a key begins with, and their numbers, the shortest first."""
        return self._names.iter_prefixes_with_ids(key)

    def names_beginning(self, key: str) -> Iterator[str]:
        """Names that begin with a key."""
        return self._names.iterkeys(key)

    def link_probability_of(self, number: int) -> float:
        """The share of a name's occurrences that are links."""
        return self._link[number]

    def best_prior_of(self, number: int) -> float:
        """p(entity | name) of the first candidate."""
        return self._priors[self._first[number]]

    def name_of(self, number: int) -> str:
        """The key of a name."""
        return self._names.restore_key(number)

    def entity_number_of(self, entity: str) -> int | None:
        """The number of an entity: from 0, and as many as there are titles."""
        return self._titles.get(entity)

    def entity_of(self, number: int) -> str:
        """The title of an entity, by its number."""
        return self._titles.restore_key(number)

    def numbers_of(self, number: int) -> list[tuple[int, float]]:
        """The candidates of a name as numbers of entities and p(entity | name), the best first."""
        start, end = self._first[number], self._first[number + 1]
        return list(zip(self._entities[start:end].tolist(), self._priors[start:end].tolist(), strict=True))

    def candidates_of(self, number: int, *, top: int | None = None) -> list[Candidate]:
        """The candidates of a name, the best first; top: so many at most."""
        start, end, restore = self._first[number], self._first[number + 1], self._titles.restore_key
        end = end if top is None else min(end, start + top)
        pairs = zip(self._entities[start:end].tolist(), self._priors[start:end].tolist(), strict=True)
        return [Candidate(restore(entity), prior) for entity, prior in pairs]


def pack_store(
    keys: Sequence[str],
    titles: Sequence[str],
    *,
    link_N: np.ndarray,
    count_N: np.ndarray,
    entity_C: np.ndarray,
    prior_C: np.ndarray,
    case: str,
    info: dict[str, Any],
) -> bytes:
    """The bytes of a store. keys: names in the form of `key_of`, in order and each once; titles: the same of entities.

    link_N, count_N: link probability and number of candidates (one at least) of each name; entity_C, prior_C: index
    among `titles` and p(entity | name) of each candidate, name after name, the best first.
    """
    names, entities = new_trie(keys), new_trie(titles)
    number_N = np.fromiter((names[key] for key in keys), np.int64, len(keys))
    number_T = np.fromiter((entities[title] for title in titles), np.int64, len(titles))
    order_N, source_C = order_of_numbers(number_N, count_N)
    file = io.BytesIO()
    write_store(
        file, memoryview(names.tobytes()), memoryview(entities.tobytes()), entities=len(titles),
        link_N=link_N[order_N], first_N=first_of(count_N[order_N]), entity_C=number_T[entity_C][source_C],
        prior_C=prior_C[source_C], case=case, longest=max(map(len, keys), default=0), info=info,
    )  # fmt: skip
    return file.getvalue()


def order_of_numbers(number_N: np.ndarray, count_N: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A trie numbers names in an order of its own. int64 (N,) and (C,): which names, and which of their candidates, one
    name's after another's, are the first, second and further ones by these numbers. count_N: candidates of each."""
    order_N = np.argsort(number_N)
    first_N = np.cumsum(count_N, dtype=np.int64) - count_N
    sizes_N = count_N[order_N]
    starts_N = np.cumsum(sizes_N, dtype=np.int64) - sizes_N
    source_C = np.repeat(first_N[order_N] - starts_N, sizes_N) + np.arange(int(sizes_N.sum()))
    return order_N, source_C


def first_of(count_N: np.ndarray) -> np.ndarray:
    """int64 (N + 1,): where the candidates of each name begin, and where those of the last one end."""
    return np.concatenate([[0], np.cumsum(count_N, dtype=np.int64)])


def check_candidates(candidates: int) -> None:
    if candidates >= 2**32:
        raise ValueError(f"A store holds fewer than 2 ** 32 candidates, but there are {candidates:,}; drop rare ones.")


def write_store(
    file: BinaryIO,
    names: memoryview,
    titles: memoryview,
    *,
    entities: int,
    link_N: np.ndarray,
    first_N: np.ndarray,
    entity_C: np.ndarray,
    prior_C: np.ndarray,
    case: str,
    longest: int,
    info: dict[str, Any],
) -> None:
    """As `pack_store`, to an open file. names, titles: tries as `map_trie` reads them; entities: how many titles there
    are. By the numbers of the names: link_N (N,) and first_N (N + 1,), see `first_of`; entity_C (C,): numbers of
    titles. longest: characters of the longest name."""
    check_candidates(len(entity_C))
    sections = {
        "names": names,
        "titles": titles,
        "link": link_N.astype(np.float32, copy=False).data,
        "first": first_N.astype(np.uint32, copy=False).data,
        "entities": entity_C.astype(np.uint32, copy=False).data,
        "priors": prior_C.astype(np.float32, copy=False).data,
    }
    header = Header(
        candidates=len(entity_C),
        case=check_case(case),
        entities=entities,
        info=info,
        longest=longest,
        names=len(link_N),
    )
    write_sections(file, header, {name: data.cast("B") for name, data in sections.items()})


def float32(x: float) -> float:
    """The number that a store holds for x: a threshold must be rounded as what it is compared with."""
    rounded: float = struct.unpack("f", struct.pack("f", x))[0]
    return rounded
