"""An encoder with LUKE's entities from a plain one: words from there, entity parameters fresh."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..entity_vocab import SPECIAL, EntityVocab
from .assemble import (
    NO_TOKENIZER,
    collect_tensors,
    copy_queries,
    fresh_tensors,
    read_tokenizer,
    resolve_ties,
    wanted_shapes,
)
from .contents import LukeCheckpoint
from .families import PLAIN
from .files import find_weights, read_declared, read_tensors
from .names import PLAIN_DROPPED, WORD_TABLE, extra_queries, find_root, sort_names
from .special import add_markers

LIKE_WORDS = ("words", "mention")  # values of entity_start that copy parameters of the words


def read_plain(
    folder: Path,
    data: dict[str, Any],
    *,
    entity_size: int,
    entity_start: str,
    entity_aware: bool,
    seed: int,
) -> LukeCheckpoint:
    """See `read_checkpoint`.

    As in the pretraining code (luke/model.py, init_weights): matrices and tables of entities are normal with standard
    deviation initializer_range, biases are zero, LayerNorm is one and zero. The vocabulary holds the special
    entities. The extra queries are copies of `query`, <ent> of "@" and <ent2> of "#" (luke's examples).
    """
    family = PLAIN[data["model_type"]]
    config = family.config(data, entity_vocab_size=len(SPECIAL), entity_size=entity_size, entity_aware=entity_aware)
    if entity_start in LIKE_WORDS:
        config = replace(config, entity_size=config.embedding_width)
    raw = family.rewrite(read_tensors(find_weights(folder)))
    table = family.known_names(config, root=find_root(raw, family.roots, word=family.names[0][0]))
    dropped = PLAIN_DROPPED + family.dropped
    names = sort_names(raw, table, entity_aware=entity_aware, dropped=dropped, tied=family.tied)
    report = resolve_ties(raw, names)
    shapes, queries = family.shapes(config), extra_queries(config)
    fresh = {name: shape for name, shape in shapes.items() if name.startswith("encoder.entities.")}
    known = {name: shape for name, shape in shapes.items() if name not in fresh and name not in queries}
    tensors = collect_tensors(raw, names, wanted_shapes(names.mapped, known, config))
    report.insert(0, f"mapped {len(tensors)} tensors")
    copy_queries(tensors, config)
    if entity_aware:
        report.append("initialised w2e_query, e2w_query and e2e_query of each layer: copies of query")
    dtype = tensors[WORD_TABLE].dtype
    tensors.update(fresh_tensors(fresh, std=config.initializer_range, dtype=dtype, seed=seed))
    if entity_start == "fresh":
        report.append(f"initialised {sorted(fresh)}: fresh, seed {seed}")
    checkpoint = LukeCheckpoint(
        config=config,
        tensors=tensors,
        tokenizer=None,
        entities=EntityVocab((name, row) for row, name in enumerate(SPECIAL)),
        task="masked_lm" if "lm_head.bias" in tensors else "encoder",
        source={**data, **read_declared(folder), "kind": "plain"},
        report=report,
    )
    checkpoint.tokenizer = read_tokenizer(folder, rows=config.vocab_size)
    if checkpoint.tokenizer is None:
        report.append(NO_TOKENIZER)
    else:
        add_markers(checkpoint)
    if entity_start in LIKE_WORDS:
        _start_from_words(checkpoint, mask=entity_start == "words")
    return checkpoint


def _start_from_words(checkpoint: LukeCheckpoint, *, mask: bool) -> None:
    """Let entities begin as words do: the special ones as the pieces of the same use, at the words' positions.

    A [MASK] entity is then what the word model knows as a masked piece that stands at the mention's mean position, so
    that little data suffices (as PL-Marker starts its markers from known pieces). mask: false lets it be a row of
    zeros, for entities that begin with their mention's pieces.
    """
    tokenizer, tensors, config = checkpoint.tokenizer, checkpoint.tensors, checkpoint.config
    if tokenizer is None:
        raise ValueError(
            "entity_start='words' or 'mention' needs the tokenizer's files beside the weights, to find its [MASK]."
        )
    like = {"[PAD]": tokenizer.pad_id, "[UNK]": tokenizer.unk_id}
    rows = [like.get(name, tokenizer.mask_id) for name in SPECIAL]
    words, entities = "encoder.words.", "encoder.entities."
    tensors[f"{entities}table.weight"] = tensors[f"{words}piece.weight"][rows].clone()
    if not mask:
        tensors[f"{entities}table.weight"][[SPECIAL.index(name) for name in ("[MASK]", "[MASK2]")]] = 0
    for name in ("token_type.weight", "norm.weight", "norm.bias", "project.weight", "project.bias"):
        if entities + name in tensors:
            tensors[entities + name] = tensors[words + name].clone()
    if f"{entities}position.weight" in tensors:
        positions = tensors[f"{words}position.weight"]
        tensors[f"{entities}position.weight"][: config.max_window] = positions[config.position_offset :]
    of_mask = "of the piece [MASK]" if mask else "zeros"
    checkpoint.report.append(f"initialised the entity parameters: copies of the words' ([MASK] {of_mask})")
