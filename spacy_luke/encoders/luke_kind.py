"""LUKE encoders: their node in a model, what they take of a checkpoint, and their pass over the words."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from spacy.util import registry
from torch import Tensor

from ..checkpoint.checkpoint import read_checkpoint
from ..checkpoint.contents import LukeCheckpoint
from ..checkpoint.export import write_huggingface
from ..checkpoint.names import ENTITY_TABLE
from ..checkpoint.sources import find_source
from ..checkpoint.special import without_table
from ..entity_vocab import EntityVocab
from ..model.families import build_encoder, config_from_dict
from ..model.luke import LukeEncoder, Windows, WordStates, make_windows
from ..model.transfer import to_device
from ..text.tokenizer import PieceTokenizer
from .kind import (
    PREFIX,
    EncoderKind,
    EncoderShim,
    Needs,
    Reading,
    WindowBatch,
    check_tokenizer,
    encoder_tensors,
    fill_encoder,
    incomplete,
)
from .nodes import EncoderModel, make_encoder

_TABLE = ENTITY_TABLE.removeprefix(PREFIX)


class Luke(EncoderKind[LukeEncoder, LukeCheckpoint]):
    """Words and entities are tokens of one transformer: LUKE's own, or another family's (`model/families.py`). The
    module has the special rows of the entity table, or all."""

    name = "luke"
    title = "LUKE"
    architecture = "spacy-luke.LukeEncoder.v1"
    loader = "spacy-luke.checkpoint.v1"
    example = 'path = "studio-ousia/luke-base"'
    pair_task = "entity_pair_classification"
    components = {
        "span_classification": "luke_ner",
        "entity_classification": "luke_typer",
        "entity_pair_classification": "luke_relation",
        "question_answering": "luke_qa",
        "cloze": "luke_cloze",
        "entity_disambiguation": "luke_linker",
    }
    has_entity_tokens = True

    def build(self, settings: dict[str, Any]) -> LukeEncoder:
        masks = [row for name, row in settings.get("specials", {}).items() if name in ("[MASK]", "[MASK2]")]
        return build_encoder(config_from_dict(settings["config"]), masks)

    def load(self, shim: EncoderShim[LukeEncoder], checkpoint: LukeCheckpoint, needs: Needs) -> None:
        """Rows of the entity table that the module does not get are kept beside it, unread, and go with the pipeline
        when it is saved or exported."""
        for add in needs.prepare:
            add(checkpoint)
        tokenizer = check_tokenizer(checkpoint)
        if checkpoint.entities is None:
            raise incomplete("entity vocabulary")
        if not needs.table:
            checkpoint = without_table(checkpoint)
        assert checkpoint.entities is not None
        config, tensors, entities = checkpoint.config, dict(checkpoint.tensors), checkpoint.entities
        table = tensors[ENTITY_TABLE]
        for name in needs.special:
            if name not in entities.special_rows():  # the paper's [MASK2] begins as a copy of [MASK] (section 4.2)
                row, mask = len(entities), entities.mask_row  # tables may be longer than their vocabulary
                table = torch.cat([table[:row], table[mask : mask + 1], table[row + 1 :]])
                entities = entities.with_entity(name)
        known = entities.special_rows()
        rows = list(range(len(table))) if needs.every_row else sorted(set(known.values()))
        kept = {"pooler." + k: tensors[f"pooler.{k}"] for k in ("weight", "bias") if f"pooler.{k}" in tensors}
        tensors[ENTITY_TABLE] = table
        if len(rows) < len(table):
            kept[_TABLE] = table
            tensors[ENTITY_TABLE] = table[rows].clone()
        small = replace(config, entity_vocab_size=len(rows))
        shim.create(
            {
                "config": small.to_dict(),
                "special_rows": rows,
                "mask_row": rows.index(entities.mask_row),
                "specials": {name: rows.index(row) for name, row in known.items()},
                "source": checkpoint.source,
            }
        )
        fill_encoder(shim, tensors)
        shim.kept = kept
        shim.texts = {"tokenizer": tokenizer.to_json(), "entities": entities.to_json()}

    def to_checkpoint(self, shim: EncoderShim[LukeEncoder], tokenizer: PieceTokenizer) -> LukeCheckpoint:
        """With the whole entity table that is there."""
        tensors = encoder_tensors(shim)
        kept = dict(shim.kept)
        config = dict(shim.settings["config"])
        if _TABLE in kept:
            table = kept.pop(_TABLE).clone()
            table[shim.settings["special_rows"]] = tensors[ENTITY_TABLE]
            tensors[ENTITY_TABLE] = table
            config["entity_vocab_size"] = len(table)
        return LukeCheckpoint(
            config=config_from_dict(config),
            tensors={**tensors, **kept},
            tokenizer=tokenizer,
            entities=EntityVocab.from_json(shim.texts["entities"]),
            source=shim.settings["source"],
        )

    def write(self, checkpoint: LukeCheckpoint, folder: Path) -> None:
        write_huggingface(checkpoint, folder)

    def reads(self, source: Path) -> bool:
        return True  # or says what it has expected

    def read(self, source: Path, how: Reading) -> LukeCheckpoint:
        if how.vectors is not None:
            raise ValueError(f"--vectors are of ERNIE checkpoints, but {source} has no ernie_config.json.")
        base, tokenizer = (None if x is None else find_source(x, weights=False) for x in (how.base, how.tokenizer))
        return read_checkpoint(
            source, entities=how.entities, labels=how.labels, base=base, tokenizer=tokenizer, layers=how.layers
        )

    def word_states(self, shim: EncoderShim[LukeEncoder], batch: WindowBatch) -> Tensor:
        return encode_words(shim, batch.pieces_N, batch.lengths).states_ND

    def special_rows(self, shim: EncoderShim[LukeEncoder], names: Sequence[str]) -> list[int]:
        _ = shim.module  # raises where nothing is loaded
        return [shim.settings["specials"][name] for name in names]


@registry.architectures("spacy-luke.LukeEncoder.v1")
def build_luke_encoder(
    trainable: bool = True,
    train_precision: str = "auto",
    predict_precision: str = "float32",
    recompute: bool = False,
) -> EncoderModel:
    """A LUKE encoder. Its sizes, parameters and tokenizer come from a checkpoint when the pipeline is initialised.

    trainable: false freezes all its parameters.
    train_precision, predict_precision: "float32", "bfloat16" (autocast), or "auto": the faster one here.
    recompute: training keeps less in memory and computes each layer a second time (activation checkpointing).

    Alone it maps piece ids of windows, [CLS] and [SEP] included, to word states: (pieces, hidden_size) for each.
    """
    return make_encoder(
        Luke(),
        trainable=trainable,
        train_precision=train_precision,
        predict_precision=predict_precision,
        recompute=recompute,
    )


def encode_words(
    shim: EncoderShim[LukeEncoder],
    pieces_N: np.ndarray,
    lengths: Sequence[int],
    types_N: np.ndarray | None = None,
    *,
    states: bool = True,
) -> WordStates:
    """The word pass of one-way attention. types_N: token types; zeros where None. states: as of `encode_sent`."""
    windows = make_windows(pieces_N, lengths, types_N, device=shim.device)
    return encode_sent(shim, pieces_N, to_device(windows, shim.device), states=states)


def encode_sent(
    shim: EncoderShim[LukeEncoder], pieces_N: np.ndarray, windows: Windows, *, states: bool = True
) -> WordStates:
    """The word pass of windows that are on the encoder's device. Where components share the encoder, a window that
    another one has read lately is not read again. pieces_N: the windows' pieces, on the host. states: false where the
    states of words are not read, only what entities see of them."""
    if shim.sharing is not None and windows.types_N is None and not torch.is_grad_enabled():
        return shim.sharing.cache.encode(shim, pieces_N, windows)
    return shim.module.encode_words(windows, states=states)
