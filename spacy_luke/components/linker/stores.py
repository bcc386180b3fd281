"""The knowledge base and the vectors of a linker: where they come from, and how they are saved with it."""

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import srsly
from spacy.util import registry
from spacy.vocab import Vocab

from ...architectures.entity_linker import LinkerModel
from ...checkpoint.contents import LukeCheckpoint
from ...kb.knowledge_base import EntityKB
from ...stores.folder import StoreFolder
from ...vectors.store import EntityVectors
from ..base import LukeComponent
from ..storage import BYTES_LIMIT
from .checkpoint_table import has_table, table_vectors
from .entity_table import check_store

_KB = "kb"  # folder beside the file


@registry.misc("spacy-luke.entity_kb.v1")
def make_kb_loader(path: str) -> Callable[[], EntityKB]:
    """A function that opens a knowledge base.

    path: its folder, which `spacy luke build-kb` makes.
    """

    def load_kb() -> EntityKB:
        return EntityKB.open(path)

    return load_kb


class KBComponent(LukeComponent):
    """A component with a knowledge base, and with vectors of its own where that has none, which are saved beside its
    file: in `exclude` "kb" and "entity_vectors". Where states of the encoder do not count (`context` of the model) it
    has no use for vectors: they are neither checked nor saved."""

    def __init__(self, vocab: Vocab, model: LinkerModel, name: str, **settings: Any) -> None:
        super().__init__(vocab, model, name, **settings)
        self.kb: EntityKB | None = None
        self._vectors: EntityVectors | None = None  # without a knowledge base

    @property
    def context(self) -> bool:
        """Whether states of the encoder count, which are compared with vectors of entities."""
        return bool(self.model.attrs["context"])

    @property
    def vectors(self) -> EntityVectors:
        """Those of the knowledge base, or its own where that has none."""
        found = self._vectors if self.kb is None or self.kb.vectors is None else self.kb.vectors
        if found is None:
            raise ValueError(
                f"'{self.name}' has no entity vectors. Expected a knowledge base with vectors (`spacy luke "
                f"embed-entities`) in [initialize.components.{self.name}.kb], a store in .vectors (`spacy luke "
                "build-vectors`), or a converted checkpoint."
            )
        return found

    @property
    def own_vectors(self) -> EntityVectors | None:
        return self._vectors if self.context and (self.kb is None or self.kb.vectors is None) else None

    @property
    def own_kb(self) -> EntityKB | None:
        """The knowledge base as it is saved."""
        return self.kb if self.kb is None or self.context else without_vectors(self.kb)

    @property
    def stores(self) -> dict[str, StoreFolder]:
        return {**super().stores, **({} if (kb := self.own_kb) is None else {_KB: kb})}

    def take_vectors(self, vectors: EntityVectors) -> None:
        self._vectors = vectors

    def set_kb(self, kb: EntityKB | None) -> None:
        """Use another knowledge base. Its vectors must be of the same kind as those of training; entities may differ.
        One without vectors gives names and counts alone: entities keep the linker's own vectors, as of a converted
        checkpoint. Raises ValueError where these are not there either, or of another width than the encoder's."""
        if not isinstance(kb, EntityKB | None):
            raise ValueError(f"Expected a knowledge base, such as EntityKB.open({str(kb)!r:.80}), but got {kb!r:.80}.")
        if kb is not None and self.context:
            self._check_vectors(kb)
        self.kb = kb

    def _check_vectors(self, kb: EntityKB) -> None:
        """ValueError where entities would have no vectors, ones of another width than the encoder's, or of another
        encoder than those that are there, which the weights were trained with."""
        old = self._vectors if self.kb is None or self.kb.vectors is None else self.kb.vectors
        new = kb.vectors
        if new is None and self._vectors is None:
            raise ValueError(
                f"The knowledge base in {kb.path} has no vectors, and '{self.name}' has none of its own. Make them "
                "with `spacy luke embed-entities`, by the encoder that it was trained from."
            )
        if new is not None and self.encoder.ready:
            check_store(new, self.encoder.module.config.entity_size)
        _warn_of_missing(kb, self.name)
        if old is None or new is None or None in (old.encoder, new.encoder) or old.encoder == new.encoder:
            return
        raise ValueError(
            f"The vectors of the knowledge base in {new.path} were made by another encoder than those that "
            f"'{self.name}' was trained with. Make them again with that one: `spacy luke embed-entities --again`."
        )

    def open_entities(
        self, kb: Callable[[], EntityKB] | None, vectors: str | None, checkpoint: LukeCheckpoint | None
    ) -> None:
        """At initialisation: open a knowledge base, or a store of vectors. Where neither has vectors, and there were
        none before, the entity table of the checkpoint is taken. Raises ValueError where they are of another width than
        the encoder's, or where there are none."""
        if kb is not None:
            self.kb = kb()
        elif vectors is not None:
            self.kb, self._vectors = None, EntityVectors.open(vectors)
        if not self.context:
            return
        without = self._vectors is None and (self.kb is None or self.kb.vectors is None)
        if without and checkpoint is not None and has_table(checkpoint):
            self._vectors = table_vectors(checkpoint)
        check_store(self.vectors, self.encoder.module.config.entity_size)
        if self.kb is not None:
            _warn_of_missing(self.kb, self.name)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        super().from_disk(path, exclude=exclude)
        if (kb := self._open_beside(path, _KB, exclude, EntityKB.open)) is not None:
            self.kb = kb
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        data = super().to_bytes(exclude=exclude)
        kb = None if _KB in exclude else self.own_kb
        files = {} if kb is None else pack_kb(kb, most=BYTES_LIMIT - len(data))
        message: bytes = srsly.msgpack_dumps({"component": data, _KB: files})
        return message

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        message = srsly.msgpack_loads(bytes_data)
        super().from_bytes(message["component"], exclude=exclude)
        if message[_KB] and _KB not in exclude:
            self.kb = EntityKB.unpack(message[_KB])
        return self


def _warn_of_missing(kb: EntityKB, name: str) -> None:
    """Of entities that were added or replaced since the vectors were made."""
    if kb.vectors is not None and len(kb.vectors) < len(kb):
        warnings.warn(
            f"'{name}': {len(kb) - len(kb.vectors):,} of the {len(kb):,} entities in {kb.path} have no vectors: "
            "names and counts alone speak for them. Make theirs with `spacy luke embed-entities`.",
            stacklevel=3,
        )


def without_vectors(kb: EntityKB) -> EntityKB:
    """The same knowledge base, as one that has no vectors. Its folder must be kept by the given one, where it is a
    temporary one."""
    kb.paths()  # ValueError where the folder is there no more
    plain = EntityKB(kb.path, kb.manifest)
    plain.vectors = None
    return plain


def pack_kb(kb: EntityKB, *, most: int) -> dict[str, bytes]:
    """The files of a knowledge base by their names. Raises ValueError for more than `most` bytes."""
    size = sum(path.stat().st_size for path in kb.paths().values())
    if size > most:
        raise ValueError(
            f"The knowledge base in {kb.path} has {size:,} bytes, more than a bytestring in spaCy's format can hold. "
            "Use nlp.to_disk, which has no limit."
        )
    return kb.pack()
