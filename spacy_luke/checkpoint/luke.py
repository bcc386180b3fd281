"""LUKE checkpoints in Hugging Face's layout, and what all kinds of LUKE checkpoints share."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from ..entity_vocab import EntityVocab
from ..model.config import LukeConfig
from ..text.tokenizer import PieceTokenizer
from .assemble import (
    NO_TOKENIZER,
    collect_tensors,
    copy_queries,
    lacks_queries,
    read_entities,
    read_tokenizer,
    resolve_ties,
    task_shapes,
    wanted_shapes,
)
from .configs import find_labels, find_task, luke_config, named_task
from .contents import LukeCheckpoint
from .files import find_weights, read_tensors
from .names import ENTITY_TABLE, SortedNames, encoder_shapes, extra_queries, find_root, luke_names, sort_names

_LUKE_ROOTS = ("luke.", "")

_HEADS = ("lm_head.bias", "entity_head.bias", "head.qa_outputs.weight", "head.classifier.weight")


def read_luke(
    folder: Path, data: dict[str, Any], *, entities: str, entity_aware: bool | None, vocab: EntityVocab | None
) -> LukeCheckpoint:
    """Hugging Face's layout; see `read_checkpoint`. The original's entity disambiguation has it too, with BERT's
    words."""
    config = switch_queries(luke_config(data), entity_aware)
    disambiguation = named_task(data) == "entity_disambiguation"
    if disambiguation:
        config = replace(config, position_offset=0)
    raw = read_tensors(find_weights(folder))
    theirs = luke_names(config, root=find_root(raw, _LUKE_ROOTS), disambiguation=disambiguation)
    names = sort_names(raw, theirs, entity_aware=config.entity_aware)
    source = {**data, "kind": "huggingface"}
    checkpoint = read_contents(folder, raw, names, config, data, source=source, entities=entities, vocab=vocab)
    if "entity_mask" in checkpoint.tensors:
        _move_mask(checkpoint)
    return checkpoint


def _move_mask(checkpoint: LukeCheckpoint) -> None:
    """Put the parameter that stands for [MASK] into the table's row, which the original never reads."""
    vector = checkpoint.tensors.pop("entity_mask")
    if checkpoint.entities is None:
        raise ValueError("The checkpoint has a mask_embedding, but no entity vocabulary that names the row of [MASK].")
    checkpoint.tensors[ENTITY_TABLE][checkpoint.entities.mask_row] = vector
    checkpoint.report.append("moved mask_embedding to the row of [MASK]")


def switch_queries(config: LukeConfig, entity_aware: bool | None) -> LukeConfig:
    return config if entity_aware is None else replace(config, entity_aware=entity_aware)


def read_contents(
    folder: Path,
    raw: Mapping[str, Tensor],
    names: SortedNames,
    config: LukeConfig,
    data: dict[str, Any],
    *,
    source: dict[str, Any],
    entities: str,
    vocab: EntityVocab | None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> LukeCheckpoint:
    """`build_checkpoint` of a folder: its vocabularies, and the task and labels of `data`, its config.json. vocab: of
    entities, where the folder has none."""
    heads = find_heads(raw, names)
    task = find_task(data, heads, hidden_size=config.hidden_size)
    labels = None
    if "classifier" in heads and task != "cloze":
        labels = find_labels(data, raw[names.mapped["head.classifier.weight"]].shape[0])
    return build_checkpoint(
        raw,
        names,
        config,
        task=task,
        labels=labels,
        vocab=read_entities(folder, rows=config.entity_vocab_size, given=vocab),
        tokenizer=read_tokenizer(folder, rows=config.vocab_size),
        source=source,
        entities=entities,
        shapes=shapes,
    )


def find_heads(raw: Mapping[str, Tensor], names: SortedNames) -> dict[str, int]:
    """The heads of tasks and of pretraining that a checkpoint has -> columns of their matrices (`find_task`)."""
    heads = {}
    for name in _HEADS:
        if name in names.mapped:
            tensor = raw[names.mapped[name]]
            heads[name.rsplit(".", 1)[0].removeprefix("head.")] = tensor.shape[-1] if tensor.dim() else 0
    return heads


def build_checkpoint(
    raw: Mapping[str, Tensor],
    names: SortedNames,
    config: LukeConfig,
    *,
    task: str,
    labels: list[str] | None,
    vocab: EntityVocab | None,
    tokenizer: PieceTokenizer | None,
    source: dict[str, Any],
    entities: str,
    width: int | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> LukeCheckpoint:
    """Check and copy the tensors of a LUKE checkpoint whose config, task and vocabularies are known.

    entities: "all" rows of the entity table, or the "special" ones, renumbered. width: of the classifier's features, in
    hidden sizes; None where the task has only one. shapes: of the encoder's tensors; None: of LUKE's own.
    """
    rows = None
    if entities == "special":
        if vocab is None:
            raise ValueError(
                "entities='special' needs the entity vocabulary (entity_vocab.json), but there is none. Give a folder "
                "that has it and the tokenizer, as the model that this one was made from (tokenizer, --tokenizer)."
            )
        rows = sorted(set(vocab.special_rows().values()))
    report = resolve_ties(raw, names, rows=rows)
    wanted = wanted_shapes(names.mapped, encoder_shapes(config) if shapes is None else shapes, config)
    wanted.update(task_shapes(config, task, raw, names, width=width))
    copied = lacks_queries(names, config)
    if copied:
        wanted = {name: shape for name, shape in wanted.items() if name not in extra_queries(config)}
    tensors = collect_tensors(raw, names, wanted, rows=rows)
    report.insert(0, f"mapped {len(tensors)} tensors")
    if copied:
        copy_queries(tensors, config)
        report.append("initialised w2e_query, e2w_query and e2e_query of each layer: copies of query")
    if rows is not None and vocab is not None and len(rows) < config.entity_vocab_size:
        report.append(f"kept {len(rows)} of {config.entity_vocab_size} rows of the entity table: the special entities")
        vocab = vocab.restricted(rows)
        config = replace(config, entity_vocab_size=len(rows))
    if tokenizer is None:
        report.append(NO_TOKENIZER)
    return LukeCheckpoint(
        config,
        tensors,
        tokenizer=tokenizer,
        entities=vocab,
        labels=labels,
        task=task,
        source=source,
        report=report,
    )
