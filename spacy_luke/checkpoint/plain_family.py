"""What it takes to read the folders of a family of plain encoders: its config.json, and its names of the tensors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..model.config import LukeConfig
from .names import ENTITIES, ENTITY_DENSE, EXTRA_QUERIES, NameTable, Patterns, expand, shapes_by_name

Shape = tuple[int, ...]


def as_it_is(raw: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    return raw


def no_sizes(config: LukeConfig) -> dict[str, Shape]:
    return {}


@dataclass(frozen=True)
class PlainFamily:
    """How folders of a model_type are read. The encoder then has the entity tokens of LUKE, fresh.

    roots: prefixes that the encoder's names may have, with a dot at the end, or "".
    config: of config.json, with entity_vocab_size, entity_size and entity_aware.
    names: theirs and ours of the encoder, of which the first is the table of pieces; {i} is the layer, {p} weight and
        bias. heads: of what stands beside it, without prefix. entities: ours of entities, under LUKE's names.
    sizes: shapes of weights by the last part of our names, where they are not those of LUKE (`shapes_by_name`).
    dropped: patterns of names that are left out, and why.
    rewrite: of the tensors before anything else, such as one that is split into three.
    """

    roots: tuple[str, ...]
    config: Callable[..., LukeConfig]
    names: NameTable
    heads: NameTable = ()
    entities: NameTable = ENTITIES
    sizes: Callable[[Any], dict[str, Shape]] = no_sizes
    dropped: Patterns = ()
    rewrite: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]] = as_it_is

    def known_names(self, config: LukeConfig, *, root: str) -> dict[str, str]:
        """Every name that a plain checkpoint may have, theirs -> ours. root: of `roots`."""
        layers = range(config.num_layers)
        return {**expand(self.names, layers=layers, root=root), **expand(self.heads, layers=layers)}

    def shapes(self, config: LukeConfig) -> dict[str, Shape]:
        """Our names and shapes of all parameters of the encoder, entities and extra queries among them."""
        table = tuple(row for row in self.names if row[1].startswith("encoder.")) + self.entities
        if config.entity_size != config.hidden_size:
            table += ENTITY_DENSE
        if config.entity_aware:
            table += EXTRA_QUERIES
        ours = expand(table, layers=range(config.num_layers)).values()
        return shapes_by_name(ours, config, sizes=self.sizes(config))
