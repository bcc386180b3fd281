"""The table of families of encoders that have LUKE's entity tokens. Each is a file beside `luke.py`: its config, and
its encoder, a `LukeEncoder` that makes other embeddings and layers. How their checkpoints are read is in
`checkpoint/families.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .config import LukeConfig
from .deberta import DebertaConfig, DebertaEncoder
from .distilbert import DistilBertConfig, DistilBertEncoder
from .electra import ElectraConfig, ElectraEncoder
from .luke import LukeEncoder
from .modernbert import ModernBertConfig, ModernBertEncoder
from .mpnet import MPNetConfig, MPNetEncoder


@dataclass(frozen=True)
class Family:
    """A family's config and encoder. title: for people."""

    title: str
    config: type[LukeConfig]
    encoder: type[LukeEncoder]


FAMILIES = {
    family.config.family: family
    for family in (
        Family("LUKE", LukeConfig, LukeEncoder),
        Family("MPNet", MPNetConfig, MPNetEncoder),
        Family("ELECTRA", ElectraConfig, ElectraEncoder),
        Family("DistilBERT", DistilBertConfig, DistilBertEncoder),
        Family("DeBERTa-v3", DebertaConfig, DebertaEncoder),
        Family("ModernBERT", ModernBertConfig, ModernBertEncoder),
    )
}


def build_encoder(config: LukeConfig, mask_rows: Sequence[int] = ()) -> LukeEncoder:
    """The module of a config, by its family. mask_rows: as of `LukeEncoder`."""
    return FAMILIES[config.family].encoder(config, mask_rows)


def config_from_dict(data: dict[str, Any]) -> LukeConfig:
    """The reverse of a config's `to_dict`. Raises ValueError for a family that is not known here."""
    sizes = dict(data)
    name = sizes.pop("family", "luke")
    if not isinstance(name, str) or name not in FAMILIES:
        raise ValueError(f"Unknown family of encoders {name!r}; this version knows {sorted(FAMILIES)}. Update it.")
    return FAMILIES[name].config.from_dict(sizes)
