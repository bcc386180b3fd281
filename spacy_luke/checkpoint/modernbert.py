"""Folders of ModernBERT."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..model.config import LukeConfig, TransformerConfig
from ..model.modernbert import ModernBertConfig
from .configs import common_sizes, flag, real_number, size_of
from .names import NameTable, Patterns
from .plain_family import PlainFamily, Shape

FUSED = "attn.Wqkv.weight"  # rows of query, key and value, in that order
ATTENTION_PARTS = tuple(f"attn.{name}.weight" for name in ("query", "key", "value"))
_FIRST_NORM = "layers.0.attention_norm.weight"  # which there is not: the embeddings have just had theirs
_NAMES: NameTable = (
    ("embeddings.tok_embeddings.weight", "encoder.words.piece.weight"),
    ("embeddings.norm.weight", "encoder.words.norm.weight"),
    ("layers.{i}.attn_norm.weight", "encoder.layers.{i}.attention_norm.weight"),
    ("layers.{i}.attn.query.weight", "encoder.layers.{i}.attention.query.weight"),
    ("layers.{i}.attn.key.weight", "encoder.layers.{i}.attention.key.weight"),
    ("layers.{i}.attn.value.weight", "encoder.layers.{i}.attention.value.weight"),
    ("layers.{i}.attn.Wo.weight", "encoder.layers.{i}.attention.output.weight"),
    ("layers.{i}.mlp_norm.weight", "encoder.layers.{i}.output_norm.weight"),
    ("layers.{i}.mlp.Wi.weight", "encoder.layers.{i}.up.weight"),
    ("layers.{i}.mlp.Wo.weight", "encoder.layers.{i}.down.weight"),
    ("final_norm.weight", "encoder.final_norm.weight"),
)
_ENTITIES: NameTable = (
    ("entity_embeddings.entity_embeddings.weight", "encoder.entities.table.weight"),
    ("entity_embeddings.LayerNorm.weight", "encoder.entities.norm.weight"),
)
_DROPPED: Patterns = ((r"(head|decoder)\..*", "the masked-word head, which no task of entities reads"),)
_BIASES = ("norm_bias", "attention_bias", "mlp_bias")


class ModernBertFamily(PlainFamily):
    """The first layer has no norm before its attention."""

    def known_names(self, config: TransformerConfig, *, root: str) -> dict[str, str]:
        names = super().known_names(config, root=root)
        return {theirs: ours for theirs, ours in names.items() if not ours.endswith(_FIRST_NORM)}

    def shapes(self, config: LukeConfig) -> dict[str, Shape]:
        return {name: shape for name, shape in super().shapes(config).items() if not name.endswith(_FIRST_NORM)}


def modernbert_config(
    data: dict[str, Any], *, entity_vocab_size: int, entity_size: int, entity_aware: bool
) -> LukeConfig:
    """Raises ValueError for what ModernBERT may be by its settings, but was never published as: biases, other patterns
    of layers, scaled rotary positions."""
    for key in _BIASES:
        if flag(data, key, False):
            raise ValueError(f"ModernBERTs without biases can be read, but config.json gives {key!r} as true.")
    sizes = common_sizes(
        {
            **data,
            "hidden_act": data.get("hidden_activation", "gelu"),
            "hidden_dropout_prob": data.get("mlp_dropout", 0.0),
            "attention_probs_dropout_prob": data.get("attention_dropout", 0.0),
            "layer_norm_eps": data.get("norm_eps", 1e-5),
            "type_vocab_size": 0,
        }
    )
    return ModernBertConfig(
        **{**sizes, "token_types": 0},
        entity_vocab_size=entity_vocab_size,
        entity_size=entity_size,
        entity_aware=entity_aware,
        embedding_dropout=real_number(data, "embedding_dropout", 0.0, most=0.99),
        global_every=_global_every(data, sizes["num_layers"]),
        local_attention=size_of({"local_attention": 128, **data}, "local_attention"),
        global_theta=_theta(data, "full_attention", "global_rope_theta", 160_000.0),
        local_theta=_theta(data, "sliding_attention", "local_rope_theta", 10_000.0),
    )


def _theta(data: dict[str, Any], kind: str, key: str, usual: float) -> float:
    """In the form of transformers 5, rope_parameters, or before it."""
    given = data.get("rope_parameters") or {}
    given = given.get(kind) if isinstance(given, dict) else given
    given = {} if given is None else given
    if not isinstance(given, dict) or given.get("rope_type", "default") != "default" or data.get("rope_scaling"):
        raise ValueError(
            f"Rotary positions must be those of ModernBERT (rope_type 'default'), but config.json gives "
            f"rope_parameters {data.get('rope_parameters')!r}, rope_scaling {data.get('rope_scaling')!r}."
        )
    old = data.get(key)
    return real_number({"rope_theta": usual if old is None else old, **given}, "rope_theta", usual, above=0, most=1e12)


def _global_every(data: dict[str, Any], layers: int) -> int:
    kinds = data.get("layer_types")
    if kinds is None:
        return size_of({"global_attn_every_n_layers": 3, **data}, "global_attn_every_n_layers")
    names = {"full_attention": True, "sliding_attention": False}
    if isinstance(kinds, list) and len(kinds) >= layers and all(kind in names for kind in kinds[:layers]):
        found = [names[kind] for kind in kinds[:layers]]
        every = next((i for i in range(1, layers) if found[i]), layers)
        if found == [i % every == 0 for i in range(layers)]:
            return every
    raise ValueError(
        f"layer_types must begin with 'full_attention', which comes again after the same number of "
        f"'sliding_attention', for {layers} layers, but config.json gives {kinds!r}."
    )


def split_fused(raw: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Query, key and value as tensors of their own."""
    tensors: dict[str, Tensor] = {}
    for name, tensor in raw.items():
        if name.endswith(FUSED) and tensor.dim() == 2 and len(tensor) % len(ATTENTION_PARTS) == 0:
            root = name.removesuffix(FUSED)
            tensors.update(
                (root + part, x) for part, x in zip(ATTENTION_PARTS, tensor.chunk(len(ATTENTION_PARTS)), strict=True)
            )
        else:
            tensors[name] = tensor
    return tensors


def join_fused(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The reverse of `split_fused`."""
    joined: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        root, _, part = name.rpartition("attn.")
        if f"attn.{part}" not in ATTENTION_PARTS:
            joined[name] = tensor
        elif f"attn.{part}" == ATTENTION_PARTS[0]:
            joined[root + FUSED] = torch.cat([tensors[root + own] for own in ATTENTION_PARTS])
    return joined


MODERNBERT = ModernBertFamily(
    roots=("model.", ""),
    config=modernbert_config,
    names=_NAMES,
    entities=_ENTITIES,
    sizes=lambda config: {"up": (2 * config.intermediate_size, config.hidden_size)},
    dropped=_DROPPED,
    rewrite=split_fused,
    restore=join_fused,
)
