"""A fine-tuned checkpoint becomes a pipeline that predicts what the checkpoint's own code predicts."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.language import Language

from ..checkpoint.contents import Checkpoint, ErnieCheckpoint, LukeCheckpoint
from ..checkpoint.none_label import means_none
from ..checkpoint.sources import find_source
from ..components.cloze import CLOZE_MODEL
from ..components.ernie import CLASSIFIER as ERNIE_MODEL
from ..components.linker.component import LINKER_MODEL
from ..components.ner import NER_MODEL
from ..components.qa import QA_MODEL
from ..components.relation import RELATION_MODEL
from ..components.typer import TYPER_MODEL
from ..encoders.kind import Reading
from ..encoders.kinds import kind_of, kind_that_reads
from ..stores.plain_text import read_lines
from .saving import check_replaceable, save

_FEATURES = {3: "all", 2: "words", 1: "entity"}  # of NER heads, by their width in hidden sizes


def ner_settings(checkpoint: LukeCheckpoint) -> dict[str, Any]:
    width = checkpoint.tensors["head.classifier.weight"].shape[1] // checkpoint.config.hidden_size
    model = {**NER_MODEL, "attention": "full", "features": _FEATURES[width], "spans_per_word": None}
    return {"model": model, "max_span_pieces": 16, "max_span_words": None, **_context(checkpoint)}


def typer_settings(checkpoint: LukeCheckpoint) -> dict[str, Any]:
    chosen: dict[str, Any] = {"threshold": 0.5}
    if checkpoint.source.get("problem_type") == "single_label_classification":
        chosen = {"threshold": 1.0, "always_best": True}
        checkpoint.report.append(
            "each mention gets its most probable type alone (threshold = 1.0, always_best), as the checkpoint's "
            "problem_type is single_label_classification; probabilities are of each type by itself (sigmoid), not "
            "shares of one (softmax), so that they differ from the checkpoint's"
        )
    return {"model": _entity_model(checkpoint, TYPER_MODEL), **chosen, **_context(checkpoint)}


def relation_settings(checkpoint: LukeCheckpoint) -> dict[str, Any]:
    none = next(iter(checkpoint.labels or []))  # which `load_head` takes
    model = _entity_model(checkpoint, RELATION_MODEL)
    return {"model": model, "none": none, **_context(checkpoint)}


def qa_settings(checkpoint: LukeCheckpoint) -> dict[str, Any]:
    if checkpoint.source.get("architectures"):  # of Hugging Face's layout
        checkpoint.report.append(
            "luke_qa reads a blank before the first word of passages and questions, as the original code; where "
            "transformers' own scripts have fine-tuned this checkpoint, set nlp.get_pipe('luke_qa').as_written = True "
            "and save the pipeline again"
        )
    return {"model": {**QA_MODEL, "attention": "full"}}


def cloze_settings(checkpoint: LukeCheckpoint) -> dict[str, Any]:
    return {"model": _entity_model(checkpoint, CLOZE_MODEL)}


def linker_settings(checkpoint: LukeCheckpoint) -> dict[str, Any]:
    overlap = min(128, checkpoint.config.max_window // 2)
    return {
        "model": {**LINKER_MODEL, "attention": "full", "prior": False, "nil": False},
        "split": "simple",
        "overlap": overlap,
    }


def ernie_typer_settings(checkpoint: ErnieCheckpoint) -> dict[str, Any]:
    return {"model": _ernie_model(checkpoint), "threshold": 0.5, **_ernie_input(checkpoint)}


def ernie_relation_settings(checkpoint: ErnieCheckpoint) -> dict[str, Any]:
    first = next(iter(checkpoint.labels or [""]))
    none = first if means_none(first, task=checkpoint.task) else None
    return {"model": _ernie_model(checkpoint), "none": none, **_ernie_input(checkpoint)}


def _ernie_model(checkpoint: ErnieCheckpoint) -> dict[str, Any]:
    return {**ERNIE_MODEL, "bias": "head.classifier.bias" in checkpoint.tensors}


def _ernie_input(checkpoint: ErnieCheckpoint) -> dict[str, Any]:
    return {"context": "document", **({"knowledge": None} if checkpoint.vectors is None else {})}


def _entity_model(checkpoint: LukeCheckpoint, default: dict[str, Any]) -> dict[str, Any]:
    bias = "head.classifier.bias" in checkpoint.tensors
    return {**default, "attention": "full", "features": "entity", "bias": bias}


def _context(checkpoint: LukeCheckpoint) -> dict[str, Any]:
    # some models read short texts only
    return {"context": "document", "overlap": min(128, checkpoint.config.max_window // 2)}


_TYPES, _RELATES = (f"It {does} doc.ents: give it some, or put luke_ner before it." for does in ("types", "relates"))


class Target(NamedTuple):
    """Settings of the paper for a component, by checkpoint, and what the component asks of a Doc."""

    settings: Callable[[Any], dict[str, Any]]
    use: str


_TARGETS = {
    "luke_ner": Target(ner_settings, "It finds doc.ents."),
    "luke_typer": Target(typer_settings, _TYPES),
    "luke_relation": Target(relation_settings, _RELATES),
    "luke_qa": Target(qa_settings, "It answers doc._.luke_questions."),
    "luke_cloze": Target(
        cloze_settings, "It fills the gaps of doc._.luke_queries by doc.ents, or by their candidates."
    ),
    "luke_linker": Target(
        linker_settings,
        "It links doc.ents by their candidates in doc._.luke_candidates_given, or from the set_kb of the component.",
    ),
    "ernie_typer": Target(ernie_typer_settings, _TYPES),
    "ernie_relation": Target(ernie_relation_settings, _RELATES),
}


def build_pipeline(checkpoint: Checkpoint, *, language: str = "en", config: dict[str, Any] = {}) -> Language:  # noqa: B006
    """A pipeline that predicts what the checkpoint's own code predicts: sentence boundaries, then the task.

    config: settings of the component that differ from the paper's. Raises ValueError for a checkpoint without a head
    that this package knows, or whose labels are not known.
    """
    known = kind_of(checkpoint).components
    if checkpoint.task not in known:
        can_link = "entity_head.dense.weight" in checkpoint.tensors
        raise ValueError(
            f"Expected a checkpoint fine-tuned for one of {sorted(known)}, but this one is for {checkpoint.task!r}. "
            "To train from it, name it in [initialize.components.NAME.weights] of a training config."
            + (" To link to the entities of its table, as it was pretrained on them, give --link." if can_link else "")
        )
    matrix = checkpoint.tensors.get("head.classifier.weight")
    if matrix is not None and checkpoint.labels is None and checkpoint.task != "cloze":
        raise ValueError(
            f"The checkpoint does not say what its {len(matrix)} labels are. Give them in the order of its training: "
            "--labels a,b,c or --labels FILE, one a line."
        )
    name = known[checkpoint.task]
    nlp = spacy.blank(language)
    nlp.add_pipe("sentencizer")
    paper = _TARGETS[name].settings(checkpoint)
    if "context" in config and "context" not in paper:
        raise ValueError(f"{name} reads whole documents, so there is no context to choose; leave it out.")
    component: Any = nlp.add_pipe(name, config={**paper, **config})
    component.load_encoder(checkpoint)
    component.load_head(checkpoint)
    return nlp


def read_label_list(text: str) -> list[str]:
    """Labels between commas, or of the file with this name, one a line. Raises ValueError where there is no such
    file."""
    if os.path.isfile(text):  # Path.is_file raises where the list is longer than a file's name can be
        return [line.strip() for line in read_lines(Path(text)) if line.strip()]
    if "," not in text and os.path.splitext(text)[1]:
        raise ValueError(
            f"Expected labels between commas, or a file with one a line, but there is no file {text!r} (looked for "
            f"from {Path.cwd()})."
        )
    return [label.strip() for label in text.split(",")]


def _take_as_linker(checkpoint: Checkpoint) -> None:
    """Raises ValueError for a checkpoint without a masked-entity head."""
    if not isinstance(checkpoint, LukeCheckpoint) or "entity_head.dense.weight" not in checkpoint.tensors:
        raise ValueError(
            f"Expected a checkpoint that was pretrained on masked entities, but this one, for {checkpoint.task!r}, has "
            "no head for them. Pretrain it with `python -m spacy luke pretrain`, or leave --link out."
        )
    checkpoint.task = "entity_disambiguation"


class Converted(NamedTuple):
    """A pipeline, the checkpoint that it was made of, and what its component asks of a Doc."""

    nlp: Language
    checkpoint: Checkpoint
    use: str


def convert(
    source: str | Path,
    output: str | Path,
    *,
    language: str = "en",
    entities: str = "all",
    context: str | None = None,
    labels: str | None = None,
    base: str | Path | None = None,
    tokenizer: str | Path | None = None,
    vectors: str | Path | None = None,
    layers: int | None = None,
    link: bool = False,
) -> Converted:
    """Read a fine-tuned checkpoint and save its pipeline in the folder `output`, which is replaced as a whole.

    source, base, tokenizer: folders, archives or hub names, see `read_checkpoint`. language: of the pipeline's
    tokenizer. entities: rows of the entity table to keep, "all" or "special". context: "document" or "sentence", None:
    as in the paper. labels: of the classifier in order, a,b,c or a file with one a line, where the checkpoint has none.
    vectors: folder of entity vectors, of an ERNIE. layers: of the encoder to keep, the first ones, for training
    further. link: the checkpoint was pretrained on masked entities and not fine-tuned, and what is linked to are the
    entities of its table, as in the disambiguation papers. Raises ValueError before anything is written.
    """
    check_replaceable(output)
    found = find_source(source)
    names = None if labels is None else read_label_list(labels)
    kind = kind_that_reads(found)
    checkpoint = kind.read(found, Reading(entities, names, base, tokenizer, vectors, layers))
    if link:
        _take_as_linker(checkpoint)
    nlp = build_pipeline(checkpoint, language=language, config={} if context is None else {"context": context})
    save(nlp, output)
    return Converted(nlp, checkpoint, _TARGETS[kind.components[checkpoint.task]].use)
