"""Folders of ELECTRA: the discriminator, or the generator."""

from typing import Any

from ..model.config import LukeConfig
from ..model.electra import ElectraConfig
from ..text.cases import CASES
from .configs import check_positions, common_sizes, size_of
from .names import ENTITY_EMBEDDINGS, LAYER, WORDS, NameTable
from .plain_family import PlainFamily, Shape

_PROJECTION: NameTable = (("embeddings_project.{p}", "encoder.words.project.{p}"),)
_ENTITY_PROJECTION: NameTable = (("entity_embeddings.embeddings_project.{p}", "encoder.entities.project.{p}"),)


def electra_config(data: dict[str, Any], *, entity_vocab_size: int, entity_size: int, entity_aware: bool) -> LukeConfig:
    check_positions(data)
    return ElectraConfig(
        **common_sizes(data),
        embedding_size=size_of(data, "embedding_size"),
        entity_vocab_size=entity_vocab_size,
        entity_size=entity_size,
        position_offset=0,
        entity_aware=entity_aware,
    )


def electra_sizes(config: ElectraConfig) -> dict[str, Shape]:
    d, w = config.hidden_size, config.embedding_size
    sizes: dict[str, Shape] = {
        "piece": (config.vocab_size, w),
        "position": (config.max_positions, w),
        "case": (len(CASES), w),
        "token_type": (config.token_types, w),
        "encoder.words.norm": (w,),
        "encoder.entities.norm": (w,),
        "encoder.entities.dense": (w, config.entity_size),
        "project": (d, w),
    }
    return sizes


ELECTRA = PlainFamily(
    roots=("electra.", ""),
    config=electra_config,
    names=WORDS + _PROJECTION + LAYER,
    entities=ENTITY_EMBEDDINGS + _ENTITY_PROJECTION,
    without=lambda config: ("project",) if config.embedding_size == config.hidden_size else (),
    sizes=electra_sizes,
    dropped=(
        (r"discriminator_predictions\..*", "the discriminator's head of pretraining"),
        (r"generator_(predictions|lm_head)\..*", "the generator's head of pretraining, of the pieces' width"),
    ),
)
