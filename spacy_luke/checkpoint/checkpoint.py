"""Whole checkpoints: read from the layouts of others, checked to the last tensor, and written for transformers."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..text.tokenizer import PieceTokenizer
from .allennlp import is_allennlp, read_allennlp
from .assemble import NO_TOKENIZER, read_entities
from .configs import check_labels
from .contents import LukeCheckpoint
from .export import write_huggingface
from .families import PLAIN
from .family_folders import has_entities, read_family
from .files import WEIGHT_FILES, open_archive, read_model_config
from .layers import check_layers, keep_layers
from .luke import read_luke
from .none_label import put_none_first
from .original import ADDED_PIECES, read_original
from .plain import LIKE_WORDS, read_plain
from .special import add_case, add_markers, add_special_entities, name_added_rows

_ENTITY_STARTS = ("fresh", *LIKE_WORDS)

__all__ = ["read_checkpoint", "write_huggingface"]


def read_checkpoint(
    source: str | Path,
    *,
    entities: str = "all",
    tokenizer: str | Path | None = None,
    base: str | Path | None = None,
    labels: Sequence[str] | None = None,
    entity_aware: bool | None = None,
    entity_size: int = 256,
    entity_start: str = "fresh",
    seed: int = 0,
    layers: int | None = None,
    case_feature: bool = False,
) -> LukeCheckpoint:
    """Read a checkpoint.

    source: a folder in the Hugging Face layout of LUKE, mLUKE or luke-japanese; a folder or tar archive in the layout
        of the original code (metadata.json), with or without a fine-tuned head; a folder or tar archive of the authors'
        AllenNLP models; what the original fine-tuning saves, a pytorch_model.bin or a folder or archive with it; or a
        folder of a plain encoder (RoBERTa, XLM-R, BERT, MPNet: `families`), whose entity parameters are then
        initialised.
    entities: "all" rows of the entity table, or only the "special" ones ([PAD], [UNK], [MASK], [MASK2]), renumbered,
        as in the published lite checkpoints; other rows are then not read.
    tokenizer: folder with the tokenizer's files, for a source without any, as the original archives are; the word
        markers <ent> and <ent2> are added where it lacks them. The entity vocabulary is taken from there, too, where
        the source has none.
    base: folder or archive of the model that fine-tuning began with, for a source that does not hold its config,
        tokenizer and entity vocabulary: AllenNLP's, and weights alone.
    labels: of the classifier, in order, where the source does not name them; they take the place of any that it names.
        The first label of NER and relations means none; one that is known to mean it (NIL, O, none; no_relation, NA,
        Other; in any case) is moved to the front, with its part of the classifier.
    entity_aware: attention with four query matrices; None leaves it to the config, and means yes where the config does
        not say. Where the extra queries are missing they are copied from the ordinary one.
    entity_start, entity_size, seed: for plain models only. "fresh" entity parameters, as in the paper, with the width
        of their table and their seed; or, for small data, copies of the "words" parameters; or "mention": copies, and
        [MASK] entities are the mean of their mention's pieces, plus a row that begins with zeros. The last holds for
        any source: where its [MASK] has a row already, the mean is added to it.
    layers: so many of the encoder's layers are kept, the first ones; None: all.
    case_feature: words have a vector for their case, zeros to begin with; one that says so itself has its own.

    Raises ValueError where a file is damaged, or a tensor is missing, unknown, of a wrong shape, or not finite.
    """
    if entities not in ("all", "special"):
        raise ValueError(f"entities must be 'all' or 'special', but it is {entities!r}.")
    if entity_start not in _ENTITY_STARTS:
        raise ValueError(f"entity_start must be one of {_ENTITY_STARTS}, but it is {entity_start!r}.")
    check_layers(layers)
    plain = {"entity_size": entity_size, "entity_start": entity_start, "seed": seed}
    settings = {"entities": entities, "entity_aware": entity_aware}
    with ExitStack() as stack:
        folder, weights = _open(Path(source), stack)
        base_folder = None if base is None else _open(Path(base), stack)[0]
        vocab = None if tokenizer is None else read_entities(Path(tokenizer))
        checkpoint, original = _read(folder, weights, base_folder, {**settings, "vocab": vocab}, plain)
    if tokenizer is not None:
        if checkpoint.tokenizer is not None:
            raise ValueError(
                f"{source} has a tokenizer of its own; leave `tokenizer` out. An entity vocabulary that it lacks is to "
                "lie beside it."
            )
        checkpoint.tokenizer = PieceTokenizer.from_folder(Path(tokenizer))
        checkpoint.report = [line for line in checkpoint.report if line != NO_TOKENIZER]
    if original and checkpoint.tokenizer is not None:
        _complete(checkpoint)
    elif tokenizer is not None:
        add_markers(checkpoint)
    if labels is not None:
        matrix = checkpoint.tensors.get("head.classifier.weight")
        if matrix is None or checkpoint.task == "cloze":
            raise ValueError(f"Labels are given, but {source} has no classifier of labels (task {checkpoint.task!r}).")
        checkpoint.labels = check_labels(labels, len(matrix))
    put_none_first(checkpoint)
    if case_feature and not checkpoint.config.case_feature:
        add_case(checkpoint)
    if entity_start == "mention" and not checkpoint.config.mention_start:
        checkpoint.config = replace(checkpoint.config, mention_start=True)
        checkpoint.report.append("[MASK] entities begin with the mean of their mention's pieces")
    return checkpoint if layers is None else keep_layers(checkpoint, layers)


def _read(
    folder: Path, weights: Path | None, base: Path | None, settings: dict[str, Any], plain: dict[str, Any]
) -> tuple[LukeCheckpoint, bool]:
    """The checkpoint in a folder, by the files that it has, and whether it is of the original code.

    plain: settings for plain models.
    """
    has_config = weights is None and (folder / "config.json").is_file()
    if (
        weights is not None
        or (folder / "metadata.json").is_file()
        or (base and not has_config and _has_weights(folder))
    ):
        return read_original(folder, weights=weights, base=base, **settings), True
    if not has_config:
        raise ValueError(_nothing(folder))
    data = read_model_config(folder / "config.json")
    if is_allennlp(data):
        return read_allennlp(folder, data, base=base, **settings), False
    if base is not None:
        raise ValueError(
            f"{folder} has a config of its own; leave `base` out. Where it has no tokenizer, or no entity vocabulary, "
            "give the folder of the model that it was made from as `tokenizer`."
        )
    kind = data.get("model_type")
    if kind == "luke":
        return read_luke(folder, data, **settings), False
    if isinstance(kind, str) and kind in PLAIN and has_entities(data):
        return read_family(folder, data, **settings), False
    if isinstance(kind, str) and kind in PLAIN:
        aware = settings["entity_aware"] is not False
        return read_plain(folder, data, entity_aware=aware, **plain), False
    raise ValueError(
        f"{folder / 'config.json'} has the model_type {kind!r}; expected 'luke' or one of {sorted(PLAIN)}."
    )


def _open(path: Path, stack: ExitStack) -> tuple[Path, Path | None]:
    """The folder of a source, and its file of weights where that was named itself."""
    if path.is_dir():
        return path, None
    if not path.is_file():
        raise ValueError(
            f"Expected a checkpoint (a folder, a tar archive or a .bin file) at {path}, but there is nothing."
        )
    if path.suffix == ".safetensors":
        raise ValueError(
            f"{path} has weights alone. Give its folder, {path.parent}, which is expected to hold config.json, too."
        )
    if path.suffix == ".bin":
        return path.parent, path
    return stack.enter_context(open_archive(path)), None


def _has_weights(folder: Path) -> bool:
    return any((folder / name).is_file() for name in WEIGHT_FILES)


def _nothing(folder: Path) -> str:
    there = sorted(file.name for file in folder.iterdir())
    message = f"{folder} must hold config.json or, from the original code, metadata.json; it holds {there}."
    if _has_weights(folder):
        message += " If the original code has fine-tuned these weights, give the model that it began with as base."
    return message


def _complete(checkpoint: LukeCheckpoint) -> None:
    """The original's tables have no rows for markers and for some special entities; fine-tuned word tables have rows
    that no tokenizer knows."""
    assert checkpoint.tokenizer is not None
    fine_tuned = checkpoint.task not in ("encoder", "masked_lm")
    added = ADDED_PIECES.get(checkpoint.task, ())
    if added or (fine_tuned and len(checkpoint.tokenizer) > checkpoint.config.vocab_size):
        name_added_rows(checkpoint, added)
    else:
        add_markers(checkpoint)
    if checkpoint.entities is not None:
        add_special_entities(checkpoint)
