"""Checkpoints of the original code: its archives, and what its fine-tuning saves (examples/legacy/*/main.py).

Fine-tuning saves weights alone. Before it, each task appends rows to the word table, for pieces of its own, and cuts
the entity table down to the special entities that it uses; neither is written anywhere, so both are known here.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from ..entity_vocab import EntityVocab
from ..model.config import LukeConfig
from ..stores.plain_text import read_lines
from .assemble import read_entities, read_tokenizer
from .configs import archive_config, check_labels, luke_config
from .contents import LukeCheckpoint
from .files import find_weights, read_model_config, read_tensors
from .luke import build_checkpoint, switch_queries
from .names import ENTITY_TABLE, WORD_TABLE, SortedNames, archive_names, sort_names

# Our name and theirs of the last rows of the word table. They begin as "@"; "@", "#"; "@", "#", "*".
ADDED_PIECES = {
    "entity_classification": (("<ent>", "[ENTITY]"),),
    "entity_pair_classification": (("<ent>", "[HEAD]"), ("<ent2>", "[TAIL]")),
    "cloze": (("[HIGHLIGHT]", "[HIGHLIGHT]"), ("[PLACEHOLDER]", "[PLACEHOLDER]"), ("<ent>", "[ENTITY]")),
}
# Entities of the tables that were cut down; question answering keeps the whole table.
_KEPT_ENTITIES = {
    "entity_classification": ("[PAD]", "[MASK]"),
    "entity_pair_classification": ("[PAD]", "[MASK]", "[MASK2]"),
    "span_classification": ("[PAD]", "[MASK]"),
    "cloze": ("[PAD]", "[MASK]"),
}
_OWN_NAMES = {"typing": ("entity_classification", 1), "scorer": ("cloze", 2)}  # heads, their task and width
_NER_LABELS = ["NIL", "MISC", "PER", "ORG", "LOC"]  # the only ones that the original NER code has
_LABEL_FILE = "labels.txt"


def read_original(
    folder: Path,
    *,
    weights: Path | None = None,
    base: Path | None = None,
    entities: str,
    entity_aware: bool | None,
    vocab: EntityVocab | None,
) -> LukeCheckpoint:
    """The original code's layout; see `read_checkpoint`.

    weights: the file with them, where it is not one of the usual names. base: folder with metadata.json (or, in Hugging
    Face's layout, config.json), entity vocabulary and tokenizer, for what `folder` lacks of these. vocab: of entities,
    where neither has one.
    """
    source, config = _settings([folder] if base is None else [folder, base])
    config = switch_queries(config, entity_aware)
    raw = read_tensors(weights or find_weights(folder))
    names = sort_names(raw, archive_names(config), entity_aware=config.entity_aware)
    task, width = _task(raw, names, config)
    places = [folder] if base is None else [folder, base]
    vocab = next((x for x in map(read_entities, places) if x is not None), vocab)
    tokenizer = next((x for x in map(read_tokenizer, places) if x is not None), None)
    if width is not None or task == "question_answering":
        config = replace(config, vocab_size=_word_rows(raw, names, config, task, known=tokenizer is not None))
    config, vocab, cut = _entity_rows(raw, names, config, task, vocab)
    checkpoint = build_checkpoint(
        raw,
        names,
        config,
        task=task,
        labels=_labels(folder, raw, names, task),
        vocab=vocab,
        tokenizer=tokenizer,
        source=source,
        entities=entities,
        width=width,
    )
    if cut:
        checkpoint.report.append(f"read the rows of the entity table as {', '.join(_KEPT_ENTITIES[task])}")
    return checkpoint


def _settings(places: list[Path]) -> tuple[dict[str, Any], LukeConfig]:
    for folder in places:
        if (folder / "metadata.json").is_file():
            metadata = read_model_config(folder / "metadata.json")
            return {**metadata, "kind": "archive"}, archive_config(metadata)
    data = read_model_config(places[-1] / "config.json") if (places[-1] / "config.json").is_file() else {}
    if data.get("model_type") != "luke":
        raise ValueError(
            f"Expected metadata.json, from the original code, in {' or '.join(map(str, places))}, or a base model in "
            "Hugging Face's LUKE layout, but there is neither. Fine-tuning saves weights only: give the archive or "
            "folder of the model that it began with as base."
        )
    source = {**data, "kind": "huggingface", "architectures": None}
    # The original always fine-tunes with entity-aware attention.
    return source, replace(luke_config(data), entity_aware=True)


def _task(raw: Mapping[str, Tensor], names: SortedNames, config: LukeConfig) -> tuple[str, int | None]:
    """The task, and its classifier's width in hidden sizes."""
    if "head.qa_outputs.weight" in names.mapped:
        return "question_answering", None
    theirs = names.mapped.get("head.classifier.weight")
    if theirs is None:
        heads = ("lm_head.bias", "entity_head.bias")
        return ("masked_lm" if any(name in names.mapped for name in heads) else "encoder"), None
    columns, bias = raw[theirs].shape[-1] if raw[theirs].dim() else 0, "head.classifier.bias" in names.mapped
    head = theirs.partition(".")[0]
    if head in _OWN_NAMES and bias:
        return _OWN_NAMES[head]
    if columns == 2 * config.hidden_size and not bias and head == "classifier":
        return "entity_pair_classification", 2
    if bias and columns in (config.hidden_size, 2 * config.hidden_size, 3 * config.hidden_size):
        return "span_classification", columns // config.hidden_size
    raise ValueError(
        f"The checkpoint's {theirs} has {columns} columns and {'a' if bias else 'no'} bias, and the hidden size is "
        f"{config.hidden_size}. Of the original's heads, that of relations has two hidden sizes and no bias, that of "
        "NER one, two or three and a bias, and those of typing (typing.*) and ReCoRD (scorer.*) have a bias."
    )


def _word_rows(raw: Mapping[str, Tensor], names: SortedNames, config: LukeConfig, task: str, *, known: bool) -> int:
    """Rows of the word table, which fine-tuning has made longer. known: a tokenizer will say what they are."""
    theirs = names.mapped.get(WORD_TABLE)
    if theirs is None or not raw[theirs].dim():
        return config.vocab_size  # refused later, as missing or of a wrong shape
    rows, added = raw[theirs].shape[0], len(ADDED_PIECES.get(task, ()))
    return rows if known or rows == config.vocab_size + added else config.vocab_size


def _entity_rows(
    raw: Mapping[str, Tensor],
    names: SortedNames,
    config: LukeConfig,
    task: str,
    vocab: EntityVocab | None,
) -> tuple[LukeConfig, EntityVocab | None, bool]:
    """Sizes and vocabulary of the entity table, and whether it was cut down by fine-tuning."""
    theirs = names.mapped.get(ENTITY_TABLE)
    rows = raw[theirs].shape[0] if theirs is not None and raw[theirs].dim() else 0
    kept = _KEPT_ENTITIES.get(task, ())
    whole = vocab is not None and len(vocab) == rows and set(kept) <= set(vocab.special_rows())
    if kept and rows == len(kept) and not whole:
        vocab = EntityVocab((name, row) for row, name in enumerate(kept))
        return replace(config, entity_vocab_size=rows), vocab, True
    if vocab is not None and len(vocab) > config.entity_vocab_size:
        raise ValueError(
            f"The entity vocabulary has {len(vocab)} rows, but by its config the entity table only has "
            f"{config.entity_vocab_size}. Check that the vocabulary belongs to these weights."
        )
    return config, vocab, False


def _labels(folder: Path, raw: Mapping[str, Tensor], names: SortedNames, task: str) -> list[str] | None:
    """From a file beside the weights, one a line; of NER the original's; otherwise not known."""
    if task == "cloze" or "head.classifier.weight" not in names.mapped:
        return None
    count = raw[names.mapped["head.classifier.weight"]].shape[0]
    if (folder / _LABEL_FILE).is_file():
        return check_labels(read_lines(folder / _LABEL_FILE), count)
    if task == "span_classification" and count == len(_NER_LABELS):
        return list(_NER_LABELS)
    return None
