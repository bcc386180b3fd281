"""A report of one or two pipelines on gold documents: what is shown of them, before it is HTML."""

from collections.abc import Sequence
from typing import NamedTuple

from spacy.tokens import Doc

from ..pipelines.evaluation import ComponentScores, Evaluation
from ..scorers.items import ScoredItem
from ..scorers.reliability import ReliabilityBin
from .findings import (
    Confusion,
    ItemGroup,
    Point,
    ShownExample,
    by_frequency,
    by_length,
    confusion_of,
    curve_of,
    worst_examples,
)
from .logs import Curves
from .statistics import Difference, LabelScore, compare, score_labels

_FEW_DOCUMENTS = 20  # below, intervals say little

# What is counted as one label: entities and questions are too many for tables of labels.
_ONE_LABEL = {"links": "link", "questions": "answer", "queries": "answer"}


class ComponentReport(NamedTuple):
    """name: of the component; what: it finds; table: as `evaluate` prints it. The rest is empty of a component that is
    not counted item by item. differences: with the second pipeline, where it has the same component."""

    name: str
    what: str
    table: tuple[Sequence[str], Sequence[Sequence[str]]]
    labels: list[LabelScore] = []
    confusion: Confusion | None = None
    curve: list[Point] = []
    bins: list[ReliabilityBin] = []
    calibration_error: float | None = None
    lengths: list[ItemGroup] = []
    frequencies: list[ItemGroup] = []
    examples: list[ShownExample] = []
    differences: list[tuple[str, Difference]] = []


class Report(NamedTuple):
    """names: of one or two pipelines; notes: what a reader should know."""

    names: list[str]
    data: str
    documents: int
    words: int
    speeds: list[float]
    components: list[ComponentReport]
    training: Curves | None
    notes: list[str]


def make_report(
    names: Sequence[str], data: str, evaluations: Sequence[Evaluation], *, training: Curves | None = None
) -> Report:
    """Of one evaluation, or of two on the same documents; the second is compared with the first."""
    first, *others = evaluations
    notes = []
    if first.documents < _FEW_DOCUMENTS:
        notes.append(f"{first.documents} documents are few: the intervals are no more than a hint.")
    second = {one.name: one for one in others[0].components} if others else {}
    if others and (alone := [one.name for one in first.components if one.name not in second]):
        notes.append(f"Only the first pipeline has {', '.join(alone)}: nothing is compared there.")
    notes += [note for one in first.components for note in one.notes]
    components = [
        _component(one, second.get(one.name), first.docs, first.documents)
        for one in first.components
        if one.table.totals
    ]
    speeds = [one.words / one.seconds for one in evaluations]
    return Report(list(names), data, first.documents, first.words, speeds, components, training, notes)


def _component(
    one: ComponentScores, other: ComponentScores | None, docs: Sequence[Doc], documents: int
) -> ComponentReport:
    table = (one.table.header, one.table.rows(50))
    report = ComponentReport(one.name, one.table.header[0], table)
    items: Sequence[ScoredItem] = one.items
    if not items:
        return report
    alone = _ONE_LABEL.get(report.what)
    plain = [item._replace(label=alone) for item in items] if alone else items
    differences = []
    if other is not None and other.items:
        others = [item._replace(label=alone) for item in other.items] if alone else other.items
        differences = compare(plain, others, documents)
    return report._replace(
        labels=score_labels(plain, documents),
        confusion=None if alone else confusion_of(items),
        curve=curve_of(items),
        bins=list(one.reliability.bins) if one.reliability else [],
        calibration_error=one.reliability.ece if one.reliability else None,
        lengths=by_length(items, docs),
        frequencies=by_frequency(items, docs),
        examples=worst_examples(items, docs, asked=alone == "answer"),
        differences=differences,
    )
