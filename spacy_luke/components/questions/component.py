"""What `luke_qa` and `luke_cloze` have in common: both are asked about a whole Doc, by rows that stand on it."""

import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples

from ...annotations import Answer, ScoredSpan, has_rows, set_found
from ...checkpoint.contents import Checkpoint
from ..base import LukeComponent

Asked = TypeVar("Asked")  # a question, a query
Found = TypeVar("Found")  # what is found for one


class AskedComponent(LukeComponent, Generic[Asked, Found]):
    """rows: the annotation that has what is asked, such as "luke_questions". asks, many: what messages call one of
    them, and several. task: of a checkpoint whose head it can take. answers: the gold ones, for messages."""

    rows: ClassVar[str]
    asks: ClassVar[str]
    many: ClassVar[str]
    task: ClassVar[str]
    answers: ClassVar[str]

    @abstractmethod
    def asked(self, doc: Doc) -> list[Asked]:
        """What a Doc asks."""

    @abstractmethod
    def find(self, asked: Sequence[tuple[Doc, Asked]]) -> list[Found]:
        """What is found for each, in the Doc beside it."""

    @abstractmethod
    def ranked(self, found: Found) -> list[list[Any]]:
        """Characters [start, end) and probability of each answer, the best first; empty ones for "no answer"."""

    @abstractmethod
    def gold_items(self, owner: int, example: Example, report: Counter[str]) -> Iterator[Any]:
        """Windows of what the reference asks that has gold answers. report: counts what is there, and what is lost."""

    @abstractmethod
    def create_head(self, report: Counter[str] | None = None, *, seed: int = 0) -> None:
        """Fresh parameters of the head. report: what the training data hold."""

    @abstractmethod
    def fill_head(self, checkpoint: Checkpoint) -> None:
        """Give the head a fine-tuned checkpoint's parameters."""

    @abstractmethod
    def advice(self, report: Counter[str]) -> str:
        """What is said of training data some of whose answers cannot be found; nothing where all can."""

    # ---- prediction

    def predict(self, docs: Iterable[Doc]) -> list[list[Found]]:
        """For each Doc what is found for each thing that it asks."""
        docs = list(docs)
        asked = [self.asked(doc) for doc in docs]
        found = iter(self.find([(doc, one) for doc, some in zip(docs, asked) for one in some]))
        return [[next(found) for _ in some] for some in asked]

    def check_doc(self, doc: Doc) -> None:
        if not isinstance(doc, Doc):
            raise ValueError(f"Expected a Doc to ask about, such as nlp.make_doc(text), but got {doc!r:.80}.")

    def answer_to(self, doc: Doc, asked: Asked, text: str) -> Answer:
        """What is found for one thing, which the Doc itself need not ask."""
        (found,) = self.find([(doc, asked)])
        spans = [
            ScoredSpan(doc.char_span(a, b, alignment_mode="expand") if b > a else None, score)
            for a, b, score in self.ranked(found)
        ]
        return Answer(text, tuple(spans))

    def set_annotations(self, docs: Iterable[Doc], predictions: Sequence[list[Found]]) -> None:
        for doc, found in zip(docs, predictions):
            if has_rows(doc, self.rows):
                set_found(doc, self.rows, [self.ranked(x) for x in found])

    # ---- training

    def batches(self, examples: list[Example]) -> Iterator[Any]:
        return self.batched(item for i, x in enumerate(examples) for item in self.gold_items(i, x, Counter()))

    def check_text(self, example: Example) -> None:
        """Raises ValueError where the Doc has another text than the gold Doc, whose characters answers are."""
        text, gold = example.predicted.text, example.reference.text
        if text != gold:
            raise ValueError(
                f"'{self.name}': the answers of a {self.asks} are characters of the gold Doc's text, so the Doc must "
                f"have the same text, but the two begin {gold[:60]!r} and {text[:60]!r}."
            )

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        weights: Callable[[], Checkpoint] | None = None,
        seed: int = 0,
    ) -> None:
        """Load the checkpoint and make the head.

        weights: a loader of a checkpoint, such as spacy-luke.checkpoint.v1, for `luke_qa` with entities = "all"; null
        keeps what the encoder has. seed: of the head's fresh parameters.
        """
        self.begin(get_examples, weights, seed=seed)

    def begin(
        self,
        get_examples: Callable[[], Iterable[Example]],
        weights: Callable[[], Checkpoint] | None,
        *,
        seed: int,
        prior: bool = True,
    ) -> None:
        """What `initialize` does. prior: whether a fresh head knows what the training data hold."""
        validate_get_examples(get_examples, f"{type(self).__name__}.initialize")
        checkpoint = self.load_weights(weights)
        self.check_words(get_examples)
        report: Counter[str] = Counter()
        for example in get_examples():
            for _ in self.gold_items(0, example, report):
                pass
        if not report[self.many]:
            raise ValueError(
                f"'{self.name}' found no {self.many} with answers in the training data: expected doc._.{self.rows} of "
                f"gold Docs, {self.answers}."
            )
        if checkpoint is not None and self.takes_head(checkpoint):
            self.load_head(checkpoint)
        else:
            self.create_head(report if prior else None, seed=seed)
        if advice := self.advice(report):
            warnings.warn(f"'{self.name}': {advice}.", stacklevel=3)

    # ---- heads that come from elsewhere, and go there

    def takes_head(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint's head can be the component's."""
        return checkpoint.task == self.task

    def load_head(self, checkpoint: Checkpoint) -> None:
        """Take over a fine-tuned checkpoint's head."""
        self.create_head()
        self.fill_head(checkpoint)

    def to_checkpoint(self) -> Checkpoint:
        checkpoint = self.with_head(super().to_checkpoint())
        checkpoint.task = self.task
        return checkpoint
