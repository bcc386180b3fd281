"""ERNIE checkpoints (thunlp/ERNIE): read from the original's layout or begun from a plain BERT, checked to the last
tensor, and written in the original's layout."""

import json
import tarfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..model.config import TransformerConfig
from ..model.ernie import WORD_FAMILIES, ErnieConfig, default_layer_kinds
from ..text.tokenizer import PieceTokenizer
from .assemble import NO_TOKENIZER, collect_tensors, fresh_tensors, read_tokenizer, resolve_ties
from .configs import check_labels, ernie_config, find_labels, original_ernie_config, size_of
from .contents import ErnieCheckpoint
from .ernie_names import (
    DECODER,
    Shapes,
    ernie_names,
    ernie_shapes,
    plain_names,
    pretraining_shapes,
    their_names,
)
from .families import PLAIN
from .files import (
    check_finite,
    find_weights,
    members_of,
    open_archive,
    read_declared,
    read_model_config,
    read_tensors,
    write_folder_atomically,
)
from .layers import check_layers, keep_layers
from .names import PLAIN_DROPPED, WORD_TABLE, find_root, sort_names

CONFIG = "ernie_config.json"
_TOKENIZER_CONFIG = "tokenizer_config.json"
_ROOTS = ("bert.", "")
# The original's tokenizer is BERT's, but leaves Chinese characters together.
_TOKENIZER_DEFAULTS = {"do_lower_case": True, "tokenize_chinese_chars": False}
_TASKS = ("encoder", "pretraining", "entity_classification", "pair_classification", "question_answering")


def read_ernie(
    source: str | Path,
    *,
    layer_kinds: Sequence[str] | None = None,
    entity_size: int = 100,
    entity_heads: int = 4,
    labels: Sequence[str] | None = None,
    seed: int = 0,
    layers: int | None = None,
    pooler: str = "checkpoint",
) -> ErnieCheckpoint:
    """Read a checkpoint.

    source: a folder or tar archive in the layout of the original's ernie_base (ernie_config.json, vocab.txt,
        pytorch_model.bin; old names of LayerNorm, names with and without "bert.", any of its heads); or of a plain BERT
        (config.json with model_type "bert"; or "mpnet", or "electra"), whose entity parameters are then fresh.
    layer_kinds: of a plain BERT; None: the released ones for 12 layers, and as near for other depths. Of an ERNIE only
        where its config has no layer_types.
    entity_size, entity_heads: width of entity vectors, and heads of their attention, where the config does not say. The
        original fixes 100 and 4.
    labels: of the classifier, in order. The original sorts relations, and numbers types as its scripts list them.
    pooler: "checkpoint", or "fresh" parameters, for encoders whose own ones say little: MiniLM's are near zero.
    seed: of fresh parameters: matrices are normal of deviation initializer_range, biases 0, LayerNorms 1 and 0.
    layers: so many layers are kept, the first ones; None: all. Of a BERT, the kinds are those of this depth.

    Raises ValueError where a file is damaged, or a tensor is missing, unknown, of a wrong shape, or not finite.
    """
    check_layers(layers)
    if pooler not in ("checkpoint", "fresh"):
        raise ValueError(f"pooler must be one of ('checkpoint', 'fresh'), but it is {pooler!r}.")
    with ExitStack() as stack:
        folder = _open(Path(source), stack)
        if (folder / CONFIG).is_file():
            checkpoint = _read_original(folder, layer_kinds=layer_kinds, size=entity_size, heads=entity_heads)
        else:
            checkpoint = _read_bert(
                folder, layer_kinds=layer_kinds, size=entity_size, heads=entity_heads, seed=seed, layers=layers
            )
    if checkpoint.tokenizer is None:
        checkpoint.report.append(NO_TOKENIZER)
    if pooler == "fresh":
        shapes = {n: tuple(x.shape) for n, x in checkpoint.tensors.items() if n.startswith("encoder.pooler.")}
        std, dtype = checkpoint.config.initializer_range, checkpoint.tensors["encoder.pooler.weight"].dtype
        checkpoint.tensors.update(fresh_tensors(shapes, std=std, dtype=dtype, seed=seed))
        checkpoint.report.append(f"initialised the pooler anew: fresh, seed {seed}")
    matrix = checkpoint.tensors.get("head.classifier.weight")
    if labels is not None:
        if matrix is None:
            raise ValueError(f"Labels are given, but {source} has no classifier (task {checkpoint.task!r}).")
        checkpoint.labels = check_labels(labels, len(matrix))
    elif matrix is not None and checkpoint.source.get("id2label") is not None:
        checkpoint.labels = find_labels(checkpoint.source, len(matrix))
    return checkpoint if layers is None else keep_layers(checkpoint, layers)


def is_ernie(source: str | Path) -> bool:
    """Whether a folder or tar archive is in the original's layout."""
    path = Path(source)
    if path.is_file() and tarfile.is_tarfile(path):
        return any(Path(member.name).name == CONFIG for member in members_of(path))
    return (path / CONFIG).is_file()


def _open(path: Path, stack: ExitStack) -> Path:
    if path.is_dir():
        return path
    if path.is_file():
        return stack.enter_context(open_archive(path))
    raise ValueError(
        f"Expected an ERNIE or BERT checkpoint (a folder or a tar archive) at {path}, but there is nothing."
    )


def _read_original(folder: Path, *, layer_kinds: Sequence[str] | None, size: int, heads: int) -> ErnieCheckpoint:
    data = read_model_config(folder / CONFIG)
    named = data.get("layer_types", layer_kinds)
    if not isinstance(named, (list, tuple)):
        raise ValueError(
            f"{folder / CONFIG} must list the kinds of its layers in 'layer_types', but it gives {named!r}. The "
            f"released ERNIE base has {list(default_layer_kinds(12))}; give them as layer_kinds if the file has lost "
            "them."
        )
    config = ernie_config(
        data,
        layer_kinds=tuple(named),
        entity_size=size_of({"entity_size": size, **data}, "entity_size"),
        entity_heads=size_of({"entity_heads": heads, **data}, "entity_heads"),
    )
    if layer_kinds is not None and config.layer_kinds != _filled(layer_kinds, config):
        raise ValueError(
            f"{folder / CONFIG} says that the layers are {list(config.layer_kinds)}, but layer_kinds are "
            f"{list(layer_kinds)}. Leave layer_kinds out."
        )
    raw = read_tensors(find_weights(folder))
    widths = {tensor.shape[-1] for name, tensor in raw.items() if name.endswith("intermediate.dense_ent.weight")}
    if len(widths) == 1 and widths != {config.entity_size}:
        raise ValueError(
            f"The ERNIE in {folder} reads entity vectors of {max(widths)} numbers, but those that are given have "
            f"{config.entity_size}. Make vectors of that size, such as by spacy luke train-kge --size {max(widths)}."
        )
    names = sort_names(raw, ernie_names(config, root=find_root(raw, _ROOTS)), entity_aware=False)
    report = resolve_ties(raw, names)
    shapes = {**ernie_shapes(config), **_head_shapes(config, raw, names.mapped)}
    tensors = collect_tensors(raw, names, shapes)
    return ErnieCheckpoint(
        config,
        tensors,
        tokenizer=read_tokenizer(folder, rows=config.vocab_size, defaults=_TOKENIZER_DEFAULTS),
        task=_task(names.mapped),
        source={**data, "kind": "ernie"},
        report=[f"mapped {len(tensors)} tensors", *report],
    )


def _filled(kinds: Sequence[str], config: ErnieConfig) -> Sequence[str]:
    return (*kinds, *["sim"] * (config.num_layers - len(kinds)))


def _task(mapped: Mapping[str, str]) -> str:
    """By the heads that there are. mapped: ours -> theirs."""
    if "head.qa_outputs.weight" in mapped:
        return "question_answering"
    if (name := mapped.get("head.classifier.weight")) is not None:
        return "entity_classification" if name.startswith("typing.") else "pair_classification"
    return (
        "pretraining" if any(name.startswith(("lm_head", "nsp_head", "entity_head")) for name in mapped) else "encoder"
    )


def _head_shapes(config: ErnieConfig, raw: Mapping[str, Tensor], mapped: Mapping[str, str]) -> Shapes:
    """Shapes of all heads of which the file has a part. A classifier's number of labels is its number of rows; its bias
    may be absent, as in the original's typing head."""
    shapes = _pretraining_shapes(config, mapped)
    if any(name.startswith("head.qa_outputs.") for name in mapped):
        shapes.update({"head.qa_outputs.weight": (2, config.hidden_size), "head.qa_outputs.bias": (2,)})
    if any(name.startswith("head.classifier.") for name in mapped):
        matrix = mapped.get("head.classifier.weight")
        count = raw[matrix].shape[0] if matrix is not None and raw[matrix].dim() else 0
        shapes["head.classifier.weight"] = (count, config.hidden_size)
        if "head.classifier.bias" in mapped:
            shapes["head.classifier.bias"] = (count,)
    return shapes


def _pretraining_shapes(config: ErnieConfig, names: Collection[str]) -> Shapes:
    """Of the heads of pretraining of which `names` (ours) has a part."""
    transform = any(name.startswith("entity_head.norm.") for name in names) or "entity_head.dense.weight" not in names
    shapes: Shapes = {}
    for head in pretraining_shapes(config, transform=transform).values():
        if any(name in names for name in head):
            shapes.update(head)
    return shapes


def _read_bert(
    folder: Path, *, layer_kinds: Sequence[str] | None, size: int, heads: int, seed: int, layers: int | None
) -> ErnieCheckpoint:
    if not (folder / "config.json").is_file():
        there = sorted(file.name for file in folder.iterdir())
        raise ValueError(f"{folder} must hold {CONFIG} or a BERT's config.json; it holds {there}.")
    data = read_model_config(folder / "config.json")
    kind = data.get("model_type")
    if kind not in WORD_FAMILIES:
        hint = " (Baidu's ERNIE of the same name is another model.)" if data.get("model_type") == "ernie" else ""
        raise ValueError(
            f"{folder / 'config.json'} has the model_type {kind!r}; expected one of {list(WORD_FAMILIES)}, or an ERNIE "
            f"with {CONFIG}.{hint}"
        )
    shape = _plain_config(data, layer_kinds=(), size=size, heads=heads)
    depth = min(shape.num_layers, layers or shape.num_layers)
    kinds = default_layer_kinds(depth) if layer_kinds is None else tuple(layer_kinds)
    config = _plain_config(data, layer_kinds=kinds, size=size, heads=heads)
    family, roots = PLAIN[config.family], _ROOTS if kind == "bert" else PLAIN[config.family].roots
    raw = read_tensors(find_weights(folder))
    table = plain_names(config, root=find_root(raw, roots))
    dropped = PLAIN_DROPPED + family.dropped
    names = sort_names(raw, table, entity_aware=False, dropped=dropped, tied=family.tied)
    report = resolve_ties(raw, names)
    known = set(table.values())
    if not any(name.startswith("encoder.pooler.") for name in names.mapped):  # sentence encoders may lack it
        known -= {"encoder.pooler.weight", "encoder.pooler.bias"}
    fresh = {name: x for name, x in ernie_shapes(config).items() if name not in known}
    shapes = {name: x for name, x in ernie_shapes(config).items() if name not in fresh}
    tensors = collect_tensors(raw, names, {**shapes, **_pretraining_shapes(config, names.mapped)})
    report.insert(0, f"mapped {len(tensors)} tensors")
    dtype = tensors[WORD_TABLE].dtype
    tensors.update(fresh_tensors(fresh, std=config.initializer_range, dtype=dtype, seed=seed))
    if fresh:
        report.append(f"initialised {len(fresh)} tensors of layers {list(config.layer_kinds)}: fresh, seed {seed}")
        report.extend(f"initialised {name}: fresh" for name in fresh)
    return ErnieCheckpoint(
        config,
        tensors,
        tokenizer=read_tokenizer(folder, rows=config.vocab_size),
        task=_task(names.mapped),
        source={**data, **read_declared(folder), "kind": "bert"},
        report=report,
    )


def _plain_config(data: dict[str, Any], *, layer_kinds: Sequence[str], size: int, heads: int) -> ErnieConfig:
    """Of a plain encoder's config.json: its words', and the kinds of its layers."""
    if data["model_type"] == "bert":
        return ernie_config(data, layer_kinds=layer_kinds, entity_size=size, entity_heads=heads)
    words = PLAIN[data["model_type"]].config(data, entity_vocab_size=1, entity_size=1, entity_aware=False)
    return ErnieConfig(
        **{field.name: getattr(words, field.name) for field in fields(TransformerConfig)},
        family=words.family,
        embedding_size=words.embedding_width,
        layer_kinds=tuple(layer_kinds),
        entity_size=size,
        entity_heads=heads,
    )


def write_ernie(checkpoint: ErnieCheckpoint, folder: str | Path) -> None:
    """Write ernie_config.json, vocab.txt and pytorch_model.bin, as the original has them.

    Tensors are those of the checkpoint, to the bit. The original's classes read the folder where what they fix holds
    (vectors of 100 numbers, 4 heads, LayerNorm's 1e-12, the code's fusion); what differs is said in ernie_config.json,
    and `read_ernie` reads it. Tokenizer files that the original does not know are added where vocab.txt does not say
    all. A folder that holds such a checkpoint already is replaced as a whole, and stays whole if writing fails.

    Raises ValueError where the folder holds anything else, or the checkpoint is incomplete or not finite.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"Expected a folder to write to, but {folder} is a file.")
    if folder.exists() and any(folder.iterdir()) and not (folder / CONFIG).is_file():
        there = sorted(path.name for path in folder.iterdir())[:5]
        raise ValueError(
            f"{folder} would be replaced as a whole, but it holds no ERNIE (no {CONFIG}), only {there}. "
            "Choose a new or an empty folder."
        )
    if checkpoint.config.family != "bert":
        raise ValueError(
            f"The original's ERNIE has BERT's words, so it cannot express an encoder of the family "
            f"{checkpoint.config.family!r}. Keep it as a pipeline of spaCy (nlp.to_disk)."
        )
    data = original_ernie_config(checkpoint.config, labels=checkpoint.labels, source=checkpoint.source)
    tensors = _their_tensors(checkpoint)
    with write_folder_atomically(folder) as new:
        (new / CONFIG).write_text(json.dumps(data, ensure_ascii=False, indent=2) + "\n", encoding="utf8", newline="\n")
        torch.save(tensors, new / "pytorch_model.bin")
        if checkpoint.tokenizer is not None:
            _write_tokenizer(checkpoint.tokenizer, new)


def _their_tensors(checkpoint: ErnieCheckpoint) -> dict[str, Tensor]:
    """All tensors under the original's names, checked."""
    config, tensors = checkpoint.config, checkpoint.tensors
    theirs = their_names(config, task=checkpoint.task)
    shapes = {**ernie_shapes(config), **_head_shapes(config, tensors, {name: name for name in tensors})}
    if missing := [name for name in shapes if name not in tensors]:
        raise ValueError(f"The checkpoint cannot be written, as it lacks {missing}.")
    if unknown := [name for name in tensors if name not in shapes]:
        raise ValueError(f"The checkpoint cannot be written, as ERNIE has no place for {unknown}.")
    for name, tensor in tensors.items():
        if tuple(tensor.shape) != shapes[name]:
            raise ValueError(f"Tensor {name!r} must have the shape {shapes[name]}, but it has {tuple(tensor.shape)}.")
        check_finite(name, tensor)
    result = {theirs[name]: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    if "lm_head.bias" in tensors:
        result[DECODER] = result[theirs[WORD_TABLE]]  # one storage, written once
    return result


def _write_tokenizer(tokenizer: PieceTokenizer, folder: Path) -> None:
    """vocab.txt; more files only where it alone would be read as another tokenizer."""
    if tokenizer.kind != "wordpiece":
        raise ValueError(
            f"ERNIE's tokenizer is BERT's (wordpiece), so one of kind {tokenizer.kind!r} cannot be written."
        )
    tokenizer.save_huggingface(folder)
    others = [path for path in folder.iterdir() if path.suffix == ".json" and path.name != CONFIG]
    saved = {path: path.read_bytes() for path in others}
    for path in others:
        path.unlink()
    alone = PieceTokenizer.from_folder(folder, defaults=_TOKENIZER_DEFAULTS)
    if alone.special != tokenizer.special or alone.backend.to_str() != tokenizer.backend.to_str():
        for path, content in saved.items():
            path.write_bytes(content)
        # BERT's own defaults are said, as those of an ERNIE folder differ.
        settings = {
            "do_lower_case": True,
            "tokenize_chinese_chars": True,
            **read_model_config(folder / _TOKENIZER_CONFIG),
        }
        (folder / _TOKENIZER_CONFIG).write_text(
            json.dumps(settings, ensure_ascii=False, indent=2) + "\n", encoding="utf8"
        )
