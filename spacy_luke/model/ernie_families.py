"""ERNIE's second stream over the words of other families than BERT: MPNet and ELECTRA. The entity stream is ERNIE's;
it has no positions, so MPNet's biases are those of words alone.
"""

from typing import ClassVar

from torch import Tensor

from .attention import Attention
from .electra import ProjectedWords
from .ernie import Aggregator, ErnieConfig, ErnieEncoder
from .layer import Layer
from .luke import WordEmbeddings
from .mpnet import BiasedAttention, BiasedLayer, RelativeBiases
from .places import PassPlaces
from .untyped import UntypedWords


class BiasedAggregator(Aggregator):
    attention_class: ClassVar[type[Attention]] = BiasedAttention


class MPNetErnie(ErnieEncoder):
    def __init__(self, config: ErnieConfig):
        super().__init__(config)
        self.relative = RelativeBiases(config.num_heads)

    def make_words(self) -> WordEmbeddings:
        return UntypedWords(self.config)

    def make_layer(self, kind: str) -> Layer:
        if kind == "sim":
            return BiasedLayer(self.config, entity_aware=False)
        return BiasedAggregator(self.config, kind=kind)

    def find_places(self, positions_N: Tensor) -> PassPlaces[Tensor]:
        return self.relative.find_places(positions_N, None, farthest=self.config.max_window)


class ElectraErnie(ErnieEncoder):
    def make_words(self) -> WordEmbeddings:
        return ProjectedWords(self.config)


ENCODERS: dict[str, type[ErnieEncoder]] = {"bert": ErnieEncoder, "mpnet": MPNetErnie, "electra": ElectraErnie}


def build_ernie(config: ErnieConfig) -> ErnieEncoder:
    """The module of a config, by the family of its words."""
    return ENCODERS[config.family](config)
