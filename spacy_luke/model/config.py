"""Sizes and switches of an encoder, as they come from a checkpoint or from a builder."""

from dataclasses import asdict, dataclass, fields
from typing import Any

ACTIVATIONS = ("gelu", "relu", "gelu_new")


@dataclass(frozen=True)
class EncoderConfig:
    """What fixes an encoder's parameters. Defaults are LUKE base's (EMNLP 2020, section 4; RoBERTa base)."""

    vocab_size: int  # pieces
    entity_vocab_size: int  # rows of the entity table
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int = 3072
    entity_size: int = 256  # width of an entity's row; a dense layer follows where it differs from hidden_size
    max_positions: int = 514  # rows of the position tables
    position_offset: int = 2  # row of the first word position: 2 for RoBERTa (padding index + 1), 0 for BERT
    token_types: int = 1
    norm_eps: float = 1e-5
    activation: str = "gelu"
    entity_aware: bool = True  # four query matrices, chosen by the kinds of the two tokens (section 3.2.2)
    dropout: float = 0.1
    attention_dropout: float = 0.1
    initializer_range: float = 0.02

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size must be a multiple of num_heads, but {self.hidden_size} % {self.num_heads} is not 0."
            )
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {ACTIVATIONS}, but it is {self.activation!r}.")

    @property
    def max_window(self) -> int:
        """Pieces of one window, [CLS] and [SEP] included: 512 for RoBERTa and BERT."""
        return self.max_positions - self.position_offset

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "EncoderConfig":
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(data) - known):
            raise ValueError(f"Unknown encoder settings {unknown}; known are {sorted(known)}.")
        return cls(**data)
