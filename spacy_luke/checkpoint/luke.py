"""LUKE checkpoints: Hugging Face's layout, and that of the original code."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from torch import Tensor

from ..entities import FILES as ENTITY_FILES
from ..model.config import EncoderConfig
from .assemble import (
    NO_TOKENIZER,
    Checkpoint,
    collect,
    copy_queries,
    lacks_queries,
    read_entities,
    read_tokenizer,
    resolve_ties,
    task_shapes,
    wanted_shapes,
)
from .configs import archive_config, find_labels, find_task, luke_config, named_task
from .files import find_weights, read_json, read_tensors
from .names import SortedNames, archive_names, encoder_shapes, extra_queries, find_root, luke_names, sort_names

LUKE_ROOTS = ("luke.", "")


def read_luke(folder: Path, data: Dict[str, Any], *, entities: str, entity_aware: Optional[bool]) -> Checkpoint:
    """Hugging Face's layout; see `read_checkpoint`."""
    named_task(data)
    config = _switch(luke_config(data), entity_aware)
    raw = read_tensors(find_weights(folder))
    table = luke_names(config, root=find_root(raw, LUKE_ROOTS))
    names = sort_names(raw, table, entity_aware=config.entity_aware)
    return _build(folder, data, raw, names, config, entities=entities, kind="huggingface")


def read_archive(folder: Path, *, entities: str, entity_aware: Optional[bool]) -> Checkpoint:
    """The original code's layout; see `read_checkpoint`."""
    metadata = read_json(folder / "metadata.json")
    config = _switch(archive_config(metadata), entity_aware)
    raw = read_tensors(find_weights(folder))
    names = sort_names(raw, archive_names(config), entity_aware=config.entity_aware)
    return _build(folder, metadata, raw, names, config, entities=entities, kind="archive")


def _switch(config: EncoderConfig, entity_aware: Optional[bool]) -> EncoderConfig:
    return config if entity_aware is None else replace(config, entity_aware=entity_aware)


def _build(
    folder: Path,
    data: Dict[str, Any],
    raw: Mapping[str, Tensor],
    names: SortedNames,
    config: EncoderConfig,
    *,
    entities: str,
    kind: str,
) -> Checkpoint:
    vocab = read_entities(folder, config)
    rows = None
    if entities == "special":
        if vocab is None:
            raise ValueError(
                f"entities='special' needs the entity vocabulary ({', '.join(ENTITY_FILES)}), but {folder} has none."
            )
        rows = sorted(set(vocab.special_rows().values()))
    report = resolve_ties(raw, names, rows=rows)
    task, labels = _task_and_labels(data, raw, names, config)
    shapes = wanted_shapes(names.mapped, encoder_shapes(config), config)
    shapes.update(task_shapes(config, task, raw, names))
    copied = lacks_queries(names, config)
    if copied:
        shapes = {name: shape for name, shape in shapes.items() if name not in extra_queries(config)}
    tensors = collect(raw, names, shapes, rows=rows)
    report.insert(0, f"mapped {len(tensors)} tensors")
    if copied:
        copy_queries(tensors, config)
        report.append("initialised w2e_query, e2w_query and e2e_query of each layer: copies of query")
    if rows is not None and vocab is not None:
        report.append(f"kept {len(rows)} of {config.entity_vocab_size} rows of the entity table: the special entities")
        vocab = vocab.restricted(rows)
        config = replace(config, entity_vocab_size=len(rows))
    tokenizer = read_tokenizer(folder, vocab_size=config.vocab_size)
    if tokenizer is None:
        report.append(NO_TOKENIZER)
    return Checkpoint(config, tensors, tokenizer, vocab, labels, task, {**data, "kind": kind}, report)


def _task_and_labels(
    data: Dict[str, Any], raw: Mapping[str, Tensor], names: SortedNames, config: EncoderConfig
) -> Tuple[str, Optional[List[str]]]:
    heads = {}
    for name in ("lm_head.bias", "entity_head.bias", "head.qa_outputs.weight", "head.classifier.weight"):
        if name in names.mapped:
            tensor = raw[names.mapped[name]]
            heads[name.rsplit(".", 1)[0].removeprefix("head.")] = tensor.shape[-1] if tensor.dim() else 0
    task = find_task(data, heads, hidden_size=config.hidden_size)
    if "classifier" not in heads:
        return task, None
    return task, find_labels(data, raw[names.mapped["head.classifier.weight"]].shape[0])
