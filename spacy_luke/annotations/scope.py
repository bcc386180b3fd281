"""What the gold of a Doc says, and what it leaves open: data sets annotate different things.

A span without an entity may be an entity all the same where its data set has no label for it. `Scope` says of one task
what follows from gold and from its absence; a Doc without one is annotated in full, with labels that mean themselves.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span

from .keys import SCOPE
from .rows import get_parts, set_rows

ENTITIES, TYPES_TASK, RELATIONS_TASK = "entities", "types", "relations"
TASKS = (ENTITIES, TYPES_TASK, RELATIONS_TASK)
OTHERS = "*"  # stands for all labels that are not named


LabelledSpan = tuple[int, int, str]  # words [start, end) and label


@dataclass(frozen=True)
class Scope:
    """What is known of one task on a Doc.

    annotates: labels that are gold wherever they hold; None: all labels. Where another label is not gold, it may hold.
    meanings: what may hold where a label is gold that does not stand for itself: one of some labels, among them "" for
        none; None for anything. "*" is of all labels that are not named.
    nested: whether spans that overlap gold ones are annotated. Otherwise they may be anything but what these are.
    """

    annotates: frozenset[str] | None = None
    meanings: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    nested: bool = True

    @property
    def is_full(self) -> bool:
        """Whether gold is all that there is."""
        return self.annotates is None and not self.meanings and self.nested

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known, whatever is gold."""
        return self.annotates == frozenset() and dict(self.meanings) == {OTHERS: None}

    def meaning(self, label: str) -> frozenset[str] | None:
        """Of which labels one holds where this one is gold, "" for none; None: anything may."""
        if label in self.meanings:
            return self.meanings[label]
        return self.meanings[OTHERS] if OTHERS in self.meanings else frozenset({label})

    def named(self, label: str) -> frozenset[str]:
        """The labels that may hold where this one is gold, as far as they are named."""
        return (self.meaning(label) or frozenset()) - ({""} if label else frozenset())

    def is_annotated(self, label: str) -> bool:
        """Whether the label is gold wherever it holds."""
        return self.annotates is None or label in self.annotates

    def is_scored(self, label: str) -> bool:
        """Whether a prediction is missed where the label is gold: what it means is annotated, and sure."""
        meaning = self.meaning(label)
        return meaning is not None and "" not in meaning and all(map(self.is_annotated, meaning))

    def missed_as(self, label: str) -> str:
        """The name under which this gold is counted where it is missed: that of what it means, "A|B" of one of
        several."""
        return "|".join(sorted(self.named(label)))

    def is_plain(self, label: str) -> bool:
        """Whether it is scored, and stands for one label."""
        return self.is_scored(label) and len(self.named(label)) == 1

    def is_open(self, gold: Collection[str]) -> bool:
        """Whether nothing can be right or wrong of a thing with these gold labels."""
        return self.annotates == frozenset() or any(self.meaning(label) is None for label in gold)

    def scored(self, gold: Collection[str], predicted: Collection[str]) -> tuple[set[str], set[str]]:
        """What counts of the gold and the predicted labels of one thing: those whose absence says something. Gold is
        counted as what it means: of several labels as the one that is predicted, or as `missed_as` says."""
        if self.is_full:
            return set(gold), set(predicted)
        right: set[str] = set()
        counted: set[str] = set()
        is_open = False
        for label in gold:
            meaning = self.meaning(label)
            if meaning is None:
                is_open = True
                continue
            hits = sorted(meaning & set(predicted))
            right.update(hits)
            if self.is_scored(label):
                counted.add(hits[0] if hits else self.missed_as(label))
        wrong = set() if is_open else {label for label in predicted if label not in right and self.is_annotated(label)}
        return counted, (counted & right) | wrong


def scored_spans(
    scope: Scope, gold: Collection[LabelledSpan], predicted: Collection[LabelledSpan], *, nested: bool
) -> tuple[set[LabelledSpan], set[LabelledSpan]]:
    """What counts of gold and predicted spans (see `Scope.scored`). nested: whether spans may overlap."""
    if scope.is_full:
        return set(gold), set(predicted)
    labels: dict[tuple[int, int], tuple[set[str], set[str]]] = {}
    for i, spans in enumerate((gold, predicted)):
        for start, end, label in spans:
            labels.setdefault((start, end), (set(), set()))[i].add(label)
    found: tuple[set[LabelledSpan], set[LabelledSpan]] = set(), set()
    for (start, end), (own, said) in labels.items():
        if not own and nested and not scope.nested:
            over = {x for a, b, label in gold if a < end and start < b for x in scope.named(label)}
            shared = any(a < end and start < b for a, b, _ in gold)
            counted: tuple[set[str], set[str]] = (set(), said & over) if shared else scope.scored(own, said)
        else:
            counted = scope.scored(own, said)
        for spans, some in zip(found, counted):
            spans.update((start, end, label) for label in some)
    return found


NOTHING = Scope(annotates=frozenset(), meanings={OTHERS: None})  # of a task that a data set does not have
EVERYTHING = Scope()


def get_scope(doc: Doc, task: str) -> Scope:
    """What the Doc's gold says of a task: "entities", "types" or "relations"."""
    return get_scopes(doc).get(task, EVERYTHING)


class GoldEntities(NamedTuple):
    """Gold entities of a Doc, and what they say; in_group: whether they are those of the group that was asked for."""

    spans: list[Span]
    scope: Scope
    in_group: bool


def get_gold_entities(doc: Doc, spans_key: str | None) -> GoldEntities | None:
    """What training and scores go by, None where nothing of the Doc is annotated: doc.ents, or doc.spans[spans_key].
    Where the Doc has no such group, doc.ents, which leave open what overlaps them: a group may hold that, too."""
    scope, in_group = get_scope(doc, ENTITIES), spans_key is not None and spans_key in doc.spans
    if scope.is_empty or not (in_group or doc.has_annotation("ENT_IOB")):
        return None
    if in_group:
        return GoldEntities(list(doc.spans[spans_key]), scope, True)
    return GoldEntities(list(doc.ents), scope if spans_key is None else replace(scope, nested=False), False)


def get_scopes(doc: Doc) -> dict[str, Scope]:
    """Of the tasks of which something is said. Raises ValueError for a Doc that was joined of Docs that differ."""
    parts = get_parts(doc, SCOPE)
    if parts is None:
        return {}
    text, last = doc.text, 0
    first, *others = parts.values()
    for start, end in sorted(parts):
        _check_joined(not text[last : max(start, 0)].strip())
        last = max(last, end)
    _check_joined(not text[last:].strip() and all(one == first for one in others))
    return {row["task"]: _scope_of(row) for row in first}


def set_scopes(doc: Doc, scopes: Mapping[str, Scope] | None) -> None:
    """Say of each task what the Doc's gold says of it; None takes all away."""
    if scopes is None:
        set_rows(doc, SCOPE, None)
        return
    if wrong := sorted(set(scopes) - set(TASKS)):
        raise ValueError(f"doc._.luke_scope has the tasks {list(TASKS)}, but {wrong} were given.")
    rows = [_row_of(task, scopes[task]) for task in TASKS if task in scopes and not scopes[task].is_full]
    set_rows(doc, SCOPE, rows or None)


def get_scope_table(doc: Doc) -> dict[str, dict[str, Any]] | None:
    """What `doc._.luke_scope` gives: of each task {"annotates", "labels", "nested"}; None where nothing is said."""
    rows = {task: _row_of(task, scope) for task, scope in get_scopes(doc).items()}
    return {task: {k: v for k, v in row.items() if k != "task"} for task, row in rows.items()} or None


def set_scope_table(doc: Doc, table: Mapping[str, Mapping[str, Any]] | None) -> None:
    """table: of each task {"annotates": list or None, "labels": {label: label, list or None}, "nested": bool}, whatever
    is not said left out."""
    set_scopes(doc, None if table is None else {task: read_scope(settings) for task, settings in table.items()})


def read_scope(settings: Mapping[str, Any]) -> Scope:
    """From {"annotates", "labels", "nested"}, with labels as lists or alone. Raises ValueError for anything else."""
    form = '{"annotates": list of labels or None, "labels": {label: label, list of labels or None}, "nested": bool}'
    if not isinstance(settings, Mapping) or not set(settings) <= {"annotates", "labels", "nested"}:
        raise ValueError(f"What is said of a task must be {form}, but it is {settings!r:.120}.")
    annotates, labels, nested = settings.get("annotates"), settings.get("labels") or {}, settings.get("nested", True)
    if not isinstance(labels, Mapping) or not isinstance(nested, bool):
        raise ValueError(f"What is said of a task must be {form}, but it is {settings!r:.120}.")
    listed = {label: [x] if isinstance(x, str) else x for label, x in labels.items()}
    meanings = {label: None if x is None else label_set(x) for label, x in listed.items()}
    if empty := [label for label, meaning in meanings.items() if meaning is not None and not meaning]:
        raise ValueError(
            f'The label {empty[0]!r} means one of no labels: give some, or "" for none of ours, or None for anything.'
        )
    return Scope(None if annotates is None else label_set(annotates), meanings, nested)


def label_set(labels: Any) -> frozenset[str]:
    """Raises ValueError for what is no list of labels."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise ValueError(f"Expected a list of labels, but got {labels!r:.80}.")
    labels = list(labels)
    if not all(isinstance(label, str) for label in labels):
        raise ValueError(f"Expected a list of labels, but got {labels!r:.80}.")
    return frozenset(labels)


def _scope_of(row: dict[str, Any]) -> Scope:
    return read_scope({key: value for key, value in row.items() if key != "task"})


def _row_of(task: str, scope: Scope) -> dict[str, Any]:
    return {
        "task": task,
        "annotates": None if scope.annotates is None else sorted(scope.annotates),
        "labels": {label: None if x is None else sorted(x) for label, x in sorted(scope.meanings.items())},
        "nested": scope.nested,
    }


def _check_joined(agrees: bool) -> None:
    if not agrees:
        raise ValueError(
            "This Doc was joined of Docs whose doc._.luke_scope differ, or of which some have none, so that it is not "
            "known what its gold says. Join Docs that are annotated alike, or set doc._.luke_scope anew."
        )
