"""Folders of MPNet, such as all-mpnet-base-v2 of sentence-transformers."""

from typing import Any

from ..model.config import LukeConfig
from ..model.mpnet import BUCKETS, MPNetConfig
from .configs import common_sizes
from .names import ENTITY_EMBEDDINGS, LM_HEAD, POOLER, WORDS, NameTable
from .plain_family import PlainFamily, untyped

_LAYER: NameTable = (
    ("encoder.layer.{i}.attention.attn.q.{p}", "encoder.layers.{i}.attention.query.{p}"),
    ("encoder.layer.{i}.attention.attn.k.{p}", "encoder.layers.{i}.attention.key.{p}"),
    ("encoder.layer.{i}.attention.attn.v.{p}", "encoder.layers.{i}.attention.value.{p}"),
    ("encoder.layer.{i}.attention.attn.o.{p}", "encoder.layers.{i}.attention.output.{p}"),
    ("encoder.layer.{i}.attention.LayerNorm.{p}", "encoder.layers.{i}.attention_norm.{p}"),
    ("encoder.layer.{i}.intermediate.dense.{p}", "encoder.layers.{i}.up.{p}"),
    ("encoder.layer.{i}.output.dense.{p}", "encoder.layers.{i}.down.{p}"),
    ("encoder.layer.{i}.output.LayerNorm.{p}", "encoder.layers.{i}.output_norm.{p}"),
)
_RELATIVE: NameTable = (("encoder.relative_attention_bias.weight", "encoder.relative.weight"),)


def mpnet_config(data: dict[str, Any], *, entity_vocab_size: int, entity_size: int, entity_aware: bool) -> LukeConfig:
    """Positions count from 2 whatever the padding piece is, as in transformers, which has 32 buckets whatever the
    config says. Raises ValueError for other numbers of them."""
    buckets = data.get("relative_attention_num_buckets", BUCKETS)
    if buckets != BUCKETS:
        raise ValueError(f"relative_attention_num_buckets must be {BUCKETS}, but config.json gives {buckets!r}.")
    return MPNetConfig(
        **{**common_sizes(data), "token_types": 0},
        entity_vocab_size=entity_vocab_size,
        entity_size=entity_size,
        position_offset=2,
        entity_aware=entity_aware,
    )


MPNET = PlainFamily(
    roots=("mpnet.", ""),
    config=mpnet_config,
    names=untyped(WORDS) + _RELATIVE + _LAYER + POOLER,
    heads=LM_HEAD,
    entities=untyped(ENTITY_EMBEDDINGS),
    sizes=lambda config: {"relative": (BUCKETS, config.num_heads)},
)
