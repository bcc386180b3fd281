"""Folders of DistilBERT."""

from typing import Any

from ..model.config import LukeConfig
from ..model.distilbert import DistilBertConfig
from .configs import common_sizes
from .names import ENTITY_EMBEDDINGS, WORDS, NameTable
from .plain_family import PlainFamily, untyped

_LAYER: NameTable = (
    ("transformer.layer.{i}.attention.q_lin.{p}", "encoder.layers.{i}.attention.query.{p}"),
    ("transformer.layer.{i}.attention.k_lin.{p}", "encoder.layers.{i}.attention.key.{p}"),
    ("transformer.layer.{i}.attention.v_lin.{p}", "encoder.layers.{i}.attention.value.{p}"),
    ("transformer.layer.{i}.attention.out_lin.{p}", "encoder.layers.{i}.attention.output.{p}"),
    ("transformer.layer.{i}.sa_layer_norm.{p}", "encoder.layers.{i}.attention_norm.{p}"),
    ("transformer.layer.{i}.ffn.lin1.{p}", "encoder.layers.{i}.up.{p}"),
    ("transformer.layer.{i}.ffn.lin2.{p}", "encoder.layers.{i}.down.{p}"),
    ("transformer.layer.{i}.output_layer_norm.{p}", "encoder.layers.{i}.output_norm.{p}"),
)
_LM_HEAD: NameTable = (
    ("vocab_transform.{p}", "lm_head.dense.{p}"),
    ("vocab_layer_norm.{p}", "lm_head.norm.{p}"),
    ("vocab_projector.bias", "lm_head.bias"),
)
# BERT's keys in config.json, and DistilBERT's.
_KEYS = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}


def distilbert_config(
    data: dict[str, Any], *, entity_vocab_size: int, entity_size: int, entity_aware: bool
) -> LukeConfig:
    named = {**data, **{ours: data[theirs] for ours, theirs in _KEYS.items() if theirs in data}}
    return DistilBertConfig(
        **{**common_sizes(named), "token_types": 0, "norm_eps": 1e-12},  # transformers has this eps, whatever is said
        entity_vocab_size=entity_vocab_size,
        entity_size=entity_size,
        position_offset=0,
        entity_aware=entity_aware,
    )


DISTILBERT = PlainFamily(
    roots=("distilbert.", ""),
    config=distilbert_config,
    names=untyped(WORDS) + _LAYER,
    heads=_LM_HEAD,
    entities=untyped(ENTITY_EMBEDDINGS),
    tied=(("vocab_projector.weight", "encoder.words.piece.weight"),),
    layers_key="n_layers",
    dropped=((r"pre_classifier\..*", "a task head of a plain model"),),
)
