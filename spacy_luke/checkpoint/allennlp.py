"""Models that the authors fine-tuned with AllenNLP (studio-ousia/luke, examples/*/model.py).

An archive (or serialization folder) holds the weights, the labels and the name of the base model, whose config,
tokenizer and entity vocabulary are needed beside it.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..entity_vocab import EntityVocab
from ..model.config import LukeConfig
from ..stores.plain_text import read_text
from .assemble import read_entities, read_tokenizer
from .configs import ARCHITECTURES, check_labels, flag, luke_config
from .contents import LukeCheckpoint
from .files import read_model_config, read_tensors
from .luke import build_checkpoint, switch_queries
from .names import ALLENNLP_DROPPED, allennlp_names, find_root, sort_names

_WEIGHTS = ("weights.th", "best.th")  # of an archive, of a serialization folder
_EMBEDDER = "transformers-luke"
# Registered models, our tasks, and the classifier's width in hidden sizes for each of their feature extractors.
_MODELS: dict[str, tuple[str, dict[str, int | None]]] = {
    "span_ner": ("span_classification", {"token+entity": 3, "entity": 1}),
    "entity_typing": ("entity_classification", {"entity": 1}),
    "relation_classifier": ("entity_pair_classification", {"entity": 2}),
    "transformers_qa": ("question_answering", {"embedder": None}),
}
_ROOTS = ("feature_extractor.embedder.luke_model.", "embedder.token_embedder_tokens.luke_model.")


def is_allennlp(data: dict[str, Any]) -> bool:
    """Whether a config.json is AllenNLP's."""
    return isinstance(data.get("model"), dict) and "dataset_reader" in data and "model_type" not in data


def read_allennlp(
    folder: Path,
    data: dict[str, Any],
    *,
    base: Path | None,
    entities: str,
    entity_aware: bool | None,
    vocab: EntityVocab | None,
) -> LukeCheckpoint:
    """An AllenNLP model; see `read_checkpoint`. base: folder of the base model in Hugging Face's layout;
    vocab: of entities, where that has none."""
    task, width, embedder = _model_of(data["model"])
    if base is None or not (base / "config.json").is_file():
        raise ValueError(
            f"{folder} is an AllenNLP model: it names its base model, {embedder.get('model_name')!r}, but holds "
            "neither its config nor its tokenizer. Give that model, in Hugging Face's layout, as base."
        )
    settings = read_model_config(base / "config.json")
    if settings.get("model_type") != "luke":
        raise ValueError(f"The base {base} must be a LUKE, but its model_type is {settings.get('model_type')!r}.")
    config = replace(luke_config(settings), entity_aware=flag(embedder, "use_entity_aware_attention", False))
    config = switch_queries(config, entity_aware)
    raw = read_tensors(_find_weights(folder))
    table = allennlp_names(config, root=find_root(raw, _ROOTS))
    names = sort_names(raw, table, entity_aware=config.entity_aware, dropped=ALLENNLP_DROPPED)
    checkpoint = build_checkpoint(
        raw,
        names,
        config,
        task=task,
        labels=None if width is None else _read_labels(folder, data),
        vocab=read_entities(base, rows=config.entity_vocab_size, given=vocab),
        tokenizer=read_tokenizer(base, rows=config.vocab_size),
        source=_source(settings, task, config),
        entities=entities,
        width=width,
    )
    if checkpoint.labels is not None:
        check_labels(checkpoint.labels, len(checkpoint.tensors["head.classifier.weight"]))
    return checkpoint


def _model_of(model: dict[str, Any]) -> tuple[str, int | None, dict[str, Any]]:
    """Task, width of its classifier, and settings of the embedder."""
    kind = model.get("type")
    if not isinstance(kind, str) or kind not in _MODELS:
        raise ValueError(f"The AllenNLP model is of the type {kind!r}; expected one of {sorted(_MODELS)}.")
    task, widths = _MODELS[kind]
    if kind == "transformers_qa":
        embedder = _part(model, "embedder", "token_embedders", "tokens")
        features: Any = "embedder"
    else:
        embedder = _part(model, "feature_extractor", "embedder")
        features = _part(model, "feature_extractor").get("type")
    if not isinstance(features, str) or features not in widths or embedder.get("type") != _EMBEDDER:
        raise ValueError(
            f"The AllenNLP model {kind!r} has the features {features!r} of an embedder {embedder.get('type')!r}; "
            f"expected {list(widths)} of {_EMBEDDER!r}. Models without LUKE's entities cannot be read."
        )
    return task, widths[features], embedder


def _part(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    """An object inside of objects; an empty one where it is not there."""
    for key in keys:
        found = data.get(key)
        data = found if isinstance(found, dict) else {}
    return data


def _find_weights(folder: Path) -> Path:
    for name in _WEIGHTS:
        if (folder / name).is_file():
            return folder / name
    there = sorted(path.name for path in folder.iterdir())
    raise ValueError(f"No weights in {folder}: expected one of {list(_WEIGHTS)}, but the folder holds {there}.")


def _read_labels(folder: Path, data: dict[str, Any]) -> list[str]:
    path = folder / "vocabulary" / Path(f"{data['model'].get('label_name_space', 'labels')}.txt").name
    if not path.is_file():
        raise ValueError(f"Expected the labels of an AllenNLP model in {path}, one a line, but there is no such file.")
    return read_text(path).removesuffix("\n").split("\n")


def _source(settings: dict[str, Any], task: str, config: LukeConfig) -> dict[str, Any]:
    return {
        **settings,
        "kind": "huggingface",
        "architectures": [ARCHITECTURES[task]],
        "use_entity_aware_attention": config.entity_aware,
    }
