"""The encoder DistilBERT (Sanh et al., 2019) with LUKE's entities: BERT's layers, half as many, without token types.

An entity is where BERT's would be: at the mean of its pieces' rows of a position table of its own, as in LUKE.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from .config import LukeConfig
from .luke import EntityEmbeddings, LukeEncoder, WordEmbeddings
from .untyped import UntypedEntities, UntypedWords


@dataclass(frozen=True)
class DistilBertConfig(LukeConfig):
    family: ClassVar[str] = "distilbert"
    _: KW_ONLY
    token_types: int = 0


class DistilBertEncoder(LukeEncoder):
    """LUKE's encoder, whose embeddings have no token types."""

    def make_embeddings(self, mask_rows: Sequence[int]) -> tuple[WordEmbeddings, EntityEmbeddings]:
        return UntypedWords(self.config), UntypedEntities(self.config, mask_rows)
