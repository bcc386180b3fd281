"""What a checkpoint holds, of either family of encoders, once it is read and checked."""

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from ..entity_vocab import EntityVocab
from ..model.config import LukeConfig, TransformerConfig
from ..model.ernie import ErnieConfig
from ..text.tokenizer import PieceTokenizer


@dataclass
class Checkpoint:
    """An encoder with all that belongs to it.

    tensors: our names ("encoder.*" is the encoder's state, the rest are heads) -> tensors of the file's own type.
    tokenizer: None where the source has none. labels: those of a classifier, in order; None where they are not known.
    source: the original config, and its "kind". report: what was mapped, dropped (with the reason) and initialised.
    """

    config: TransformerConfig
    tensors: dict[str, Tensor]
    _: KW_ONLY
    tokenizer: PieceTokenizer | None = None
    labels: list[str] | None = None
    task: str = "encoder"
    source: dict[str, Any] = field(default_factory=dict)
    report: list[str] = field(default_factory=list)
    kind: ClassVar[str]

    def named_labels(self) -> list[str]:
        """The labels of its classifier. Raises ValueError where they are not known."""
        if self.labels is None:
            raise ValueError(
                "The checkpoint does not name the labels of its classifier: give them to what reads it, in their order."
            )
        return list(self.labels)


@dataclass
class LukeCheckpoint(Checkpoint):
    """A LukeEncoder: "encoder.*", "pooler.*", "lm_head.*", "entity_head.*" and "head.*".

    task: a value of `configs.TASKS`. The source's kind is "huggingface", "archive" or "plain". entities: None where the
    source has no entity vocabulary.
    """

    config: LukeConfig
    _: KW_ONLY
    entities: EntityVocab | None = None
    kind: ClassVar[str] = "luke"


@dataclass
class ErnieCheckpoint(Checkpoint):
    """An ErnieEncoder: "encoder.*"; "lm_head.*", "nsp_head.*" and "entity_head.*" of PretrainingHeads;
    "head.classifier.*" of a PooledHead; "head.qa_outputs.*" of an AnswerHead.

    task: one of `ernie.TASKS`. The source's kind is "ernie" or "bert"; the original never names labels. vectors: folder
    of the entity vectors (an EntityVectors store), which no checkpoint has itself.
    """

    config: ErnieConfig
    _: KW_ONLY
    vectors: str | Path | None = None
    kind: ClassVar[str] = "ernie"
