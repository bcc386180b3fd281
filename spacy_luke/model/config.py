"""Sizes and switches of encoders, as they come from a checkpoint or from a builder."""

from dataclasses import KW_ONLY, asdict, dataclass, fields, replace
from typing import Any, ClassVar, Self

_ACTIVATIONS = ("gelu", "relu", "gelu_new")


@dataclass(frozen=True)
class TransformerConfig:
    """What fixes the words' part of an encoder. Each family adds its own and sets its defaults."""

    vocab_size: int  # pieces
    _: KW_ONLY
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int = 3072
    max_positions: int = 512  # rows of the position table
    position_offset: int = 0  # row of the first word position
    token_types: int = 1
    norm_eps: float = 1e-12
    activation: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    initializer_range: float = 0.02

    def __post_init__(self) -> None:
        self._check_heads("hidden_size", "num_heads")
        self._check_choice("activation", _ACTIVATIONS)

    def _check_heads(self, size: str, heads: str) -> None:
        if getattr(self, size) % getattr(self, heads):
            raise ValueError(
                f"{size} must be a multiple of {heads}, but {getattr(self, size)} % {getattr(self, heads)} is not 0."
            )

    def _check_choice(self, name: str, known: tuple[str, ...]) -> None:
        if getattr(self, name) not in known:
            raise ValueError(f"{name} must be one of {known}, but it is {getattr(self, name)!r}.")

    @property
    def max_window(self) -> int:
        """Pieces of one window, [CLS] and [SEP] included: 512 for RoBERTa and BERT."""
        return self.max_positions - self.position_offset

    @property
    def embedding_width(self) -> int:
        """Width of words and entities before the first layer's: that of the layers, but for families that project."""
        return self.hidden_size

    @property
    def has_cases(self) -> bool:
        """Whether the words' pieces come with the cases of their words (`text.cases`)."""
        return False

    def first_layers(self, layers: int) -> Self:
        """The same encoder with its first layers alone. Raises ValueError where there are fewer."""
        if layers > self.num_layers:
            raise ValueError(
                f"layers must be at most the {self.num_layers} that the checkpoint has, but it is {layers}."
            )
        return replace(self, num_layers=layers, **self._of_layers(layers))

    def _of_layers(self, layers: int) -> dict[str, Any]:
        """What a family says of each layer, of the first ones."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(data) - known):
            raise ValueError(f"Unknown encoder settings {unknown}; known are {sorted(known)}.")
        return cls(**data)


@dataclass(frozen=True)
class LukeConfig(TransformerConfig):
    """Defaults are LUKE base's (EMNLP 2020, section 4; RoBERTa base). family: of the encoder, which further families
    name in a class of their own (`families`)."""

    family: ClassVar[str] = "luke"
    has_biases: ClassVar[bool] = True  # of linear layers and norms
    entity_vocab_size: int  # rows of the entity table
    _: KW_ONLY
    max_positions: int = 514  # rows of the position tables
    position_offset: int = 2  # row of the first word position: 2 for RoBERTa (padding index + 1), 0 for BERT
    norm_eps: float = 1e-5
    entity_size: int = 256  # width of an entity's row; a dense layer follows where it differs from hidden_size
    entity_aware: bool = True  # four query matrices, chosen by the kinds of the two tokens (section 3.2.2)
    case_feature: bool = False  # a vector for the case of a piece's word (`text.cases`), for encoders of small letters
    mention_start: bool = False  # [MASK] entities: their row and the mean of the mention's pieces, not the row alone

    @property
    def has_cases(self) -> bool:
        """Whether the words' pieces come with the cases of their words (`text.cases`)."""
        return self.case_feature

    def to_dict(self) -> dict[str, Any]:
        """With the family, where it is a further one."""
        return asdict(self) if self.family == "luke" else {"family": self.family, **asdict(self)}
