"""A knowledge base in a folder as spaCy's `KnowledgeBase`: for spaCy's own `entity_linker`, and for components here.

    [components.entity_linker.generate_empty_kb]
    @misc = "spacy-luke.EmptyEntityKB.v1"

    [initialize.components.entity_linker.kb_loader]
    @misc = "spacy-luke.EntityKB.v1"
    path = "kb"

spaCy makes an empty one first, also when a pipeline is loaded, and reads the saved one into it.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import srsly
from spacy.kb import Candidate, KnowledgeBase
from spacy.tokens import Span
from spacy.util import SimpleFrozenList
from spacy.vocab import Vocab

from ...kb.knowledge_base import EntityKB
from ...stores.arrays import AGAIN
from ...stores.folder import is_sealed, write_sealed

_SETTINGS = "spacy.json"  # beside the files of the knowledge base
_BUILD = "Build one with `python -m spacy luke build-kb`."
_MAKE_VECTORS = (
    "Make vectors of all entities in the folder `vectors` of the knowledge base, or do without them: entity_linker's "
    "setting incl_context = false."
)


def make_entity_kb_loader(path: str, top: int | None = None) -> Callable[[Vocab], KnowledgeBase]:
    """`spacy-luke.EntityKB.v1`: opens a knowledge base for spaCy's own `entity_linker`.

    path: its folder.
    top: candidates of a mention at most, the best by prior; None: all.
    """

    def load_entity_kb(vocab: Vocab) -> KnowledgeBase:
        return LinkedKB(vocab, EntityKB.open(path), top=top)

    return load_entity_kb


def make_empty_entity_kb() -> Callable[[Vocab, int], KnowledgeBase]:
    """`spacy-luke.EmptyEntityKB.v1`: what a saved knowledge base is read into."""

    def make_empty(vocab: Vocab, entity_vector_length: int) -> KnowledgeBase:
        return LinkedKB(vocab, entity_vector_length=entity_vector_length)

    return make_empty


class LinkedCandidate(Candidate):  # type: ignore[misc]  # spaCy's has no types
    """spaCy's candidate. Reading the vector of an entity that has none raises ValueError, since a vector of zeros would
    make spaCy's scores NaN."""

    @property
    def entity_vector(self) -> list[float]:
        vector: list[float] = super().entity_vector
        if not vector:
            raise ValueError(f"The entity {self.entity_!r} has no vector in the knowledge base. {_MAKE_VECTORS}")
        return vector


class LinkedKB(KnowledgeBase):  # type: ignore[misc]  # spaCy's has no types
    """Candidates, priors and vectors from an `EntityKB`, memory-mapped; nothing can be added.

    entity_vector_length is that of the vectors, and 1 where there are none. A pickle holds the path of the folder.
    """

    def __init__(
        self,
        vocab: Vocab,
        kb: EntityKB | None = None,
        *,
        top: int | None = None,
        entity_vector_length: int = 1,
    ) -> None:
        if top is not None and top < 1:
            raise ValueError(f"top must be at least 1, or None for all candidates, but it is {top}.")
        super().__init__(vocab, entity_vector_length)
        self._take(kb, top)

    def __len__(self) -> int:
        """Number of entities."""
        return 0 if self.kb is None else len(self.kb)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.vocab, self.kb, self.top, self.entity_vector_length)

    def is_empty(self) -> bool:
        return len(self) == 0

    def get_size_entities(self) -> int:
        return len(self)

    def get_size_aliases(self) -> int:
        return 0 if self.kb is None else self.kb.n_names

    def get_entity_strings(self) -> Iterator[str]:
        return iter(()) if self.kb is None else self.kb.entities()

    def get_alias_strings(self) -> Iterator[str]:
        return iter(()) if self.kb is None else self.kb.names()

    def contains_entity(self, entity: str) -> bool:
        return self.kb is not None and entity in self.kb

    def contains_alias(self, alias: str) -> bool:
        return self.kb is not None and self.kb.find_name(alias) is not None

    def get_candidates(self, mention: Span) -> Iterable[Candidate]:
        """Of the mention's text, the best prior first; none for an unknown name (see `EntityKB.find_name`)."""
        return self.get_alias_candidates(mention.text)

    def get_candidates_batch(self, mentions: Iterable[Span]) -> Iterable[Iterable[Candidate]]:
        """As `get_candidates` of each; a text that comes again is looked up once."""
        texts = [mention.text for mention in mentions]
        found = {text: self.get_alias_candidates(text) for text in dict.fromkeys(texts)}
        return [list(found[text]) for text in texts]

    def get_alias_candidates(self, alias: str) -> list[Candidate]:
        kb = self._opened()
        rows = kb.candidate_rows(alias, top=self.top)
        strings, alias_hash = self.vocab.strings, self.vocab.strings.add(alias)
        entities = [kb.name_of(row) for row, _ in rows]
        vectors = self._vectors(entities)
        return [
            LinkedCandidate(self, strings.add(entity), kb.count(row), vectors.get(entity, []), alias_hash, prior)
            for entity, (row, prior) in zip(entities, rows, strict=True)
        ]

    def get_prior_prob(self, entity: str, alias: str) -> float:
        """p(entity | alias), 0.0 where the alias does not mean the entity."""
        row = self._opened().row(entity)
        return next((prior for other, prior in self._opened().candidate_rows(alias) if other == row), 0.0)

    def get_vector(self, entity: str) -> list[float]:
        """Zeros for an entity that the knowledge base does not have, as spaCy's own do: gold links may go beyond it.
        ValueError for one that has no vector."""
        kb = self._opened()
        row = kb.row(entity)
        if row < 0:
            return [0.0] * self.entity_vector_length
        name = kb.name_of(row)
        vector = self._vectors([name]).get(name)
        if vector is None:
            raise ValueError(f"The entity {name!r} has no vector in the knowledge base. {_MAKE_VECTORS}")
        return vector

    def to_disk(self, path: str | Path, exclude: Iterable[str] = SimpleFrozenList()) -> None:
        """The folder `path`: hard links to the files on the same disk, else copies."""
        path = Path(path)
        self._opened().save(path)
        write_sealed(path / _SETTINGS, {"top": self.top})

    def from_disk(self, path: str | Path, exclude: Iterable[str] = SimpleFrozenList()) -> "LinkedKB":
        path = Path(path)
        kb = EntityKB.open(path)
        self._take(kb, _read_top(path / _SETTINGS))
        return self

    def to_bytes(self, **kwargs: Any) -> bytes:
        """All files, so that it can be read on another machine: as large as the folder."""
        data: bytes = srsly.msgpack_dumps({"top": self.top, "files": self._opened().pack()})
        return data

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()) -> "LinkedKB":
        """The files go to a temporary folder, which lives as long as what was read."""
        try:
            found = srsly.msgpack_loads(bytes_data)
            top, files = found["top"], dict(found["files"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"Expected the bytes of a knowledge base, but they are damaged ({error!r}).") from error
        self._take(EntityKB.unpack(files), top)
        return self

    def _take(self, kb: EntityKB | None, top: int | None) -> None:
        self.kb, self.top = kb, top
        if kb is not None and kb.vectors is not None:
            super().__init__(self.vocab, kb.vectors.size)  # its length is read-only

    def _opened(self) -> EntityKB:
        if self.kb is None:
            raise ValueError(
                f"The knowledge base is empty: give spacy-luke.EntityKB.v1 with a path as kb_loader to `initialize`. "
                f"{_BUILD}"
            )
        return self.kb

    def _vectors(self, entities: list[str]) -> dict[str, list[float]]:
        """The vectors of those that have one."""
        vectors = self._opened().vectors
        if vectors is None or not entities:
            return {}
        rows = vectors.rows(entities)
        kept = [i for i, row in enumerate(rows.tolist()) if row >= 0]
        return dict(zip([entities[i] for i in kept], vectors.gather(rows[kept]).tolist(), strict=True))


def _read_top(path: Path) -> int | None:
    """Of earlier versions the file has no digest, or is not there."""
    if not path.is_file():
        return None
    try:
        settings: Any = srsly.read_json(path)
        top = settings["top"]
        whole = is_sealed(settings) or set(settings) == {"top"}
        if not whole or not (top is None or (type(top) is int and top > 0)):
            raise ValueError(f"it holds {settings}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}). {AGAIN}") from error
    return top


def _restore(vocab: Vocab, kb: EntityKB | None, top: int | None, entity_vector_length: int) -> LinkedKB:
    return LinkedKB(vocab, kb, top=top, entity_vector_length=entity_vector_length)
