"""Checkpoints of further families with their entities: the family's own folder, with LUKE's tensors and settings too.

transformers' class of the family reads the words, and leaves out what it does not know; `read_checkpoint` reads all.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..entity_vocab import EntityVocab
from ..model.config import LukeConfig
from ..text.export import write_backend
from ..text.tokenizer import PieceTokenizer
from .configs import ARCHITECTURES, flag, size_of
from .contents import LukeCheckpoint
from .families import PLAIN, family_of
from .files import find_weights, read_declared, read_tensors
from .luke import read_contents
from .names import ENTITY_HEAD, TASK_HEADS, expand, find_root, sort_names

_TASK = "luke_task"  # key of config.json that LUKE's own has no need of: there the class says it


def has_entities(data: dict[str, Any]) -> bool:
    """Whether a config.json of a plain family is of a checkpoint with entities."""
    return "entity_vocab_size" in data


def family_names(config: LukeConfig, *, root: str = "") -> dict[str, str]:
    """Every name that such a checkpoint may have, theirs -> ours."""
    family = family_of(config.family)
    layers = range(config.num_layers)
    own = expand(family.own_names(config), layers=layers, root=root)
    return {**family.known_names(config, root=root), **own, **expand(ENTITY_HEAD + TASK_HEADS, layers=layers)}


def describe_family(checkpoint: LukeCheckpoint, labels: list[str] | None) -> dict[str, Any]:
    """A config.json: what the words came with, and what became of them. Raises ValueError where they came from another
    family's folder."""
    config, source = checkpoint.config, dict(checkpoint.source)
    source.pop("kind", None)
    if source.get("model_type") != config.family:
        raise ValueError(
            f"An encoder of the family {config.family!r} is written with the config.json that it came with, but this "
            f"one came with the model_type {source.get('model_type')!r}. Keep it as a pipeline of spaCy (nlp.to_disk)."
        )
    data = {
        **source,
        "vocab_size": config.vocab_size,
        family_of(config.family).layers_key: config.num_layers,
        "entity_vocab_size": config.entity_vocab_size,
        "entity_emb_size": config.entity_size,
        "use_entity_aware_attention": config.entity_aware,
        _TASK: checkpoint.task,
    }
    for key in ("mention_start", "case_feature"):
        data[key] = getattr(config, key)
    if isinstance(data.get("layer_types"), list):
        data["layer_types"] = data["layer_types"][: config.num_layers]
    if labels is not None:
        data["id2label"] = {str(i): label for i, label in enumerate(labels)}
        data["label2id"] = {label: i for i, label in enumerate(labels)}
    return dict(sorted(data.items()))


def write_tokenizer(tokenizer: PieceTokenizer, folder: Path) -> None:
    """tokenizer.json and tokenizer_config.json, which AutoTokenizer of transformers reads for any family. Raises
    ValueError where a part of the normalisation is not the backend's own, as of a tokenizer that was read from
    spm.model."""
    if tokenizer.charsmap is not None:
        raise ValueError(
            "The tokenizer was read from a SentencePiece file, whose normalisation tokenizer.json does not hold. Begin "
            "with a folder that has tokenizer.json, or keep the pipeline (nlp.to_disk)."
        )
    write_backend(tokenizer.backend, folder, special=tokenizer.special, doubled=tokenizer.doubles_sep)


def read_family(
    folder: Path, data: dict[str, Any], *, entities: str, entity_aware: bool | None, vocab: EntityVocab | None
) -> LukeCheckpoint:
    """What `write_huggingface` wrote of a further family; see `read_checkpoint`."""
    family = PLAIN[data["model_type"]]
    config = family.config(
        data,
        entity_vocab_size=size_of(data, "entity_vocab_size"),
        entity_size=size_of(data, "entity_emb_size"),
        entity_aware=flag(data, "use_entity_aware_attention", True) if entity_aware is None else entity_aware,
    )
    config = replace(
        config,
        mention_start=flag(data, "mention_start", False),
        case_feature=flag(data, "case_feature", False),
    )
    raw = family.rewrite(read_tensors(find_weights(folder)))
    root = find_root(raw, family.roots, word=family.names[0][0])
    names = sort_names(
        raw, family_names(config, root=root), entity_aware=config.entity_aware, dropped=family.dropped, tied=family.tied
    )
    named = data.get(_TASK)
    classes = [ARCHITECTURES[named]] if isinstance(named, str) and named in ARCHITECTURES else []
    source = {**data, **read_declared(folder), "kind": "plain"}
    said = {**data, "architectures": classes}
    shapes = family.shapes(config)
    return read_contents(folder, raw, names, config, said, source=source, entities=entities, vocab=vocab, shapes=shapes)
