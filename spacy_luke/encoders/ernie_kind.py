"""ERNIE encoders (Zhang et al., ACL 2019): their node in a model, what they take of a checkpoint, and their pass.

N packed pieces, E known entities of all windows.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from spacy.util import registry
from torch import Tensor

from ..checkpoint.contents import ErnieCheckpoint
from ..checkpoint.ernie import is_ernie, read_ernie, write_ernie
from ..checkpoint.none_label import put_none_first
from ..model.ernie import ErnieConfig, ErnieEncoder, Knowledge, place_slots
from ..model.ernie_families import build_ernie
from ..model.luke import make_windows
from ..model.transfer import to_device
from ..text.tokenizer import PieceTokenizer
from ..vectors.store import EntityVectors
from .kind import EncoderKind, EncoderShim, Needs, Reading, WindowBatch, check_tokenizer, encoder_tensors, fill_encoder
from .nodes import EncoderModel, make_encoder


class Ernie(EncoderKind[ErnieEncoder, ErnieCheckpoint]):
    """Words in BERT, known entities of a knowledge graph beside them, by their vectors."""

    name = "ernie"
    title = "ERNIE"
    architecture = "spacy-luke.ErnieEncoder.v1"
    loader = "spacy-luke.ernie_checkpoint.v1"
    example = 'path = "assets/ernie/ernie_base"\nvectors = "vectors/wikidata"'
    pair_task = "pair_classification"
    components = {"entity_classification": "ernie_typer", "pair_classification": "ernie_relation"}
    has_pooler = True
    reads_knowledge = True

    def build(self, settings: dict[str, Any]) -> ErnieEncoder:
        return build_ernie(ErnieConfig.from_dict(settings["config"]))

    def load(self, shim: EncoderShim[ErnieEncoder], checkpoint: ErnieCheckpoint, needs: Needs) -> None:
        """The entity vectors are opened where they are. Raises ValueError where these are of another width than the
        model's entities."""
        tokenizer = check_tokenizer(checkpoint)
        vectors = None if checkpoint.vectors is None else EntityVectors.open(checkpoint.vectors)
        if vectors is not None and vectors.size != checkpoint.config.entity_size:
            raise ValueError(
                f"The entity vectors in {checkpoint.vectors} have {vectors.size} numbers, but the encoder's entities "
                f"{checkpoint.config.entity_size}. Give the vectors that it was trained with, or, for a plain BERT, "
                f"set entity_size = {vectors.size} in the loader of the checkpoint."
            )
        shim.create({"config": checkpoint.config.to_dict(), "source": checkpoint.source})
        fill_encoder(shim, checkpoint.tensors)
        shim.vectors = vectors
        shim.kept = {}
        shim.texts = {"tokenizer": tokenizer.to_json()}

    def to_checkpoint(self, shim: EncoderShim[ErnieEncoder], tokenizer: PieceTokenizer) -> ErnieCheckpoint:
        """The vectors stay where they are."""
        return ErnieCheckpoint(
            config=ErnieConfig.from_dict(shim.settings["config"]),
            tensors=encoder_tensors(shim),
            tokenizer=tokenizer,
            source=shim.settings["source"],
        )

    def write(self, checkpoint: ErnieCheckpoint, folder: Path) -> None:
        write_ernie(checkpoint, folder)

    def reads(self, source: Path) -> bool:
        return is_ernie(source)

    def read(self, source: Path, how: Reading) -> ErnieCheckpoint:
        if how.base is not None or how.tokenizer is not None:
            raise ValueError(f"--base and --tokenizer are of LUKE checkpoints, but {source} has an ernie_config.json.")
        checkpoint = replace(read_ernie(source, labels=how.labels, layers=how.layers), vectors=how.vectors)
        put_none_first(checkpoint)
        return checkpoint

    def word_states(self, shim: EncoderShim[ErnieEncoder], batch: WindowBatch) -> Tensor:
        device, size = shim.device, shim.module.config.entity_size
        vectors_EH = np.zeros((0, size), dtype=np.float32)
        if shim.vectors is not None and len(batch.rows_E):
            vectors_EH = shim.vectors.gather(batch.rows_E)
        windows = make_windows(batch.pieces_N, batch.lengths, batch.types_N, device=device)
        knowledge = Knowledge(torch.from_numpy(vectors_EH), torch.from_numpy(batch.at_E), batch.counts)
        knowledge = replace(knowledge, slots=place_slots(windows, knowledge, device=device))
        states_ND: Tensor = shim.module(*to_device((windows, knowledge), device))[0]
        return states_ND


@registry.architectures("spacy-luke.ErnieEncoder.v1")
def build_ernie_encoder(
    trainable: bool = True,
    train_precision: str = "auto",
    predict_precision: str = "float32",
    recompute: bool = False,
) -> EncoderModel:
    """An ERNIE encoder (Zhang et al., ACL 2019), for components that give it known entities. Its sizes, parameters,
    tokenizer and entity vectors come from a checkpoint when the pipeline is initialised
    (spacy-luke.ernie_checkpoint.v1).

    trainable: false freezes all its parameters.
    train_precision, predict_precision: "float32", "bfloat16" (autocast), or "auto": the faster one here.
    recompute: training keeps less in memory and computes each layer a second time (activation checkpointing).

    Alone it maps piece ids of windows, [CLS] and [SEP] included, to word states, without entities.
    """
    return make_encoder(
        Ernie(),
        trainable=trainable,
        train_precision=train_precision,
        predict_precision=predict_precision,
        recompute=recompute,
    )
