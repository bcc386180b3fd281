"""Vectors of entities from what they are called and what they are: an entity is added without any training."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from tqdm import tqdm

from ...checkpoint.text_encoder import TextEncoder
from ...kb.files import VECTORS
from ...kb.knowledge_base import EntityKB, hold_kb
from ...stores.atomic import HeldFolder
from ...vectors.build import build_vectors

BLOCK = 4096  # entities whose texts are in memory at once


def entity_text(kb: EntityKB, row: int) -> str:
    """Its title, which is its id where it has no other, and its description where it has one."""
    record = kb.record(row)
    return f"{record.title}. {record.description}" if record.description else record.title


def embed_entities(
    kb: EntityKB,
    encoder: TextEncoder,
    *,
    again: bool = False,
    dtype: str = "float32",
    batch_size: int = 4096,
    progress: bool = False,
) -> tuple[EntityKB, int]:
    """Write vectors of all entities of a knowledge base into its folder, and open it again; how many were made.

    again: those that it has are made anew; otherwise they are kept, and those of entities that were added are made.
    """
    with hold_kb(kb.path), closing(HeldFolder(kb.path.with_name("vectors"))) as held:
        kb = EntityKB.open(kb.path)  # others may have added to it
        made = _embed(kb, encoder, held.path, again, dtype, batch_size, progress)
    return EntityKB.open(kb.path), made


def _embed(
    kb: EntityKB, encoder: TextEncoder, folder: Path, again: bool, dtype: str, batch_size: int, progress: bool
) -> int:
    """folder: for temporary files."""
    old = None if again else kb.vectors
    if old is not None and old.size != encoder.size:
        raise ValueError(
            f"The vectors in {old.path} have {old.size} numbers, but the encoder makes {encoder.size}. Give the "
            "encoder that they were made with, or make all of them again (--again)."
        )
    fingerprint = encoder.fingerprint()
    if old is not None and old.encoder not in (None, fingerprint):
        raise ValueError(
            f"The vectors in {old.path} were made by another encoder, or with other weights, tokenizer or "
            "normalisation: vectors of both do not belong together. Give the encoder that they were made with, or "
            "make all of them again (--again)."
        )
    made = 0
    folder.mkdir()
    path = folder / "vectors.npy"
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(len(kb), encoder.size))
    for start, names in _blocks(kb, progress):
        known_E = np.full(len(names), -1) if old is None else old.rows(names)
        kept, new = np.flatnonzero(known_E >= 0), np.flatnonzero(known_E < 0)
        if len(kept):
            rows[start + kept] = old.gather(known_E[kept])  # type: ignore[union-attr]
        if len(new):
            texts = [entity_text(kb, start + i) for i in new.tolist()]
            rows[start + new] = encoder.encode(texts, batch_size=batch_size)
            made += len(new)
    rows.flush()
    build_vectors(
        path, kb.path / VECTORS, dtype=dtype, names=list(kb.entities()), encoder=fingerprint, progress=progress
    )
    return made


def _blocks(kb: EntityKB, progress: bool) -> Iterator[tuple[int, list[str]]]:
    with tqdm(total=len(kb), desc="vectors of entities", unit=" entities", disable=None if progress else True) as bar:
        for start in range(0, len(kb), BLOCK):
            names = [kb.name_of(row) for row in range(start, min(start + BLOCK, len(kb)))]
            yield start, names
            bar.update(len(names))
