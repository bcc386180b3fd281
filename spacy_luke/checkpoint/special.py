"""Rows for what a tokenizer or an entity vocabulary has and a table lacks: word markers and special entities."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..entity_vocab import SPECIAL
from ..text.cases import CASES
from .contents import LukeCheckpoint
from .names import CASE_TABLE, ENTITY_TABLE, WORD_TABLE

_MARKERS = (("<ent>", "@"), ("<ent2>", "#"))  # word markers and the pieces whose vectors they start from
CLOZE_PIECES = (("[HIGHLIGHT]", "@"), ("[PLACEHOLDER]", "#"), ("<ent>", "*"))


def add_markers(checkpoint: LukeCheckpoint) -> None:
    """Give the tokenizer the word markers that it lacks, and the word table (and the masked-word bias) their rows."""
    add_named_pieces(checkpoint, _MARKERS)


def add_cloze_pieces(checkpoint: LukeCheckpoint) -> None:
    """Give a model the pieces of cloze questions as the original code does (entity_span_qa/main.py): [HIGHLIGHT] begins
    as "@", [PLACEHOLDER] as "#" and the marker of candidates as "*". That is <ent>, which stays as it is where it is
    not the copy of "@" that it begins as. Nothing is done where the pieces are there."""
    assert checkpoint.tokenizer is not None
    if all(checkpoint.tokenizer.piece_id(name) is not None for name, _ in CLOZE_PIECES):
        return
    add_named_pieces(checkpoint, CLOZE_PIECES)
    marker, old, new = (_find(checkpoint, piece) for piece in ("<ent>", "@", "*"))
    table = checkpoint.tensors[WORD_TABLE]
    if torch.equal(table[marker], table[old]):
        checkpoint.tensors[WORD_TABLE] = table.clone()
        checkpoint.tensors[WORD_TABLE][marker] = table[new]
        checkpoint.report.append("initialised the word <ent>: a copy of *")


def add_named_pieces(checkpoint: LukeCheckpoint, pieces: Sequence[tuple[str, str]]) -> None:
    """The same for any pieces. pieces: names and the pieces that they begin as."""
    tokenizer, table = checkpoint.tokenizer, checkpoint.tensors[WORD_TABLE]
    assert tokenizer is not None
    if len(tokenizer) > len(table):
        raise ValueError(f"The tokenizer has {len(tokenizer)} pieces, but the word table only has {len(table)} rows.")
    new: list[tuple[int, int]] = []  # row of a marker, row that it starts from
    for marker, model in pieces:
        if tokenizer.piece_id(marker) is None:
            start = _start_of(checkpoint, marker, model)
            new.append((tokenizer.add_special_piece(marker), start))
    for name in (WORD_TABLE, "lm_head.bias"):
        if name in checkpoint.tensors and new:
            checkpoint.tensors[name] = _with_rows(checkpoint.tensors[name], new)
    checkpoint.config = replace(checkpoint.config, vocab_size=len(checkpoint.tensors[WORD_TABLE]))


def name_added_rows(checkpoint: LukeCheckpoint, added: Sequence[tuple[str, str]]) -> None:
    """Tell the tokenizer which pieces the last rows of the word table are, which a fine-tuning has added.

    added: our name and the original's name of each of these rows, in their order. The rows go where the tokenizer has
    pieces of these names already; other names are new pieces. A marker that was not used becomes a copy of what it
    starts from. Raises ValueError where the tokenizer and the table do not fit.
    """
    tokenizer, table = checkpoint.tokenizer, checkpoint.tensors[WORD_TABLE]
    assert tokenizer is not None
    first = len(table) - len(added)
    starts = dict(_MARKERS)
    rows: dict[str, int] = {name: first + i for i, (name, _) in enumerate(added)}
    ids = {name: tokenizer.piece_id(name) for name in {**rows, **starts}}
    there = sorted((i, name) for name, i in ids.items() if i is not None)
    plain = len(tokenizer) - len(there)
    if plain != first or [i for i, _ in there] != list(range(plain, len(tokenizer))):
        raise ValueError(
            f"The word table has {len(table)} rows, the last {len(added)} of which its fine-tuning added for "
            f"{[name for _, name in added]}; expected a tokenizer of {first} pieces, and markers after these, but it "
            f"has {plain} pieces besides the markers {[name for _, name in there]}. Give the tokenizer of the base "
            "model."
        )
    order = [name for _, name in there] + [name for name, i in ids.items() if i is None]
    vectors = [table[:first]]
    for name in order:
        number = tokenizer.add_special_piece(name)
        row = rows[name] if name in rows else _start_of(checkpoint, name, starts[name])
        vectors.append(table[row : row + 1])
        if name in rows:
            checkpoint.report.append(
                f"read row {row} of the word table, {dict(added)[name]}, as the word {name}, {number}"
            )
    checkpoint.tensors[WORD_TABLE] = torch.cat(vectors)
    checkpoint.config = replace(checkpoint.config, vocab_size=len(checkpoint.tensors[WORD_TABLE]))


def add_case(checkpoint: LukeCheckpoint) -> None:
    """Give the words vectors for their case, of zeros, so that nothing is different before they are learned."""
    table = checkpoint.tensors[WORD_TABLE]
    checkpoint.tensors[CASE_TABLE] = table.new_zeros(len(CASES), table.shape[1])
    checkpoint.config = replace(checkpoint.config, case_feature=True)
    checkpoint.report.append(f"initialised the cases of words ({', '.join(CASES)}): zeros")


def add_special_entities(checkpoint: LukeCheckpoint) -> None:
    """Give the vocabulary the special entities that it lacks, copies of [MASK], as the authors' conversion does it
    (luke/utils/convert_luke_to_huggingface_model.py); Hugging Face's tokenizers ask for all four."""
    vocab = checkpoint.entities
    assert vocab is not None
    new: list[tuple[int, int]] = []
    for name in SPECIAL:
        if name not in vocab.special_rows():
            new.append((len(vocab), vocab.mask_row))
            vocab = vocab.with_entity(name)
            checkpoint.report.append(f"initialised the entity {name}: a copy of [MASK], row {new[-1][0]}")
    checkpoint.entities = vocab
    for name in (ENTITY_TABLE, "entity_head.bias"):
        if name in checkpoint.tensors and new:
            checkpoint.tensors[name] = _with_rows(checkpoint.tensors[name], new)
    checkpoint.config = replace(checkpoint.config, entity_vocab_size=len(checkpoint.tensors[ENTITY_TABLE]))


def without_table(checkpoint: LukeCheckpoint) -> LukeCheckpoint:
    """A checkpoint whose entity table has the special entities only."""
    rows = sorted(set(checkpoint.entities.special_rows().values())) if checkpoint.entities is not None else []
    if checkpoint.entities is None or len(rows) >= checkpoint.config.entity_vocab_size:
        return checkpoint
    return replace(
        checkpoint,
        config=replace(checkpoint.config, entity_vocab_size=len(rows)),
        tensors={**checkpoint.tensors, ENTITY_TABLE: checkpoint.tensors[ENTITY_TABLE][rows].clone()},
        entities=checkpoint.entities.restricted(rows),
    )


def _start_of(checkpoint: LukeCheckpoint, marker: str, model: str) -> int:
    """Row that a fresh marker starts from: that of the piece `model`, which it looks like."""
    assert checkpoint.tokenizer is not None
    start = _find(checkpoint, model)
    origin = model if start != checkpoint.tokenizer.unk_id else "the unknown piece"
    checkpoint.report.append(f"initialised the word {marker}: a copy of {origin}")
    return start


def _find(checkpoint: LukeCheckpoint, piece: str) -> int:
    """Row of a piece, at the beginning of a word where there is only that, or of the unknown piece."""
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None
    return next((i for i in map(tokenizer.piece_id, (piece, "▁" + piece)) if i is not None), tokenizer.unk_id)


def _with_rows(table: Tensor, new: list[tuple[int, int]]) -> Tensor:
    """The table with copies of rows; tables with unused rows at the end (padded ones) do not grow."""
    size = max(len(table), 1 + max(row for row, _ in new))
    grown = torch.cat([table, table.new_zeros(size - len(table), *table.shape[1:])])
    for row, start in new:
        grown[row] = table[start]
    return grown
