"""A checkpoint's entity table as a store of vectors, and a store as the table of a checkpoint."""

import weakref
from dataclasses import replace

import numpy as np
import torch

from ...checkpoint.contents import LukeCheckpoint
from ...checkpoint.names import ENTITY_TABLE
from ...entity_vocab import EntityVocab
from ...stores.atomic import HeldFolder
from ...vectors.build import build_vectors
from ...vectors.store import EntityVectors

_SPECIAL = ("[PAD]", "[UNK]", "[MASK]")  # the original's rows 0, 1 and 2


def has_table(checkpoint: LukeCheckpoint) -> bool:
    return checkpoint.entities is not None and len(checkpoint.entities) > len(checkpoint.entities.special_rows())


def with_table(checkpoint: LukeCheckpoint, store: EntityVectors) -> LukeCheckpoint:
    """A checkpoint with a store's vectors as its entity table, after the original's special rows, and their biases
    (zeros where the store has none): the reverse of `without_table` and `table_vectors`."""
    assert checkpoint.entities is not None
    size = checkpoint.config.entity_size
    first = store.names_of(np.arange(len(store)))
    names = [name for name in first if name not in _SPECIAL]
    new_row = {name: row for row, name in enumerate([*_SPECIAL, *names])}
    further = [(name, new_row[first[row]]) for name, row in store.further_names() if first[row] not in _SPECIAL]
    both = np.zeros((len(_SPECIAL) + len(names), size + 1), dtype=np.float32)
    if (unknown := store.row("[UNK]")) >= 0:
        both[_SPECIAL.index("[UNK]"), : store.size] = store.gather([unknown])[0]
    both[len(_SPECIAL) :, : store.size] = store.gather(store.rows(names))
    table = torch.from_numpy(np.ascontiguousarray(both[:, :size]))
    table[_SPECIAL.index("[MASK]")] = checkpoint.tensors[ENTITY_TABLE][checkpoint.entities.mask_row].float().cpu()
    return replace(
        checkpoint,
        config=replace(checkpoint.config, entity_vocab_size=len(table)),
        tensors={**checkpoint.tensors, ENTITY_TABLE: table, "entity_head.bias": torch.from_numpy(both[:, size].copy())},
        entities=EntityVocab([*new_row.items(), *further]),
    )


def table_vectors(checkpoint: LukeCheckpoint) -> EntityVectors:
    """A checkpoint's entity table, with the biases of its head, as a store in a temporary folder. Rows of [PAD] and
    [MASK], and rows without a name, are left out; names in further languages find a row, too."""
    table = checkpoint.tensors[ENTITY_TABLE].float().numpy()
    bias = checkpoint.tensors.get("entity_head.bias")
    if bias is not None:
        table = np.concatenate([table, bias.float().numpy()[:, None]], axis=1)
    if checkpoint.entities is None or not has_table(checkpoint):
        raise ValueError(
            'The checkpoint\'s entity vocabulary has special entities only; read it with entities = "all".'
        )
    left_out = {row for name, row in checkpoint.entities.special_rows().items() if name != "[UNK]"}
    names_of = {row: names for row, names in enumerate(checkpoint.entities.names()) if names and row not in left_out}
    first = [names[0] for names in names_of.values()]
    further = [(name, names[0]) for names in names_of.values() for name in names[1:]]
    held = HeldFolder.temporary()
    store = build_vectors(table[list(names_of)], held.path, names=first, further=further).store
    weakref.finalize(store, held.close)
    return store
