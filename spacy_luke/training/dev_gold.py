"""What a reader of the log should know of the dev data: scores cannot tell what these do not have."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..annotations import ENTITIES, get_scope
from ..text.spelling import shorten

_REPEATED = 0.1  # share of dev texts that are training texts, from which on it is said


class _Labelled(Protocol):
    @property
    def gold_place(self) -> str: ...

    @property
    def labels(self) -> Sequence[str]: ...


@runtime_checkable
class TellsTexts(Protocol):
    """A corpus that tells the texts of its documents as they were before it cut or joined them, by their hashes."""

    def read_all(self, nlp: Language) -> tuple[list[Example], list[int]]: ...


@runtime_checkable
class FindsSpans(_Labelled, Protocol):
    """A luke_ner, in what is asked of it here."""

    def gold_spans(self, reference: Doc) -> list[Span]: ...


@runtime_checkable
class ClassifiesUnits(_Labelled, Protocol):
    """A luke_typer or luke_relation."""

    @property
    def scope_task(self) -> str: ...

    def gold_names(self, reference: Doc) -> list[str]: ...


def faults_of_dev(
    nlp: Language, examples: Iterable[Example], frozen: Collection[str], *, trained: Collection[int]
) -> Iterator[str]:
    """That a tenth of the texts or more are trained on; and of each luke_ner, luke_typer and luke_relation that learns:
    that there is no gold for it that counts, or some under labels of which it knows no meaning. examples: the dev data.
    trained: hashes of the texts of the training data."""
    pipes: list[tuple[str, Any]] = [(name, x) for name, x in nlp.pipeline if name not in frozen]
    learning: dict[str, FindsSpans | ClassifiesUnits] = {
        name: x for name, x in pipes if isinstance(x, FindsSpans | ClassifiesUnits)
    }
    counted: Counter[str] = Counter()
    strange: dict[str, Counter[str]] = {name: Counter() for name in learning}
    texts = repeated = 0
    for example in examples:
        texts += 1
        repeated += hash(example.reference.text) in trained
        for name, pipe in learning.items():
            scored, unknown = scored_labels(pipe, example.reference)
            counted[name] += len(scored)
            strange[name].update(unknown)
    if repeated and repeated >= _REPEATED * texts:
        yield (
            f"{repeated:,} of the {texts:,} dev texts are training texts, too: scores tell nothing about new texts, "
            "and the pipeline that is kept as the best may be one that learnt by heart. Divide the data by documents."
        )
    for name, labels in strange.items():
        if not counted[name]:
            yield (
                f"The dev data have no {learning[name].gold_place} for '{name}': no score will tell how good it is, "
                "and where nothing else is scored, patience ends the training early. Give other dev data, or look at "
                "their labels."
            )
        elif labels:
            yield (
                f"The dev data have {listed_labels(labels)}, which '{name}' does not learn, as the training data lack "
                "them: they count as missed, and what is found in their places as wrong."
            )


def read_examples(corpus: Callable[[Language], Iterable[Example]], nlp: Language) -> tuple[list[Example], list[int]]:
    """All examples of a corpus, and the hash of the text of each document that they were made of; of other corpora than
    this package's each example is one."""
    if isinstance(corpus, TellsTexts):
        return corpus.read_all(nlp)
    examples = list(corpus(nlp))
    return examples, [hash(example.reference.text) for example in examples]


def task_of(pipe: FindsSpans | ClassifiesUnits) -> str:
    """What the scope of a Doc calls the component's task."""
    return ENTITIES if isinstance(pipe, FindsSpans) else pipe.scope_task


def scored_labels(pipe: FindsSpans | ClassifiesUnits, reference: Doc) -> tuple[list[str], list[str]]:
    """Of the component's gold on a Doc the labels that the Doc's scope lets count, and those of them of which the
    component knows none of the labels that they stand for."""
    scope, known = get_scope(reference, task_of(pipe)), set(pipe.labels)
    if isinstance(pipe, FindsSpans):
        labels = [span.label_ for span in pipe.gold_spans(reference)]
    else:
        labels = pipe.gold_names(reference)
    scored = [label for label in labels if scope.is_scored(label)]
    return scored, [label for label in scored if scope.named(label).isdisjoint(known)]


def listed_labels(counts: Counter[str]) -> str:
    """The most frequent labels, with how often each is there, and how many more there are."""
    shown = [f"{label} ({n:,})" for label, n in sorted(counts.items(), key=lambda x: (-x[1], x[0]))]
    return shorten(shown, noun="labels")
