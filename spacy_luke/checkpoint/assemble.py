"""From a file's tensors under their names to a checked, complete set under ours."""

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..entity_vocab import EntityVocab, find_entity_file
from ..model.config import LukeConfig
from ..text.tokenizer import PieceTokenizer
from .configs import CLASSIFIER_WIDTHS
from .files import check_finite
from .names import BY_ENTITY, SortedNames, extra_queries, head_shapes

Shapes = Mapping[str, tuple[int, ...]]
_TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "vocab.txt", "sentencepiece.bpe.model", "spm.model")
NO_TOKENIZER = "found no tokenizer"


def resolve_ties(raw: Mapping[str, Tensor], names: SortedNames, *, rows: list[int] | None = None) -> list[str]:
    """Check that tied tensors are equal (their rows only, where entity rows are chosen); a tied name whose other name
    is missing is mapped. Raises ValueError where they differ. RETURNS: lines for the report."""
    report = []
    for theirs, ours in sorted(names.tied.items()):
        if ours not in names.mapped:
            names.mapped[ours] = theirs
            report.append(f"mapped {theirs} to {ours}, which it is tied to")
            continue
        one, two = raw[theirs], raw[names.mapped[ours]]
        same = one.shape == two.shape and one.dtype == two.dtype
        if same and one.data_ptr() != two.data_ptr():
            if rows is not None and ours in BY_ENTITY:
                one, two = one[rows], two[rows]
            same = torch.equal(one, two)
        if not same:
            raise ValueError(
                f"{theirs!r} must equal {names.mapped[ours]!r}, as the model ties the two, but they differ (shapes "
                f"{tuple(one.shape)} and {tuple(two.shape)}). Untied decoders are not supported; remove one of the two."
            )
        report.append(f"dropped {theirs}: tied to {names.mapped[ours]}")
    report.extend(f"dropped {theirs}: {reason}" for theirs, reason in sorted(names.dropped.items()))
    return report


def wanted_shapes(names: Container[str], encoder: Shapes, config: LukeConfig) -> dict[str, tuple[int, ...]]:
    """Shapes of all that must be there: the encoder, and each head of which `names` (ours) has a part."""
    shapes = dict(encoder)
    for head in head_shapes(config).values():
        if any(name in names for name in head):
            shapes.update(head)
    if "entity_mask" in names:  # of the original's entity disambiguation
        shapes["entity_mask"] = (config.entity_size,)
    return shapes


def task_shapes(
    config: LukeConfig, task: str, raw: Mapping[str, Tensor], names: SortedNames, *, width: int | None = None
) -> dict[str, tuple[int, ...]]:
    """Shapes of the task's own head. The number of labels is the classifier's number of rows (one for cloze questions);
    its bias may be absent.

    width: of its features, in hidden sizes; None: as Hugging Face's class for the task has them.
    """
    if task == "question_answering":
        return {"head.qa_outputs.weight": (2, config.hidden_size), "head.qa_outputs.bias": (2,)}
    if task not in CLASSIFIER_WIDTHS:
        return {}
    matrix = names.mapped.get("head.classifier.weight")
    labels = raw[matrix].shape[0] if matrix is not None and raw[matrix].dim() else 0
    labels = 1 if task == "cloze" else labels
    width = CLASSIFIER_WIDTHS[task] if width is None else width
    shapes: dict[str, tuple[int, ...]] = {"head.classifier.weight": (labels, width * config.hidden_size)}
    if "head.classifier.bias" in names.mapped:
        shapes["head.classifier.bias"] = (labels,)
    return shapes


def collect_tensors(
    raw: Mapping[str, Tensor], names: SortedNames, shapes: Shapes, *, rows: list[int] | None = None
) -> dict[str, Tensor]:
    """Copies of all wanted tensors, under our names, in the order of `shapes`.

    rows: the entity rows to keep; no others are read. Raises ValueError for a tensor that is missing, of another shape,
    not finite, or that has no place among `shapes`.
    """
    if missing := [name for name in shapes if name not in names.mapped]:
        raise ValueError(f"The checkpoint lacks {len(missing)} tensors that its config asks for: {_list(missing)}.")
    if extra := [theirs for ours, theirs in names.mapped.items() if ours not in shapes]:
        raise ValueError(f"The checkpoint has tensors that its task has no place for: {_list(extra)}.")
    tensors = {}
    for ours, shape in shapes.items():
        theirs = names.mapped[ours]
        tensor = raw[theirs]
        if tuple(tensor.shape) != tuple(shape):
            raise ValueError(
                f"Tensor {theirs!r} must have the shape {tuple(shape)} by the config, but it has "
                f"{tuple(tensor.shape)}. Check that config.json belongs to these weights."
            )
        tensor = tensor[rows] if rows is not None and ours in BY_ENTITY else tensor.clone()
        check_finite(theirs, tensor)
        tensors[ours] = tensor.contiguous()
    return tensors


def copy_queries(tensors: dict[str, Tensor], config: LukeConfig) -> None:
    """Add the extra queries as copies of `query`, as the original does when fine-tuning starts (section 4)."""
    for name, query in extra_queries(config).items():
        tensors[name] = tensors[query].clone()


def lacks_queries(names: SortedNames, config: LukeConfig) -> bool:
    """Whether an entity-aware encoder's extra queries are all missing; where only some are, they are an error later."""
    queries = extra_queries(config)
    return bool(queries) and not any(name in names.mapped for name in queries)


def read_tokenizer(
    folder: Path, *, rows: int | None = None, defaults: dict[str, Any] | None = None
) -> PieceTokenizer | None:
    """The folder's tokenizer; None where it has no file of one. rows: of the word table, which its pieces must fit;
    defaults: of tokenizer_config.json."""
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        return None
    tokenizer = PieceTokenizer.from_folder(folder, defaults=defaults)
    if rows is not None and len(tokenizer) > rows:
        raise ValueError(
            f"The tokenizer in {folder} has {len(tokenizer)} pieces, but the word table only has {rows} rows. "
            "Check that the tokenizer's files belong to these weights; or take them out of the folder, and name "
            "another folder with the right ones (tokenizer, --tokenizer)."
        )
    return tokenizer


def read_entities(folder: Path, *, rows: int | None = None, given: EntityVocab | None = None) -> EntityVocab | None:
    """The folder's entity vocabulary; `given` where it has no file of one. rows: of the entity table, which it must
    fit."""
    path = find_entity_file(folder)
    vocab = given if path is None else EntityVocab.from_file(path)
    if vocab is not None and rows is not None and len(vocab) > rows:
        where = "that is given" if path is None else f"in {folder}"
        raise ValueError(
            f"The entity vocabulary {where} has {len(vocab)} rows, but the entity table only has {rows}. "
            "Check that the vocabulary belongs to these weights."
        )
    return vocab


def _list(names: list[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(repr(name) for name in names[:10]) + more


def fresh_tensors(shapes: Shapes, *, std: float, dtype: torch.dtype, seed: int) -> dict[str, Tensor]:
    """As BERT initialises them: normal matrices, biases of zero, LayerNorms of one and zero."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in shapes.items():
        if name.endswith(("bias", "norm.weight")):
            tensors[name] = torch.full(shape, float(name.endswith("weight")), dtype=dtype, device="cpu")
        else:
            fresh = torch.empty(shape, dtype=torch.float32, device="cpu")
            tensors[name] = fresh.normal_(0.0, std, generator=generator).to(dtype)
    return tensors
