"""What becomes of the labels of a data set in a corpus of several: the map of one task, and what it does to a Doc."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from spacy.attrs import ENT_IOB
from spacy.tokens import Doc, Span, SpanGroup

from ..annotations import (
    ENTITIES,
    NOTHING,
    OTHERS,
    RELATIONS_TASK,
    TASKS,
    TYPES,
    TYPES_TASK,
    Scope,
    get_relation_rows,
    get_scopes,
    read_scope,
    set_relation_rows,
    set_scopes,
)

_KEYS = {ENTITIES: ("labels", "annotates", "nested"), TYPES_TASK: ("labels", "annotates")}
_KEYS[RELATIONS_TASK] = _KEYS[TYPES_TASK]


@dataclass(frozen=True)
class LabelMap:
    """What becomes of a source's labels.

    renamed: our label, "" where it is none of ours. scope: what holds where other labels are gold, and what is
    annotated. named: labels that the settings name, which the source must have; others: whether they need not name all.
    """

    scope: Scope
    renamed: Mapping[str, str] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    others: bool = True
    rest: str = OTHERS

    def __call__(self, label: str) -> str:
        """The label that the Doc gets, "" for none."""
        if label in self.renamed:
            return self.renamed[label]
        return label if label in self.scope.meanings or self.rest == OTHERS else self.rest

    def ours(self, labels: Iterable[str]) -> set[str]:
        """Which of our labels these become."""
        new = {self(label) for label in labels if label} - {""}
        return {one for label in new for one in self.scope.named(label)}


UNCHANGED = LabelMap(Scope())
_UNKNOWN = LabelMap(NOTHING)


def read_label_map(task: str, settings: Any, *, where: str) -> LabelMap:
    """From the settings of a task of a source: labels, annotates, nested; or false, where the source says nothing of
    it. Raises ValueError, naming `where`, for anything else."""
    if settings is False:
        return _UNKNOWN
    if not isinstance(settings, Mapping) or not set(settings) <= set(_KEYS[task]):
        raise ValueError(f"{where} must be false, or have some of {list(_KEYS[task])}, but it is {settings!r:.120}.")
    labels = settings.get("labels")
    if labels is not None and not (isinstance(labels, Mapping) and all(map(_is_target, labels.values()))):
        raise ValueError(
            f"{where}.labels must say what each label of the source becomes: a label, a list of labels of which one "
            f'holds, null for anything, or "" for none of ours; but it is {labels!r:.120}.'
        )
    labels = dict(labels or {})
    rest = labels.pop(OTHERS, OTHERS if not labels else "")
    others = not settings.get("labels") or OTHERS in settings["labels"]
    open_rest = rest is None or not isinstance(rest, str)
    kept = {label for label, target in labels.items() if not isinstance(target, str)}
    renamed, meanings = {}, {label: labels[label] for label in kept}
    for label, target in labels.items():
        if label in kept:
            continue
        if target in kept:  # its name stands for something else here
            meanings[label] = [target]
        else:
            renamed[label] = target
    if open_rest:
        meanings[OTHERS] = rest
        meanings.update({target: [target] for target in renamed.values() if target})
    said = {"annotates": settings.get("annotates"), "labels": meanings, "nested": settings.get("nested", True)}
    try:
        scope = read_scope(said)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return LabelMap(scope, renamed, frozenset(labels), others, OTHERS if open_rest else rest)


def _is_target(value: Any) -> bool:
    listed = isinstance(value, (list, tuple)) and len(value) > 0 and all(isinstance(x, str) for x in value)
    return value is None or isinstance(value, str) or listed


def labels_of_doc(doc: Doc, task: str, spans_key: str | None) -> set[str]:
    """The labels of a task on a Doc."""
    if task == RELATIONS_TASK:
        return {row.label for row in get_relation_rows(doc) or []}
    if task == TYPES_TASK:
        return {span.label_ for span in _spans(doc, TYPES)} - {""}
    return {span.label_ for span in [*doc.ents, *_spans(doc, spans_key)]} - {""}


def map_doc(doc: Doc, maps: Mapping[str, LabelMap], *, spans_key: str | None) -> Doc:
    """Give a Doc our labels, and say what its gold says. spans_key: the group that shall have the entities, those of
    doc.ents where it has none. RETURNS: the Doc."""
    if spans_key is not None and spans_key not in doc.spans and doc.has_annotation("ENT_IOB"):
        doc.spans[spans_key] = SpanGroup(doc, name=spans_key, spans=list(doc.ents))
    for task, label_map in maps.items():
        _APPLY[task](doc, label_map, spans_key)
    said = get_scopes(doc)
    set_scopes(doc, {**said, **{task: label_map.scope for task, label_map in maps.items()}})
    return doc


def _spans(doc: Doc, key: str | None) -> Sequence[Span]:
    return list(doc.spans[key]) if key is not None and key in doc.spans else []


def _mapped(spans: Iterable[Span], label_map: LabelMap) -> list[Span]:
    named = [(span, label_map(span.label_)) for span in spans]
    return [Span(x.doc, x.start, x.end, label=label, kb_id=x.kb_id, span_id=x.id) for x, label in named if label]


def _map_entities(doc: Doc, label_map: LabelMap, spans_key: str | None) -> None:
    if doc.has_annotation("ENT_IOB"):
        missing = [doc[i : i + 1] for i in np.flatnonzero(doc.to_array([ENT_IOB]) == 0).tolist()]
        doc.set_ents(_mapped(doc.ents, label_map), missing=missing, default="outside")
    if spans_key is not None and spans_key in doc.spans:
        doc.spans[spans_key] = SpanGroup(doc, name=spans_key, spans=_mapped(doc.spans[spans_key], label_map))


def _map_types(doc: Doc, label_map: LabelMap, _: str | None) -> None:
    if TYPES not in doc.spans:
        return
    before = list(doc.spans[TYPES])
    after = _mapped(before, label_map)
    typed = {(span.start, span.end) for span in after}
    bare = dict.fromkeys((span.start, span.end) for span in before if (span.start, span.end) not in typed)
    empty = [Span(doc, start, end, label="") for start, end in bare]
    spans = sorted([*after, *empty], key=lambda span: (span.start, span.end))
    doc.spans[TYPES] = SpanGroup(doc, name=TYPES, spans=spans)


def _map_relations(doc: Doc, label_map: LabelMap, _: str | None) -> None:
    rows = get_relation_rows(doc)
    if rows is not None:
        named = [row._replace(label=label_map(row.label)) for row in rows]
        set_relation_rows(doc, list(dict.fromkeys(row for row in named if row.label)))


_APPLY: dict[str, Callable[[Doc, LabelMap, str | None], None]] = {
    ENTITIES: _map_entities,
    TYPES_TASK: _map_types,
    RELATIONS_TASK: _map_relations,
}
assert tuple(_APPLY) == TASKS


def check_label_names(label_map: LabelMap, found: Collection[str], *, where: str) -> None:
    """Raises ValueError where the settings name labels that the source has not, or leave out some that it has."""
    if missing := sorted(label_map.named - set(found)):
        raise ValueError(f"{where}.labels names {missing}, which the source does not have; it has {sorted(found)}.")
    if not label_map.others and (missing := sorted(set(found) - label_map.named)):
        raise ValueError(
            f'{where}.labels does not say what becomes of {missing}, which the source has. Name them, or give "*", '
            'which stands for all that are not named: "*" = "*" keeps their names.'
        )
