"""What `luke_qa` and `luke_cloze` have in common: both are asked about a whole Doc, by rows that stand on it."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples

from ...annotations import Answer, ScoredSpan, has_rows, set_found
from ...checkpoint.contents import Checkpoint
from ..base import LukeComponent

Asked = TypeVar("Asked")  # a question, a query
Found = TypeVar("Found")  # what is found for one


class AskedComponent(LukeComponent, Generic[Asked, Found]):
    """rows: the annotation that has what is asked, such as "luke_questions". asks: what messages call one of them."""

    rows: ClassVar[str]
    asks: ClassVar[str]

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

    # ---- prediction

    def predict(self, docs: Iterable[Doc]) -> list[list[Found]]:
        """For each Doc what is found for each thing that it asks."""
        docs = list(docs)
        asked = [self.asked(doc) for doc in docs]
        found = iter(self.find([(doc, one) for doc, some in zip(docs, asked) for one in some]))
        return [[next(found) for _ in some] for some in asked]

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

    def check_text(self, example: Example) -> None:
        """Raises ValueError where the Doc has another text than the gold Doc, whose characters answers are."""
        text, gold = example.predicted.text, example.reference.text
        if text != gold:
            raise ValueError(
                f"'{self.name}': the answers of a {self.asks} are characters of the gold Doc's text, so the Doc must "
                f"have the same text, but the two begin {gold[:60]!r} and {text[:60]!r}."
            )

    def survey(
        self,
        get_examples: Callable[[], Iterable[Example]],
        weights: Callable[[], Checkpoint] | None,
    ) -> tuple[Checkpoint | None, Counter[str]]:
        """Load the checkpoint, and count what the training data ask."""
        validate_get_examples(get_examples, f"{type(self).__name__}.initialize")
        checkpoint = self.load_weights(weights)
        report: Counter[str] = Counter()
        for example in get_examples():
            for _ in self.gold_items(0, example, report):
                pass
        return checkpoint, report
