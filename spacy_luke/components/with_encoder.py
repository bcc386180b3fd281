"""Components with an encoder: its weights, its tokenizer, and what it is told of entities."""

import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import ClassVar, TypeVar

from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import ConfigValidationError

from ..bridge.documents import read_document
from ..checkpoint.contents import Checkpoint, LukeCheckpoint
from ..encoders.kind import Needs
from ..encoders.nodes import number_format
from ..model.packing import times_at_once
from ..text.cases import CasedTokenizer
from ..text.tokenizer import PieceTokenizer
from ..text.unknown import count_unknown
from .encoder_checks import check_encoder
from .known_entities import KnownEntities
from .window_limits import WindowedComponent

AnyCheckpoint = TypeVar("AnyCheckpoint", bound=Checkpoint)
logger = logging.getLogger("spacy")


class EncoderComponent(WindowedComponent):
    """A component whose encoder comes from a checkpoint, is another component's, or was saved with the pipeline."""

    special_entities: tuple[str, ...] = ("[MASK]",)  # that the task's inputs have
    prepare: tuple[Callable[[LukeCheckpoint], None], ...] = ()  # what the task adds to a checkpoint before it is loaded
    keeps_table: ClassVar[bool] = True  # whether a checkpoint's entity table stays with the encoder
    _tokenizer: tuple[str, int, PieceTokenizer] | None = None  # read from the encoder's texts when it is needed

    @property
    def tokenizer(self) -> PieceTokenizer:
        if "tokenizer" not in self.encoder.texts:
            _ = self.encoder.module  # raises: nothing is loaded
        text, known, config = self.encoder.texts["tokenizer"], self._tokenizer, self.encoder.settings.get("config", {})
        rows = config["vocab_size"] if config.get("case_feature") else 0
        if known is None or known[0] is not text or known[1] != rows:  # a shared encoder is loaded by its owner
            tokenizer = PieceTokenizer.from_json(text)
            known = self._tokenizer = (text, rows, CasedTokenizer(tokenizer, rows) if rows else tokenizer)
        return known[2]

    def special_rows(self, *names: str) -> list[int]:
        """Rows of entities such as "[MASK]" in the module's entity table; none where entities are no tokens."""
        return self.encoder.kind.special_rows(self.encoder, names)

    def special_row(self, name: str) -> int:
        """The row of one, where entities are tokens."""
        (row,) = self.special_rows(name)
        return row

    def load_weights(self, weights: Callable[[], AnyCheckpoint] | None) -> AnyCheckpoint | None:
        """Load what the config names, at initialisation. RETURNS: the checkpoint, None where the encoder is there
        already. Raises ValueError where neither is the case."""
        sharing = self.encoder.sharing if self.shared else None
        if self.shared and sharing is None:
            raise ValueError(self.encoder.absent)
        owner = self.name if sharing is None else sharing.owner
        if weights is not None and self.shared:
            raise ValueError(
                f"'{self.name}' shares the encoder of '{owner}': give its checkpoint in "
                f"[initialize.components.{owner}.weights] and leave that of '{self.name}' out."
            )
        if weights is not None:
            checkpoint = weights()
            self.load_encoder(checkpoint)
            return checkpoint
        if not self.encoder.ready:
            frozen = (
                f" Or is '{owner}' in frozen_components? spaCy does not initialise those: set trainable = false in "
                f"[components.{owner}.model] instead, or source it from a saved pipeline."
            )
            # An error of this kind is shown by `spacy train` without a traceback.
            raise ConfigValidationError(
                title=f"'{owner}' needs a checkpoint, but the config names none; add for example",
                desc=f"[initialize.components.{owner}]\n\n[initialize.components.{owner}.weights]\n"
                f'@misc = "{self.encoder.kind.loader}"\n'
                f"{self.encoder.kind.example}\n"
                "where path is a folder, a tar.gz or a hub name, and let the @optimizers of [training.optimizer] be "
                f"spacy-luke.AdamW.v1, whose rate is one for pretrained encoders.{frozen if self.shared else ''}",
            )
        return None

    def load_encoder(self, checkpoint: Checkpoint) -> None:
        """Take over a checkpoint's encoder, tokenizer and what it knows of entities: see the kinds in `encoders`."""
        kind = self.encoder.kind
        if kind.name != checkpoint.kind:
            raise ValueError(
                f"The encoder of '{self.name}' is {kind}, but the checkpoint was read for an encoder of the kind "
                f"{checkpoint.kind!r}. Expected {kind.loader} in [initialize.components.{self.name}.weights]."
            )
        needs = Needs(self.special_entities, every_row=self.every_row, table=self.keeps_table, prepare=self.prepare)
        kind.load(self.encoder, checkpoint, needs)

    def to_checkpoint(self) -> Checkpoint:
        """The reverse of `load_encoder`, for export."""
        checkpoint: Checkpoint = self.encoder.kind.to_checkpoint(self.encoder, self.tokenizer)
        return checkpoint

    @property
    def every_row(self) -> bool:
        """Whether the model needs all rows of the entity table, or the special ones alone."""
        return False

    @property
    def known(self) -> KnownEntities | None:
        """What finds the entities of Docs that the encoder knows; None where it is given none."""
        return None

    def check_knowledge(self, get_examples: Callable[[], Iterable[Example]]) -> None:
        """At initialisation: say how many of the examples' entities have a vector. Raises ValueError where there are no
        vectors, warns where none of the entities has one."""
        known = self.known
        if known is None:
            return
        counts: Counter[str] = Counter()
        for example in get_examples():
            doc = example.predicted
            known.find(doc, read_document(doc, self.tokenizer), counts=counts)
        said = f"'{self.name}': of {counts.total()} entities of the training data " + ", ".join(
            f"{n} {what}" for what, n in sorted(counts.items())
        )
        if counts.total() and not counts["have a vector"]:
            warnings.warn(f"{said}. Are their ids those of the vectors' file?", stacklevel=3)
        logger.info(said)

    def check_words(self, get_examples: Callable[[], Iterable[Example]], *, again: bool = False) -> None:
        """At initialisation: warn where the encoder's vocabulary lacks pieces of many of the examples' words. Of a
        shared encoder it is said once, by its owner (`again`) or, where that is not initialised, by who comes first."""
        sharing = self.encoder.sharing
        if sharing is not None and sharing.knows_words and not again:
            return
        found = count_unknown(self.tokenizer, ([word.text for word in x.predicted] for x in get_examples()))
        if found.many:
            warnings.warn(f"'{self.name}': {found}", stacklevel=3)
        if sharing is not None:
            sharing.knows_words = True

    def predicting(self) -> AbstractContextManager[None]:
        """Around the passes of one prediction; an encoder without weights, or another than the component was saved
        with, raises here already."""
        _ = self.encoder.module
        check_encoder(self.encoder_node, name=self.name)
        return number_format(self.encoder_node, is_train=False)

    def marker(self, piece: str) -> int:
        """Id of a piece that marks mentions."""
        number = self.tokenizer.piece_id(piece)
        if number is None:
            raise ValueError(
                f"'{self.name}' marks mentions by the piece {piece!r}, which the encoder's tokenizer does not have. "
                "Expected a LUKE checkpoint, or a plain one, which gets it when it is read; or set attention to "
                "one_way."
            )
        return number

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate Docs. Components that share an encoder, and so word states, take few Docs at a time and hand them on
        before they take more, so that those states are still held when the next component asks for them."""
        sharing = self.encoder.sharing
        if sharing is None or not sharing.cache.capacity:
            yield from super().pipe(stream, batch_size=batch_size)
            return
        pieces = times_at_once(self.encoder.device) * sharing.cache.capacity
        words = max(pieces // 2, 1)  # a word has less than two pieces on average
        for docs in _by_words(stream, words=words, docs=batch_size):
            yield from super().pipe(docs, batch_size=len(docs))


def _by_words(stream: Iterable[Doc], *, words: int, docs: int) -> Iterator[list[Doc]]:
    """Lists of Docs with at least this many words in all, or of this many Docs."""
    held: list[Doc] = []
    for doc in stream:
        held.append(doc)
        if len(held) >= docs or sum(len(x) for x in held) >= words:
            yield held
            held = []
    if held:
        yield held
