"""Folders of DeBERTa-v3 and mDeBERTa-v3 (model_type "deberta-v2", as transformers calls their code)."""

from typing import Any

from ..model.config import LukeConfig
from ..model.deberta import DebertaConfig
from .configs import common_sizes
from .names import BERT_LM_HEAD, LAYER_OUTPUTS, NameTable, Patterns
from .plain_family import PlainFamily

_NAMES: NameTable = (
    ("embeddings.word_embeddings.weight", "encoder.words.piece.weight"),
    ("embeddings.LayerNorm.{p}", "encoder.words.norm.{p}"),
    ("encoder.rel_embeddings.weight", "encoder.relative.table.weight"),
    ("encoder.LayerNorm.{p}", "encoder.relative.norm.{p}"),
    ("encoder.layer.{i}.attention.self.query_proj.{p}", "encoder.layers.{i}.attention.query.{p}"),
    ("encoder.layer.{i}.attention.self.key_proj.{p}", "encoder.layers.{i}.attention.key.{p}"),
    ("encoder.layer.{i}.attention.self.value_proj.{p}", "encoder.layers.{i}.attention.value.{p}"),
    *LAYER_OUTPUTS,
)
_ENTITIES: NameTable = (
    ("entity_embeddings.entity_embeddings.weight", "encoder.entities.table.weight"),
    ("entity_embeddings.LayerNorm.{p}", "encoder.entities.norm.{p}"),
)
_DROPPED: Patterns = (
    (r"(lm_predictions|mask_predictions)\..*", "a head of DeBERTa's pretraining"),
    (r"pooler\..*", "a pooler, which no task of entities reads"),
    (r".*embeddings\.position_embeddings\..*", "positions of pieces, which the config switches off"),
)
# What makes an encoder of this code a DeBERTa-v3: settings, what they must be, and what transformers takes where they
# are not given.
_FORM: tuple[tuple[str, Any, Any], ...] = (
    ("relative_attention", True, False),
    ("position_biased_input", False, True),
    ("share_att_key", True, False),
    ("type_vocab_size", 0, 0),
    ("conv_kernel_size", 0, 0),
)


def deberta_config(data: dict[str, Any], *, entity_vocab_size: int, entity_size: int, entity_aware: bool) -> LukeConfig:
    """Raises ValueError for other forms of the same code, such as DeBERTa-v2 with its convolution."""
    for key, wanted, usual in _FORM:
        _check(data, key, data.get(key, usual), wanted)
    kinds = data.get("pos_att_type") or []
    kinds = [x.strip() for x in kinds.lower().split("|")] if isinstance(kinds, str) else kinds
    _check(data, "pos_att_type", sorted(map(str, kinds)), ["c2p", "p2c"])
    _check(data, "norm_rel_ebd", str(data.get("norm_rel_ebd", "none")).strip().lower(), "layer_norm")
    for key in ("embedding_size", "attention_head_size"):
        size = data.get("hidden_size") if key == "embedding_size" else _head_size(data)
        _check(data, key, data.get(key, size), size)
    sizes = common_sizes({"layer_norm_eps": 1e-7, **data, "type_vocab_size": 0})
    buckets, farthest = (_whole(data, key) for key in ("position_buckets", "max_relative_positions"))
    return DebertaConfig(
        **{**sizes, "token_types": 0},
        entity_vocab_size=entity_vocab_size,
        entity_size=entity_size,
        entity_aware=entity_aware,
        position_buckets=max(buckets, 0),
        max_distance=farthest if farthest >= 1 else sizes["max_positions"],
    )


def _head_size(data: dict[str, Any]) -> Any:
    width, heads = data.get("hidden_size"), data.get("num_attention_heads")
    return width // heads if isinstance(width, int) and isinstance(heads, int) and heads > 0 else None


def _whole(data: dict[str, Any], key: str) -> int:
    value = data.get(key, -1)
    if type(value) is not int:
        raise ValueError(f"The config must give {key!r} as a whole number, but it gives {value!r}.")
    return value


def _check(data: dict[str, Any], key: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise ValueError(
            f"Of DeBERTa's encoders those of the form of DeBERTa-v3 can be read, whose {key!r} is {wanted!r}, but "
            f"config.json gives {data.get(key)!r}. Take deberta-v3-base, mdeberta-v3-base, or one made from them."
        )


DEBERTA = PlainFamily(
    roots=("deberta.", ""),
    config=deberta_config,
    names=_NAMES,
    heads=BERT_LM_HEAD,
    entities=_ENTITIES,
    sizes=lambda config: {"encoder.relative.table": (2 * config.span, config.hidden_size)},
    dropped=_DROPPED,
)
