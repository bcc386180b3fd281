"""From checkpoints to the encoders of components, and back."""

import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ..bridge.wrapper import TorchShim
from ..checkpoint.contents import ErnieCheckpoint, LukeCheckpoint
from ..entity_vocab import EntityVocab
from ..model.config import LukeConfig
from ..model.ernie import ErnieConfig
from ..stores.atomic import HeldFolder
from ..text.tokenizer import PieceTokenizer
from ..vectors.store import EntityVectors

PREFIX = "encoder."
TABLE = "entities.table.weight"


def load_luke(shim: TorchShim, checkpoint: LukeCheckpoint, *, special: Sequence[str], every_row: bool) -> None:
    """Take over a checkpoint's encoder, tokenizer and entity vocabulary.

    special: entities that the task's inputs have. The module gets the special rows of the entity table, or `every_row`.
    Other rows that the checkpoint brings are kept beside it, unread, and go with the pipeline when it is saved or
    exported.
    """
    if checkpoint.tokenizer is None or checkpoint.entities is None:
        raise _incomplete("tokenizer" if checkpoint.tokenizer is None else "entity vocabulary")
    config, tensors, entities = checkpoint.config, dict(checkpoint.tensors), checkpoint.entities
    table = tensors[PREFIX + TABLE]
    for name in special:
        if name not in entities.special_rows():  # the paper's [MASK2] begins as a copy of [MASK] (section 4.2)
            row, mask = len(entities), entities.mask_row  # tables may be longer than their vocabulary
            table = torch.cat([table[:row], table[mask : mask + 1], table[row + 1 :]])
            entities = entities.with_entity(name)
    known = entities.special_rows()
    rows = list(range(len(table))) if every_row else sorted(set(known.values()))
    kept = {"pooler." + k: tensors[f"pooler.{k}"] for k in ("weight", "bias") if f"pooler.{k}" in tensors}
    tensors[PREFIX + TABLE] = table
    if len(rows) < len(table):
        kept[TABLE] = table
        tensors[PREFIX + TABLE] = table[rows].clone()
    small = LukeConfig.from_dict({**config.to_dict(), "entity_vocab_size": len(rows)})
    shim.create(
        {
            "config": small.to_dict(),
            "special_rows": rows,
            "mask_row": rows.index(entities.mask_row),
            "specials": {name: rows.index(row) for name, row in known.items()},
            "source": checkpoint.source,
        }
    )
    _fill(shim, tensors)
    shim.kept = kept
    shim.texts = {"tokenizer": checkpoint.tokenizer.to_json(), "entities": entities.to_json()}


def make_luke_checkpoint(shim: TorchShim, tokenizer: PieceTokenizer) -> LukeCheckpoint:
    """The reverse of `load_luke`: the encoder with the whole entity table that is there."""
    tensors = _tensors(shim)
    kept = dict(shim.kept)
    config = dict(shim.settings["config"])
    if TABLE in kept:
        table = kept.pop(TABLE).clone()
        table[shim.settings["special_rows"]] = tensors[PREFIX + TABLE]
        tensors[PREFIX + TABLE] = table
        config["entity_vocab_size"] = len(table)
    return LukeCheckpoint(
        config=LukeConfig.from_dict(config),
        tensors={**tensors, **kept},
        tokenizer=tokenizer,
        entities=EntityVocab.from_json(shim.texts["entities"]),
        labels=None,
        task="encoder",
        source=shim.settings["source"],
        report=[],
    )


def load_ernie(shim: TorchShim, checkpoint: ErnieCheckpoint) -> None:
    """Take over an ERNIE checkpoint's encoder and tokenizer, and open its entity vectors. Raises ValueError where these
    are of another width than the model's entities."""
    if checkpoint.tokenizer is None:
        raise _incomplete("tokenizer")
    vectors = None if checkpoint.vectors is None else EntityVectors.open(checkpoint.vectors)
    if vectors is not None and vectors.size != checkpoint.config.entity_size:
        raise ValueError(
            f"The entity vectors in {checkpoint.vectors} have {vectors.size} numbers, but the encoder's entities "
            f"{checkpoint.config.entity_size}. Give the vectors that it was trained with, or, for a plain BERT, set "
            f"entity_size = {vectors.size} in the loader of the checkpoint."
        )
    shim.create({"config": checkpoint.config.to_dict(), "source": checkpoint.source})
    _fill(shim, checkpoint.tensors)
    shim.vectors = vectors
    shim.kept = {}
    shim.texts = {"tokenizer": checkpoint.tokenizer.to_json()}


def make_ernie_checkpoint(shim: TorchShim, tokenizer: PieceTokenizer) -> ErnieCheckpoint:
    """The reverse of `load_ernie`; the vectors stay where they are."""
    return ErnieCheckpoint(
        config=ErnieConfig.from_dict(shim.settings["config"]),
        tensors=_tensors(shim),
        tokenizer=tokenizer,
        labels=None,
        task="encoder",
        source=shim.settings["source"],
        report=[],
    )


def unpack_vectors(files: dict[str, bytes]) -> EntityVectors:
    """A store of vectors from its files. They lie in a temporary folder for as long as it is used."""
    held = HeldFolder.temporary()
    held.path.mkdir()
    for name, data in files.items():
        Path(held.path, Path(name).name).write_bytes(data)
    vectors = EntityVectors.open(held.path)
    weakref.finalize(vectors, held.close)
    return vectors


def _fill(shim: TorchShim, tensors: Any) -> None:
    shim.fill({name[len(PREFIX) :]: x for name, x in tensors.items() if name.startswith(PREFIX)})


def _tensors(shim: TorchShim) -> Any:
    return {f"{PREFIX}{name}": x.detach().cpu() for name, x in shim.module.state_dict().items()}


def _incomplete(missing: str) -> ValueError:
    return ValueError(
        f"The checkpoint has no {missing}. Expected its files beside the weights (tokenizer.json, or vocab.json and "
        "merges.txt, or vocab.txt, or sentencepiece.bpe.model; and entity_vocab.json)."
    )
