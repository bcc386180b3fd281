"""The settings of a TransE run, checked once."""

from dataclasses import asdict, dataclass
from typing import Any

_ENGINES = ("sparse", "pykeen")
_LOSSES = ("softmax", "nssa", "margin")


@dataclass(frozen=True)
class TransESettings:
    """TransE (Bordes et al. 2013): head + relation is near tail. See `transe.loss_of` for the losses."""

    size: int = 100  # numbers in a vector; ERNIE's is 100
    epochs: int = 20
    batch_size: int = 512  # triples
    negatives: int = 512  # wrong entities, drawn for a batch and shared by its triples; 0: all. PyKEEN: for each triple
    learning_rate: float = 0.5  # of the first step; goes down to 0 in a line
    loss: str = "softmax"  # "softmax", "nssa" (RotatE's) or "margin" (the paper's)
    margin: float = 9.0  # of "nssa" and "margin"
    temperature: float = 1.0  # of "nssa": how much the harder negatives count
    norm: int = 2  # distance: L1 or L2
    normalize: bool = False  # entities of length 1, as in the paper
    reciprocal: bool = False  # a relation has a second vector for the way from tail to head
    engine: str = "sparse"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choices in (("engine", _ENGINES), ("loss", _LOSSES), ("norm", (1, 2))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {choices}, but it is {getattr(self, name)!r}.")
        for name in ("size", "epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, but it is {getattr(self, name)}.")
        for name in ("negatives", "margin", "temperature", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, but it is {getattr(self, name)}.")
        if self.engine == "pykeen" and not self.negatives:
            raise ValueError("PyKEEN's engine needs 1 or more negatives for a triple, but negatives is 0.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be above 0, but it is {self.learning_rate}.")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
