"""Whole checkpoints: read from the layouts of others, checked to the last tensor, and written for transformers."""

from pathlib import Path
from typing import Optional, Union

from ..text.tokenizer import PieceTokenizer
from .assemble import NO_TOKENIZER, Checkpoint
from .configs import PLAIN_TYPES
from .export import write_huggingface
from .files import open_archive, read_json
from .luke import read_archive, read_luke
from .plain import add_markers, read_plain

__all__ = ["Checkpoint", "read_checkpoint", "write_huggingface"]


def read_checkpoint(
    source: Union[str, Path],
    *,
    entities: str = "all",
    tokenizer: Union[str, Path, None] = None,
    entity_aware: Optional[bool] = None,
    entity_size: int = 256,
    entity_start: str = "fresh",
    seed: int = 0,
) -> Checkpoint:
    """Read a checkpoint.

    source: a folder in the Hugging Face layout of LUKE, mLUKE or luke-japanese; a folder or tar archive in the layout
        of the original code (metadata.json); or a folder of a plain RoBERTa, XLM-R or BERT, whose entity parameters are
        then initialised.
    entities: "all" rows of the entity table, or only the "special" ones ([PAD], [UNK], [MASK], [MASK2]), renumbered,
        as in the published lite checkpoints; other rows are then not read.
    tokenizer: folder with the tokenizer's files, for a source without any, as the original archives are; the word
        markers <ent> and <ent2> are added where it lacks them.
    entity_aware: attention with four query matrices; None leaves it to the config, and means yes where the config does
        not say. Where the extra queries are missing they are copied from the ordinary one.
    entity_start, entity_size, seed: for plain models only. "fresh" entity parameters, as in the paper, with the width
        of their table and their seed; or, for small data, copies of the "words" parameters.

    Raises ValueError where a file is damaged, or a tensor is missing, unknown, of a wrong shape, or not finite.
    """
    if entities not in ("all", "special"):
        raise ValueError(f"entities must be 'all' or 'special', but it is {entities!r}.")
    if entity_start not in ("fresh", "words"):
        raise ValueError(f"entity_start must be 'fresh' or 'words', but it is {entity_start!r}.")
    path = Path(source)
    if path.is_file():
        with open_archive(path) as folder:
            checkpoint = read_checkpoint(
                folder,
                entities=entities,
                tokenizer=tokenizer,
                entity_aware=entity_aware,
                entity_size=entity_size,
                entity_start=entity_start,
                seed=seed,
            )
        return checkpoint
    if not path.is_dir():
        raise ValueError(f"Expected a checkpoint (a folder or a tar archive) at {path}, but there is nothing.")
    if (path / "metadata.json").is_file():
        checkpoint = read_archive(path, entities=entities, entity_aware=entity_aware)
    elif (path / "config.json").is_file():
        data = read_json(path / "config.json")
        kind = data.get("model_type")
        if kind == "luke":
            checkpoint = read_luke(path, data, entities=entities, entity_aware=entity_aware)
        elif kind in PLAIN_TYPES:
            checkpoint = read_plain(
                path,
                data,
                entity_size=entity_size,
                entity_start=entity_start,
                entity_aware=entity_aware is not False,
                seed=seed,
            )
        else:
            raise ValueError(
                f"{path / 'config.json'} has the model_type {kind!r}; expected 'luke' or one of {list(PLAIN_TYPES)}."
            )
    else:
        there = sorted(file.name for file in path.iterdir())
        raise ValueError(f"{path} must hold config.json or, from the original code, metadata.json; it holds {there}.")
    if tokenizer is not None:
        if checkpoint.tokenizer is not None:
            raise ValueError(f"{path} has a tokenizer of its own; leave `tokenizer` out.")
        checkpoint.tokenizer = PieceTokenizer.from_folder(Path(tokenizer))
        checkpoint.report = [line for line in checkpoint.report if line != NO_TOKENIZER]
        add_markers(checkpoint)
    return checkpoint
