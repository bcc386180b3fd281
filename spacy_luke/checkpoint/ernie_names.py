"""Names and shapes of ERNIE's parameters: a two-column table, theirs and ours, used in both directions.

Theirs are those of thunlp/ERNIE (code/knowledge_bert/modeling.py), whose words are BERT's; plain BERT has no others.
"""

from collections.abc import Sequence

import torch

from ..model.ernie import ErnieConfig
from ..model.ernie_families import build_ernie
from ..model.ernie_heads import PretrainingHeads
from .families import PLAIN
from .names import BERT_LM_HEAD, LAYER, TASK_HEADS, WORDS, NameTable, expand

_POOLER: NameTable = (("pooler.dense.{p}", "encoder.pooler.{p}"),)
_FUSION: NameTable = (
    ("encoder.layer.{i}.intermediate.dense_ent.{p}", "encoder.layers.{i}.entity_up.{p}"),
    ("encoder.layer.{i}.output.dense_ent.{p}", "encoder.layers.{i}.entity_down.{p}"),
    ("encoder.layer.{i}.output.LayerNorm_ent.{p}", "encoder.layers.{i}.entity_output_norm.{p}"),
)
_ENTITY_ATTENTION: NameTable = (
    ("encoder.layer.{i}.attention.self_ent.query.{p}", "encoder.layers.{i}.entity_attention.query.{p}"),
    ("encoder.layer.{i}.attention.self_ent.key.{p}", "encoder.layers.{i}.entity_attention.key.{p}"),
    ("encoder.layer.{i}.attention.self_ent.value.{p}", "encoder.layers.{i}.entity_attention.value.{p}"),
    ("encoder.layer.{i}.attention.output_ent.dense.{p}", "encoder.layers.{i}.entity_attention.output.{p}"),
    ("encoder.layer.{i}.attention.output_ent.LayerNorm.{p}", "encoder.layers.{i}.entity_attention_norm.{p}"),
)
# From here on, names have no root prefix.
_BERT_HEADS: NameTable = (*BERT_LM_HEAD, ("cls.seq_relationship.{p}", "nsp_head.{p}"))
_ENTITY_HEAD: NameTable = (
    ("cls.predictions_ent.transform.dense.{p}", "entity_head.dense.{p}"),
    ("cls.predictions_ent.transform.LayerNorm.{p}", "entity_head.norm.{p}"),
)
_TYPING_HEAD: NameTable = (("typing.{p}", "head.classifier.{p}"),)
DECODER = "cls.predictions.decoder.weight"  # a second name of the word table

Shapes = dict[str, tuple[int, ...]]


def bert_names(config: ErnieConfig, *, root: str) -> dict[str, str]:
    """Every name that a plain BERT may have and that has a place here, theirs -> ours. root: "bert." or ""."""
    return {
        **expand(WORDS + LAYER + _POOLER, layers=range(config.num_layers), root=root),
        **expand(_BERT_HEADS, layers=()),
    }


def plain_names(config: ErnieConfig, *, root: str) -> dict[str, str]:
    """The same of a plain encoder of the family of its words."""
    if config.family == "bert":
        return bert_names(config, root=root)
    names = PLAIN[config.family].known_names(config, root=root)
    return {theirs: f"encoder.{ours}" if ours.startswith("pooler.") else ours for theirs, ours in names.items()}


def ernie_names(config: ErnieConfig, *, root: str) -> dict[str, str]:
    """The same for an ERNIE checkpoint. Two names stand for the classifier: of types, and of everything else."""
    return {
        **bert_names(config, root=root),
        **expand(_FUSION, layers=_layers(config, "mix", "norm"), root=root),
        **expand(_ENTITY_ATTENTION, layers=_layers(config, "norm"), root=root),
        **expand(_ENTITY_HEAD + _TYPING_HEAD + TASK_HEADS, layers=()),
    }


def their_names(config: ErnieConfig, *, task: str) -> dict[str, str]:
    """Ours -> theirs, for writing: the root is "bert." always, as all of the original's classes want it."""
    names = {ours: theirs for theirs, ours in ernie_names(config, root="bert.").items()}
    if task == "entity_classification":
        names.update((ours, theirs) for theirs, ours in expand(_TYPING_HEAD, layers=()).items())
    return names


def ernie_shapes(config: ErnieConfig) -> Shapes:
    """Our names and shapes of all parameters of an encoder."""
    with torch.device("meta"):
        return {f"encoder.{name}": tuple(x.shape) for name, x in build_ernie(config).named_parameters()}


def pretraining_shapes(config: ErnieConfig, *, transform: bool = True) -> dict[str, Shapes]:
    """The same of the heads of pretraining, by head; a head is whole or absent. transform: see `EntityDenoiser`."""
    heads: dict[str, Shapes] = {}
    with torch.device("meta"):
        for name, x in PretrainingHeads(config, transform=transform).named_parameters():
            heads.setdefault(name.split(".")[0], {})[name] = tuple(x.shape)
    return heads


def _layers(config: ErnieConfig, *kinds: str) -> Sequence[int]:
    return [i for i, kind in enumerate(config.layer_kinds) if kind in kinds]
