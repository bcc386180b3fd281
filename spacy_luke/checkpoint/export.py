"""Writing a checkpoint for Hugging Face's LUKE classes."""

import json
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from .assemble import wanted_shapes
from .configs import CLASSIFIER_BIASES, find_labels, huggingface_config
from .contents import LukeCheckpoint
from .families import family_of
from .family_folders import describe_family, family_names, write_tokenizer
from .files import check_finite, save_tensors, write_folder_atomically
from .names import ENTITY_TABLE, WORD_TABLE, encoder_shapes, luke_names


def write_huggingface(checkpoint: LukeCheckpoint, folder: str | Path) -> None:
    """Write config.json, model.safetensors, the tokenizer's files and entity_vocab.json (or, for entity disambiguation,
    which has the original's layout, entity_vocab.jsonl).

    transformers' Luke* classes, of versions 4 and 5, read the folder. Tensors are those of the checkpoint, to the bit;
    a masked-word head gets a copy of the word table as its decoder, since version 5 does not tie the two, and a typing
    head without bias gets zeros. Of heads for cloze questions, which transformers does not know, it reads the encoder;
    a bias of a head for pairs is written, but transformers leaves it out. Encoders that
    count positions from 0 (BERT's) get unused rows in the position tables, since Hugging Face's LUKE counts from
    pad_token_id + 1. A folder that holds a checkpoint already is replaced as a whole, and stays whole if writing fails.

    An encoder of another family is written as that family's folder, with LUKE's entities beside it: see
    `family_folders`.

    Raises ValueError where the folder holds anything else, or the checkpoint is incomplete or not finite.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"Expected a folder to write to, but {folder} is a file.")
    if folder.exists() and any(folder.iterdir()) and not (folder / "config.json").is_file():
        there = sorted(path.name for path in folder.iterdir())[:5]
        raise ValueError(
            f"{folder} would be replaced as a whole, but it holds no checkpoint (no config.json), only {there}. "
            "Choose a new or an empty folder."
        )
    further, bert_like = checkpoint.config.family != "luke", checkpoint.config.position_offset == 0
    disambiguation = checkpoint.task == "entity_disambiguation" and not further
    if disambiguation:
        checkpoint = _take_out_mask(checkpoint)
    elif bert_like and not further:
        checkpoint = _shift_positions(checkpoint)
    if further:
        data, tensors = describe_family(checkpoint, _labels(checkpoint)), _family_tensors(checkpoint)
    else:
        has_bias = "head.classifier.bias" in checkpoint.tensors
        data = huggingface_config(
            checkpoint.config,
            task=checkpoint.task,
            labels=_labels(checkpoint),
            source=checkpoint.source,
            bias=has_bias,
        )
        tensors = _their_tensors(checkpoint)
    with write_folder_atomically(folder) as new:
        text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
        (new / "config.json").write_text(text, encoding="utf8", newline="\n")
        save_tensors(tensors, new / "model.safetensors")
        if checkpoint.tokenizer is not None:
            if further:
                write_tokenizer(checkpoint.tokenizer, new)
            else:
                checkpoint.tokenizer.save_huggingface(new)
        if checkpoint.entities is not None:
            if disambiguation:
                checkpoint.entities.save_jsonl(new)
            else:
                checkpoint.entities.save_huggingface(new)


def _labels(checkpoint: LukeCheckpoint) -> list[str] | None:
    """The classifier's labels; where they are not known, as Hugging Face names them."""
    matrix = checkpoint.tensors.get("head.classifier.weight")
    if checkpoint.labels is not None or matrix is None or checkpoint.task == "cloze":
        return checkpoint.labels
    return find_labels({}, len(matrix))


def _their_tensors(checkpoint: LukeCheckpoint) -> dict[str, Tensor]:
    """All tensors under Hugging Face's names, checked."""
    config, tensors = checkpoint.config, checkpoint.tensors
    disambiguation = checkpoint.task == "entity_disambiguation"
    names = luke_names(config, root="" if checkpoint.task == "encoder" else "luke.", disambiguation=disambiguation)
    result = _renamed(tensors, names, wanted_shapes(tensors, encoder_shapes(config), config))
    if CLASSIFIER_BIASES.get(checkpoint.task) and "head.classifier.bias" not in tensors:
        matrix = tensors["head.classifier.weight"]
        result["classifier.bias"] = torch.zeros(len(matrix), dtype=matrix.dtype)
    if "lm_head.bias" in tensors:
        # transformers 5 no longer ties the decoder to the word table, and would start it at random.
        result["lm_head.decoder.weight"] = tensors[WORD_TABLE].clone()
    return result


def _family_tensors(checkpoint: LukeCheckpoint) -> dict[str, Tensor]:
    """All tensors under the names of a further family, and of LUKE, checked."""
    config, family = checkpoint.config, family_of(checkpoint.config.family)
    shapes = wanted_shapes(checkpoint.tensors, family.shapes(config), config)
    return dict(family.restore(_renamed(checkpoint.tensors, family_names(config), shapes)))


def _renamed(
    tensors: dict[str, Tensor], names: dict[str, str], shapes: dict[str, tuple[int, ...]]
) -> dict[str, Tensor]:
    """names: theirs -> ours; shapes: by our names, of all that must be there."""
    theirs = {ours: name for name, ours in names.items()}
    if missing := [name for name in shapes if name not in tensors]:
        raise ValueError(f"The checkpoint cannot be written, as it lacks {missing}.")
    if unknown := [name for name in tensors if name not in theirs]:
        raise ValueError(f"The checkpoint cannot be written, as Hugging Face's LUKE has no place for {unknown}.")
    for name, tensor in tensors.items():
        if name in shapes and tuple(tensor.shape) != shapes[name]:
            raise ValueError(f"Tensor {name!r} must have the shape {shapes[name]}, but it has {tuple(tensor.shape)}.")
        check_finite(name, tensor)
    return {theirs[name]: tensor for name, tensor in tensors.items()}


def _take_out_mask(checkpoint: LukeCheckpoint) -> LukeCheckpoint:
    """The vector of [MASK] as a parameter of its own, as in the original's entity disambiguation."""
    if checkpoint.config.position_offset:
        raise ValueError(
            "The original's entity disambiguation counts word positions from 0, as BERT does, so it cannot express "
            f"this encoder, which counts from {checkpoint.config.position_offset}."
        )
    assert checkpoint.entities is not None
    mask = checkpoint.tensors[ENTITY_TABLE][checkpoint.entities.mask_row].clone()
    return replace(checkpoint, tensors={**checkpoint.tensors, "entity_mask": mask})


def _shift_positions(checkpoint: LukeCheckpoint) -> LukeCheckpoint:
    """The same encoder with word positions that count from the padding piece's id + 1.

    The word position table gets rows in front; the entity position table, which Hugging Face looks up from row 0 on,
    gets as many at its end. No input can reach these rows.
    """
    config, tokenizer = checkpoint.config, checkpoint.tokenizer
    shift = 1 + (tokenizer.pad_id if tokenizer is not None else 0)
    tensors = dict(checkpoint.tensors)
    words, entities = "encoder.words.position.weight", "encoder.entities.position.weight"
    unused = torch.zeros(shift, config.hidden_size, dtype=tensors[words].dtype)
    tensors[words] = torch.cat([unused, tensors[words]])
    tensors[entities] = torch.cat([tensors[entities], unused.to(tensors[entities].dtype)])
    config = replace(config, max_positions=config.max_positions + shift, position_offset=shift)
    return replace(checkpoint, config=config, tensors=tensors)
