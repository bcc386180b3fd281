"""Others' config.json, metadata.json and ernie_config.json <-> LukeConfig and ErnieConfig."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..model.config import LukeConfig, TransformerConfig
from ..model.ernie import ErnieConfig

# Hugging Face's classes and our names of the tasks; the last two are the original's, for which Hugging Face has none.
_TASKS = {
    "LukeModel": "encoder",
    "LukeForMaskedLM": "masked_lm",
    "LukeForEntityClassification": "entity_classification",
    "LukeForEntityPairClassification": "entity_pair_classification",
    "LukeForEntitySpanClassification": "span_classification",
    "LukeForQuestionAnswering": "question_answering",
    "LukeForTokenClassification": "token_classification",
    "LukeForSequenceClassification": "sequence_classification",
    "LukeForEntitySpanQA": "cloze",
    "LukeForEntityDisambiguation": "entity_disambiguation",
}
ARCHITECTURES = {task: name for name, task in _TASKS.items()}
# The classifier's features, in hidden sizes.
CLASSIFIER_WIDTHS = {
    "span_classification": 3,
    "entity_classification": 1,
    "entity_pair_classification": 2,
    "token_classification": 1,
    "sequence_classification": 1,
    "cloze": 2,
}
_MOST = 2**31 - 1  # of any size
_MOST_LAYERS = 10_000  # more than any file has tensors for; tables of names are made before the file is looked at
# Whether Hugging Face's class has a bias in its classifier, where the heads in the wild differ.
CLASSIFIER_BIASES = {"entity_classification": True, "entity_pair_classification": False}


def luke_config(data: dict[str, Any]) -> LukeConfig:
    """From a config.json with model_type "luke" (Hugging Face's LukeConfig, whose defaults hold)."""
    return LukeConfig(
        **common_sizes(data),
        entity_vocab_size=size_of(data, "entity_vocab_size"),
        entity_size=size_of(data, "entity_emb_size"),
        position_offset=_first_position(data),
        entity_aware=flag(data, "use_entity_aware_attention", True),
        case_feature=flag(data, "case_feature", False),
        mention_start=flag(data, "mention_start", False),
    )


def archive_config(metadata: dict[str, Any]) -> LukeConfig:
    """From an original archive's metadata.json.

    Positions count from the padding index + 1 where the words are RoBERTa's or XLM-R's, from 0 where they are BERT's.
    Entity-aware queries are on unless the metadata say otherwise: they come later than these archives, and where they
    are missing they are copied, which changes no output.
    """
    data = metadata.get("model_config")
    if not isinstance(data, dict):
        raise ValueError(f"metadata.json must hold 'model_config', but its keys are {sorted(metadata)}.")
    name = data.get("bert_model_name")
    if not isinstance(name, str):
        raise ValueError(f"metadata.json must name the word encoder in 'bert_model_name', but it holds {name!r}.")
    roberta = "roberta" in name
    return LukeConfig(
        **common_sizes(data),
        entity_vocab_size=size_of(data, "entity_vocab_size"),
        entity_size=size_of(data, "entity_emb_size" if data.get("entity_emb_size") is not None else "hidden_size"),
        position_offset=_first_position(data) if roberta else 0,
        entity_aware=flag(data, "use_entity_aware_attention", True),
    )


def plain_config(data: dict[str, Any], *, entity_vocab_size: int, entity_size: int, entity_aware: bool) -> LukeConfig:
    """From the config.json of a plain RoBERTa, XLM-R or BERT."""
    kind = data.get("model_type")
    check_positions(data)
    return LukeConfig(
        **common_sizes(data),
        entity_vocab_size=entity_vocab_size,
        entity_size=entity_size,
        position_offset=0 if kind == "bert" else _first_position(data),
        entity_aware=entity_aware,
    )


def huggingface_config(
    config: LukeConfig,
    *,
    task: str,
    labels: list[str] | None,
    source: dict[str, Any],
    bias: bool | None = None,
) -> dict[str, Any]:
    """A config.json for Hugging Face's LUKE classes.

    bias: whether the classifier has one, which the original's class for pairs reads here (Hugging Face's has none).
    What the checkpoint came from gives the keys that the encoder knows nothing of, such as special token ids. Raises
    ValueError for an encoder that those classes cannot express.
    """
    if config.position_offset < 1 and task != "entity_disambiguation":
        raise ValueError(
            "Hugging Face's LUKE counts word positions from pad_token_id + 1, so it cannot express this encoder, whose "
            "positions count from 0 as in BERT. Only encoders made from LUKE, RoBERTa or XLM-R can be exported."
        )
    data: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 2, "classifier_dropout": None, "bert_model_name": None}
    if source.get("kind") == "huggingface":
        data.update((key, value) for key, value in source.items() if key != "kind")
    data.update(
        model_type="luke",
        architectures=[ARCHITECTURES[task]],
        **_common_keys(config),
        entity_vocab_size=config.entity_vocab_size,
        entity_emb_size=config.entity_size,
        layer_norm_eps=config.norm_eps,
        use_entity_aware_attention=config.entity_aware,
        pad_token_id=max(0, config.position_offset - 1),
    )
    for name in ("case_feature", "mention_start"):  # transformers computes neither
        if getattr(config, name):
            data[name] = True
    if labels is not None:
        data["id2label"] = {str(i): label for i, label in enumerate(labels)}
        data["label2id"] = {label: i for i, label in enumerate(labels)}
    if task == "entity_pair_classification" and (bias or "classifier_bias" in data):
        data["classifier_bias"] = bool(bias)
    return dict(sorted(data.items()))


def ernie_config(
    data: dict[str, Any], *, layer_kinds: Sequence[str], entity_size: int, entity_heads: int
) -> ErnieConfig:
    """From the words' part of an ernie_config.json (thunlp/ERNIE), or the config.json of a plain BERT."""
    check_positions(data)
    return ErnieConfig(
        **common_sizes(data),
        layer_kinds=tuple(layer_kinds),
        entity_size=entity_size,
        entity_heads=entity_heads,
        fusion=data.get("fusion", "code"),
    )


def original_ernie_config(config: ErnieConfig, *, labels: list[str] | None, source: dict[str, Any]) -> dict[str, Any]:
    """An ernie_config.json. Keys that the original does not know are there only where they say what it would not
    expect."""
    if config.position_offset:
        raise ValueError(
            f"The original's ERNIE counts positions from 0, so it cannot express an encoder that counts from "
            f"{config.position_offset}."
        )
    data: dict[str, Any] = {}
    if source.get("kind") == "ernie":
        data.update((key, value) for key, value in source.items() if key != "kind")
    data.update(
        **_common_keys(config),
        layer_types=list(config.layer_kinds),
    )
    expected = {"entity_size": 100, "entity_heads": 4, "fusion": "code", "layer_norm_eps": 1e-12}
    for key, value in expected.items():
        own = getattr(config, "norm_eps" if key == "layer_norm_eps" else key)
        if own != value or key in data:
            data[key] = own
    if labels is not None:
        data["id2label"] = {str(i): label for i, label in enumerate(labels)}
    return data


def named_task(data: dict[str, Any]) -> str | None:
    """The task of the class that config.json names, None where it names none. Raises ValueError for other classes."""
    named = data.get("architectures") or []
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise ValueError(f"config.json must list names of classes in 'architectures', but it gives {_shown(named)}.")
    if unknown := [name for name in named if name not in _TASKS]:
        raise ValueError(f"config.json names the architecture {unknown[0]!r}; expected one of {sorted(_TASKS)}.")
    return _TASKS[named[0]] if named else None


def find_task(data: dict[str, Any], heads: dict[str, int], *, hidden_size: int) -> str:
    """The task, by the class that config.json names, else by the heads that there are.

    heads: "lm_head", "entity_head", "qa_outputs", "classifier" -> columns of its matrix.
    """
    task = named_task(data)
    if task in CLASSIFIER_WIDTHS or task in ("question_answering", "entity_disambiguation"):
        return str(task)
    if "qa_outputs" in heads:
        return "question_answering"
    if "classifier" in heads:
        widths = {name: width * hidden_size for name, width in CLASSIFIER_WIDTHS.items() if name != "cloze"}
        tasks = [name for name, width in widths.items() if width == heads["classifier"]]
        if task is not None or len(tasks) != 1:
            raise ValueError(
                f"The checkpoint has a classifier of width {heads['classifier']}, but config.json says "
                f"architectures={data.get('architectures')}, so its task is unknown. Name one of "
                f"{[ARCHITECTURES[name] for name in tasks or CLASSIFIER_WIDTHS]} in config.json."
            )
        return tasks[0]
    return "masked_lm" if "lm_head" in heads or "entity_head" in heads else "encoder"


def find_labels(data: dict[str, Any], count: int) -> list[str]:
    """The classifier's labels in order, from id2label; where there is none, Hugging Face's LABEL_0 and so on."""
    named = data.get("id2label")
    if named is None:
        return [f"LABEL_{i}" for i in range(count)]
    try:
        labels = {int(i): str(label) for i, label in named.items()}
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"id2label must name the label of each number, such as {{'0': 'NIL'}}, but it is {_shown(named)}. Correct "
            f"config.json."
        ) from error
    if sorted(labels) != list(range(count)) or len(set(labels.values())) != count:
        raise ValueError(
            f"The classifier has {count} rows, so id2label must name {count} different labels for 0 to {count - 1}, "
            f"but it is {_shown(named)}. Correct config.json."
        )
    return [labels[i] for i in range(count)]


def check_labels(labels: Sequence[str], count: int) -> list[str]:
    """Labels that were given for a classifier of `count` rows. Raises ValueError where they do not fit."""
    labels = list(labels)
    if len(labels) != count or len(set(labels)) != count or not all(labels):
        repeated = sorted(label for label, n in Counter(labels).items() if n > 1)
        raise ValueError(
            f"The classifier has {count} rows, so {count} different labels in the order of its training are expected, "
            f"but {len(labels)} are given: {labels[:10]}{' ...' if len(labels) > 10 else ''}"
            f"{f', of which {repeated} are repeated' if repeated else ''}."
        )
    return labels


def _common_keys(config: TransformerConfig) -> dict[str, Any]:
    """The reverse of `common_sizes`, but for the norm, which the original's ERNIE leaves out."""
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "intermediate_size": config.intermediate_size,
        "hidden_act": config.activation,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "max_position_embeddings": config.max_positions,
        "type_vocab_size": config.token_types,
        "initializer_range": config.initializer_range,
    }


def common_sizes(data: dict[str, Any]) -> dict[str, Any]:
    """What the config.json of BERT and its kin says of a TransformerConfig."""
    return {
        "vocab_size": size_of(data, "vocab_size"),
        "hidden_size": size_of(data, "hidden_size"),
        "num_layers": size_of(data, "num_hidden_layers", most=_MOST_LAYERS),
        "num_heads": size_of(data, "num_attention_heads"),
        "intermediate_size": size_of(data, "intermediate_size"),
        "max_positions": size_of(data, "max_position_embeddings"),
        "token_types": _number(data, "type_vocab_size", 2),
        "norm_eps": real_number(data, "layer_norm_eps", 1e-12, above=0, most=0.1),
        "activation": data.get("hidden_act", "gelu"),
        "dropout": real_number(data, "hidden_dropout_prob", 0.1, most=0.99),
        "attention_dropout": real_number(data, "attention_probs_dropout_prob", 0.1, most=0.99),
        "initializer_range": real_number(data, "initializer_range", 0.02, most=10),
    }


def check_positions(data: dict[str, Any]) -> None:
    if data.get("position_embedding_type", "absolute") != "absolute":
        raise ValueError(f"position_embedding_type must be 'absolute', but it is {data['position_embedding_type']!r}.")


def size_of(data: dict[str, Any], key: str, *, most: int = _MOST) -> int:
    value = data.get(key)
    if type(value) is not int or not 1 <= value <= most:
        raise ValueError(
            f"The config must give {key!r} as a whole number from 1 to {most:,}, but it gives {_shown(value)}."
        )
    return value


def _number(data: dict[str, Any], key: str, default: int) -> int:
    value = data.get(key, default)
    value = default if value is None else value
    if type(value) is not int or not 0 <= value <= _MOST:
        raise ValueError(
            f"The config must give {key!r} as a whole number up to {_MOST:,}, but it gives {_shown(value)}."
        )
    return value


def _first_position(data: dict[str, Any]) -> int:
    """The row of the first word position, of models whose positions count from pad_token_id + 1."""
    first, rows = _number(data, "pad_token_id", 1) + 1, size_of(data, "max_position_embeddings")
    if first >= rows:
        raise ValueError(
            f"The config must give 'pad_token_id' as a whole number up to {rows - 2}, since positions count from the "
            f"one behind it and 'max_position_embeddings' is {rows}, but it gives {first - 1}. Correct pad_token_id in "
            "config.json (or metadata.json): RoBERTa's is 1."
        )
    return first


def real_number(data: dict[str, Any], key: str, default: float, *, most: float, above: float | None = None) -> float:
    """A number from 0, or above `above`, to `most`."""
    value = data.get(key, default)
    inside = type(value) in (int, float) and 0 <= value <= most and (above is None or value > above)  # NaN is not
    if not inside:
        least = "from 0" if above is None else f"above {above}"
        raise ValueError(f"The config must give {key!r} as a number {least} to {most}, but it gives {_shown(value)}.")
    return float(value)


def flag(data: dict[str, Any], key: str, default: bool) -> bool:
    """True or false; not given, or null: the default."""
    value = data.get(key)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"The config must give {key!r} as true or false, but it gives {_shown(value)}.")
    return default if value is None else value


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # a whole number of too many digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 300 else f"{text[:300]} ..."
