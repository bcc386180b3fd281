"""Vectors of entities from what they are called and what they are: an entity is added without any training.

Blocks of entities are embedded by tasks of their own, in this process, in several, or on a Ray cluster. Each writes its
rows into one file in a folder of work beside the knowledge base (`.NAME.vectors.work`), so that a run that was killed
goes on with the blocks that are missing; memory is that of an encoder and of a block's texts in each process.
"""

import pickle
from functools import lru_cache
from hashlib import blake2b
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...checkpoint.text_encoder import TextEncoder
from ...kb.files import VECTORS
from ...kb.knowledge_base import EntityKB, hold_kb
from ...stores.folder import MANIFEST
from ...stores.parallel import Engine
from ...stores.work_folder import WorkFolder
from ...vectors.build import build_vectors

ENTITIES_AT_ONCE = 4096  # entities of a task
_ROWS = "rows.npy"
_ENCODER = "encoder.pickle"
_HERE: dict[str, TextEncoder] = {}  # the encoder of this process, by its fingerprint


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
    engine: Engine = Engine(workers=1),
    progress: bool = False,
) -> tuple[EntityKB, int]:
    """Write vectors of all entities of a knowledge base into its folder, and open it again; how many were made.

    again: those that it has are made anew; otherwise they are kept, and those of entities that were added are made.
    engine: where they are made. A run that was killed goes on with what is missing, if nothing has changed.
    """
    with hold_kb(kb.path):
        kb = EntityKB.open(kb.path)  # others may have added to it
        made = _embed(kb, encoder, again, dtype, batch_size, engine, progress)
    return EntityKB.open(kb.path), made


def _embed(
    kb: EntityKB, encoder: TextEncoder, again: bool, dtype: str, batch_size: int, engine: Engine, progress: bool
) -> int:
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
    path = kb.path.resolve()
    plan = {
        "format": "vectors of entities",
        "kb": _digest(path / MANIFEST),
        "old": None if old is None else _digest(path / VECTORS / MANIFEST),
        "encoder": fingerprint,
        "block": ENTITIES_AT_ONCE,
    }
    with WorkFolder(path.with_name(f"{path.name}.vectors"), plan) as work:
        work.run_one(_make_rows, [len(kb), encoder.size], name="rows")
        file = work.path / _ENCODER
        shared = {**plan, "kb": [str(path), plan["kb"], plan["old"]], "size": encoder.size, "batch_size": batch_size}
        blocks = [{**shared, "file": str(file), "start": start} for start in range(0, len(kb), ENTITIES_AT_ONCE)]
        _HERE[fingerprint] = encoder
        try:
            if engine != Engine(workers=1):
                file.write_bytes(pickle.dumps(encoder))  # whatever lay there
            made: int = sum(work.run(embed_block, blocks, name="block", engine=engine, progress=progress))
        finally:
            _HERE.clear()
            _open_kb.cache_clear()
            file.unlink(missing_ok=True)
        build_vectors(
            work.path / _ROWS,
            kb.path / VECTORS,
            dtype=dtype,
            names=kb.entities(),
            encoder=fingerprint,
            progress=progress,
        )
    return made


def embed_block(folder: Path, name: str, block: dict[str, Any]) -> int:
    """The task that writes the vectors of a block of entities; how many it made, the others are there already."""
    kb = _open_kb(*block["kb"])
    start, old = block["start"], None if block["old"] is None else kb.vectors
    names = [kb.name_of(row) for row in range(start, min(start + ENTITIES_AT_ONCE, len(kb)))]
    rows_ED = np.empty((len(names), block["size"]), dtype=np.float32)
    known_E = np.full(len(names), -1) if old is None else old.rows(names)
    kept, new = np.flatnonzero(known_E >= 0), np.flatnonzero(known_E < 0)
    if old is not None and len(kept):
        rows_ED[kept] = old.gather(known_E[kept])
    if len(new):
        texts = [entity_text(kb, start + i) for i in new.tolist()]
        encoder = _open_encoder(block["file"], block["encoder"])
        rows_ED[new] = encoder.encode(texts, batch_size=block["batch_size"])
    with (folder / _ROWS).open("r+b") as file:
        file.seek(-(len(kb) - start) * rows_ED[0].nbytes, 2)
        file.write(rows_ED.tobytes())
    return len(new)


def _make_rows(folder: Path, name: str, shape: list[int]) -> None:
    """The task that makes the file whose rows the others write."""
    np.lib.format.open_memmap(folder / _ROWS, mode="w+", dtype=np.float32, shape=tuple(shape)).flush()


@lru_cache(maxsize=1)
def _open_kb(path: str, *versions: str | None) -> EntityKB:
    """versions: a process of a cluster may have seen others."""
    return EntityKB.open(path)


def _open_encoder(file: str, fingerprint: str) -> TextEncoder:
    """file: that this run has written."""
    if fingerprint not in _HERE:
        if parent_process() is not None:
            torch.set_num_threads(1)  # the others have the other cores
        encoder: TextEncoder = pickle.loads(Path(file).read_bytes())
        assert encoder.fingerprint() == fingerprint
        _HERE.clear()
        _HERE[fingerprint] = encoder
    return _HERE[fingerprint]


def _digest(path: Path) -> str:
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()
