"""What it takes to read the folders of a family of plain encoders: its config.json, and its names of the tensors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..model.config import LukeConfig, TransformerConfig
from .names import CASE, ENTITY_DENSE, ENTITY_EMBEDDINGS, NameTable, Patterns, expand, query_table, shapes_by_name

Shape = tuple[int, ...]


def untyped(table: NameTable) -> NameTable:
    """The rows of an encoder without token types."""
    return tuple(row for row in table if "token_type" not in row[1])


def as_it_is(raw: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    return raw


def nothing(config: TransformerConfig) -> tuple[str, ...]:
    return ()


def no_sizes(config: LukeConfig) -> dict[str, Shape]:
    return {}


@dataclass(frozen=True)
class PlainFamily:
    """How folders of a model_type are read. The encoder then has the entity tokens of LUKE, fresh.

    roots: prefixes that the encoder's names may have, with a dot at the end, or "".
    config: of config.json, with entity_vocab_size, entity_size and entity_aware.
    names: theirs and ours of the encoder, of which the first is the table of pieces; {i} is the layer, {p} weight and
        bias. heads: of what stands beside it, without prefix. entities: ours of entities, under LUKE's names.
    without: parts of our names that an encoder of such a config has not, as of a projection where none is needed.
    sizes: shapes of weights by the last part of our names, where they are not those of LUKE (`shapes_by_name`).
    tied: second names of tensors -> ours. dropped: patterns of names that are left out, and why.
    rewrite: of the tensors before anything else, such as one that is split into three; restore: the reverse.
    layers_key: of config.json, the number of layers.
    """

    roots: tuple[str, ...]
    config: Callable[..., LukeConfig]
    names: NameTable
    heads: NameTable = ()
    entities: NameTable = ENTITY_EMBEDDINGS
    without: Callable[[Any], tuple[str, ...]] = nothing
    sizes: Callable[[Any], dict[str, Shape]] = no_sizes
    tied: NameTable = ()
    dropped: Patterns = ()
    rewrite: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]] = as_it_is
    restore: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]] = as_it_is
    layers_key: str = "num_hidden_layers"

    def known_names(self, config: TransformerConfig, *, root: str) -> dict[str, str]:
        """Every name that a plain checkpoint may have, theirs -> ours. root: of `roots`."""
        layers = range(config.num_layers)
        names = self._present(config, self.names)
        return {**expand(names, layers=layers, root=root), **expand(self.heads, layers=layers)}

    def shapes(self, config: LukeConfig) -> dict[str, Shape]:
        """Our names and shapes of all parameters of the encoder, entities and extra queries among them."""
        names = tuple(row for row in self.names if row[1].startswith("encoder."))
        table = self._present(config, names) + self.own_names(config)
        ours = expand(table, layers=range(config.num_layers)).values()
        return shapes_by_name(ours, config, sizes=self.sizes(config))

    def own_names(self, config: LukeConfig) -> NameTable:
        """Of what LUKE adds: entities, and extra queries."""
        table = self._present(config, self.entities)
        if config.entity_size != config.embedding_width:
            table += ENTITY_DENSE
        return table + query_table(config) + (CASE if config.case_feature else ())

    def _present(self, config: TransformerConfig, table: NameTable) -> NameTable:
        absent = set(self.without(config))
        return tuple(row for row in table if not absent & set(row[1].split(".")))
