"""Tables of a component's scores, label by label, as `spacy luke evaluate` shows them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from spacy.tokens import Doc

from ..annotations import (
    QUERIES,
    QUESTIONS,
    RELATIONS_TASK,
    TYPES,
    TYPES_TASK,
    get_gold_entities,
    get_pair_rows,
    get_queries,
    get_questions,
    get_relation_rows,
    get_scope,
    scored_spans,
)
from ..components.base import LukeComponent
from ..components.cloze import LukeCloze
from ..components.linker.component import LukeLinker
from ..components.mentions import SpanGroupGetter
from ..components.ner import LukeNER
from ..components.qa import LukeQA
from ..components.relation import LukeRelation
from ..components.soft_textcat import SoftTextCategorizer
from ..components.typer import LukeTyper
from ..scorers.counts import gold_key
from ..scorers.items import ItemReader, answer_items, entity_items, link_items, relation_items, type_items
from ..scorers.linking import link_rows
from ..scorers.reliability import Reliability

Scores = dict[str, Any]
ScoreRow = tuple[str, ...]


class ScoreTable(NamedTuple):
    """totals: rows over all labels, none where the gold has nothing to score on. labels: scores "p", "r" and "f" of
    each label, in their order; counts: how often the gold has it."""

    header: ScoreRow
    totals: Sequence[ScoreRow]
    labels: Mapping[str, Mapping[str, float]] = {}
    counts: Counter[str] = Counter()

    def rows(self, most: int) -> list[ScoreRow]:
        """A row for each label, of more than `most` for those with most gold, and the totals."""
        shown = set(sorted(self.labels, key=lambda label: (-self.counts[label], label))[:most])
        rows: list[ScoreRow] = [
            (label, *(_percent_of(score[x]) for x in "prf"), f"{self.counts[label]:,}")
            for label, score in self.labels.items()
            if label in shown
        ]
        if left := len(self.labels) - len(shown):
            rows.append((f"({left:,} other label{'s' if left > 1 else ''})", "", "", "", ""))
        return [*rows, *self.totals]


class _Task(NamedTuple):
    """make: the table of a component's scores and the gold Docs; missing: what a gold without anything to score on
    lacks."""

    make: Callable[[Any, Scores, Sequence[Doc]], ScoreTable]
    missing: Callable[[Any], str]


def make_table(proc: LukeComponent | SoftTextCategorizer, scores: Scores, golds: Sequence[Doc]) -> ScoreTable | None:
    """None for a component that has no scores of its own, such as luke_encoder, or no scorer."""
    task = _task_of(proc)
    # soft_textcat is scored by spaCy, which gives nothing where there is no gold
    known = scores or isinstance(proc, SoftTextCategorizer)
    return task.make(proc, scores, golds) if task is not None and known else None


def items_of(proc: LukeComponent | SoftTextCategorizer) -> ItemReader | None:
    """Reads of predicted Docs all that is gold or found, item by item; None of one that is counted otherwise."""
    if isinstance(proc, LukeNER):
        return partial(entity_items, spans_key=proc.spans_key, ents=proc.set_ents)
    if isinstance(proc, LukeLinker):
        return partial(link_items, spans_key=proc.getter.key if isinstance(proc.getter, SpanGroupGetter) else None)
    if isinstance(proc, LukeTyper):
        return type_items
    if isinstance(proc, LukeQA | LukeCloze):
        return partial(answer_items, asked=QUESTIONS if isinstance(proc, LukeQA) else QUERIES)
    return partial(relation_items, none=proc.none) if isinstance(proc, LukeRelation) else None


def reliability_rows(reliability: Reliability) -> list[ScoreRow]:
    """A row for each bin of scores, and the expected calibration error."""
    rows: list[ScoreRow] = [
        (f"{one.low:.1f} to {one.high:.1f}", f"{one.score:.3f}", f"{one.right:.3f}", f"{one.n:,}")
        for one in reliability.bins
    ]
    error = "" if reliability.ece is None else f"{reliability.ece:.3f}"
    return [*rows, ("calibration error", "", error, f"{reliability.n:,}")]


def missing_gold(proc: LukeComponent | SoftTextCategorizer) -> str:
    """What the gold documents lack where the table of a component has no rows."""
    task = _task_of(proc)
    return "nothing to score it on" if task is None else task.missing(proc)


def _task_of(proc: LukeComponent | SoftTextCategorizer) -> _Task | None:
    return next((task for kind, task in _TASKS.items() if isinstance(proc, kind)), None)


def _entity_table(proc: LukeNER, scores: Scores, golds: Sequence[Doc]) -> ScoreTable:
    key = gold_key(golds, proc.spans_key, ents=proc.set_ents)
    name = "ents" if key is None else f"spans_{key}"
    counts: Counter[str] = Counter()
    for doc in golds:
        entities = get_gold_entities(doc, key)
        if entities is None:
            continue
        gold = {(span.start, span.end, span.label_) for span in entities.spans}
        counted, _ = scored_spans(entities.scope, gold, set(), nested=key is not None)
        counts.update(label for _, _, label in counted)
    header = ("entities", "P", "R", "F1", "gold")
    if scores[f"{name}_f"] is None:
        return ScoreTable(header, [])
    totals = [("all", *_percent(scores, name, "prf"), f"{counts.total():,}")]
    return ScoreTable(header, totals, scores[f"{name}_per_type"], counts)


def _type_table(proc: LukeTyper, scores: Scores, golds: Sequence[Doc]) -> ScoreTable:
    counts: Counter[str] = Counter()
    mentions = 0
    for doc in golds:
        scope, labels_of = get_scope(doc, TYPES_TASK), defaultdict[tuple[int, int], set[str]](set)
        for span in doc.spans.get(TYPES, ()):
            labels_of[span.start, span.end].update([span.label_] if span.label_ else [])
        known = [labels for labels in labels_of.values() if not scope.is_open(labels)]
        mentions += len(known)
        counts.update(label for labels in known for label in scope.scored(labels, ())[0])
    header = ("types", "P", "R", "F1", "gold")
    if scores["types_micro_f"] is None:
        return ScoreTable(header, [])
    totals = [
        ("all, loose micro", *_percent(scores, "types_micro", "prf"), f"{counts.total():,}"),
        ("mentions, loose macro", *_percent(scores, "types_macro", "prf"), f"{mentions:,}"),
        ("mentions, strict", "", "", _percent_of(scores["types_strict"]), f"{mentions:,}"),
    ]
    return ScoreTable(header, totals, scores["types_per_type"], counts)


def _relation_table(proc: LukeRelation, scores: Scores, golds: Sequence[Doc]) -> ScoreTable:
    counts: Counter[str] = Counter()
    for doc in golds:
        scope, labels_of = get_scope(doc, RELATIONS_TASK), defaultdict[tuple[int, ...], set[str]](set)
        for row in get_relation_rows(doc) or []:
            labels_of[row[:4]].update([row.label] if row.label != proc.none else [])
        counts.update(label for labels in labels_of.values() for label in scope.scored(labels, ())[0])
    pairs = sum(len(get_pair_rows(doc) or []) for doc in golds)
    header = ("relations", "P", "R", "F1", "gold")
    if scores["relations_f"] is None:
        return ScoreTable(header, [])
    total, macro = f"{counts.total():,}", _percent(scores, "relations_macro", "prf")
    besides = (
        ("SemEval-2010 (9+1), directed", "relations_semeval_f", total),
        ("accuracy of given pairs", "relations_accuracy", f"{pairs:,}"),
    )
    totals: list[ScoreRow] = [
        ("all", *_percent(scores, "relations", "prf"), total),
        ("with the entities' labels", *_percent(scores, "relations_strict", "prf"), total),
        *([("mean of the labels", *macro, total)] if any(macro) else []),
        *((name, "", "", _percent_of(scores[key]), gold) for name, key, gold in besides if scores[key] is not None),
    ]
    return ScoreTable(header, totals, scores["relations_per_type"], counts)


def _link_table(proc: LukeLinker, scores: Scores, golds: Sequence[Doc]) -> ScoreTable:
    return ScoreTable(("links", "P", "R", "F1"), link_rows(scores))


def _question_table(proc: LukeQA, scores: Scores, golds: Sequence[Doc]) -> ScoreTable:
    answers = [x["answers"] for doc in golds for x in get_questions(doc) if "answers" in x]
    answered = sum(bool(x) for x in answers)
    header = ("questions", "EM", "F1", "gold")
    if scores["qa_f"] is None:
        return ScoreTable(header, [])
    totals: list[ScoreRow] = [("all", _percent_of(scores["qa_em"]), _percent_of(scores["qa_f"]), f"{len(answers):,}")]
    if scores["qa_no_answer_accuracy"] is not None:
        has_answer = [_percent_of(scores[f"qa_has_answer_{x}"]) for x in ("em", "f")]
        totals += [
            ("with an answer", *has_answer, f"{answered:,}"),
            ("without", _percent_of(scores["qa_no_answer_accuracy"]), "", f"{len(answers) - answered:,}"),
        ]
    return ScoreTable(header, totals)


def _query_table(proc: LukeCloze, scores: Scores, golds: Sequence[Doc]) -> ScoreTable:
    queries = sum(bool(x.get("answers")) for doc in golds for x in get_queries(doc))
    header = ("queries", "EM", "F1", "gold")
    if scores["cloze_f"] is None:
        return ScoreTable(header, [])
    return ScoreTable(
        header, [("all", _percent_of(scores["cloze_em"]), _percent_of(scores["cloze_f"]), f"{queries:,}")]
    )


def _category_table(proc: SoftTextCategorizer, scores: Scores, golds: Sequence[Doc]) -> ScoreTable:
    gold = f"{sum(bool(doc.cats) for doc in golds):,}"
    names = [name for name, share in scores.items() if isinstance(share, float)]
    totals = [(name.removeprefix("glue_"), _percent_of(scores[name]), gold) for name in names]
    return ScoreTable(("categories", "score", "gold"), totals)


def _missing_mentions(proc: LukeNER) -> str:
    group = "" if proc.spans_key is None else f"doc.spans[{proc.spans_key!r}], nor in "
    return f"no mentions in {group}doc.ents"


def _missing(text: str) -> Callable[[Any], str]:
    return lambda proc: text


_TASKS: dict[type, _Task] = {
    LukeNER: _Task(_entity_table, _missing_mentions),
    LukeTyper: _Task(_type_table, _missing('no mentions in doc.spans["luke_types"]')),
    LukeRelation: _Task(
        _relation_table, _missing("no gold relations in doc._.luke_relations, and the pipeline found none")
    ),
    LukeLinker: _Task(_link_table, _missing("no mentions with ids in doc.ents")),
    LukeQA: _Task(_question_table, _missing("no questions with answers in doc._.luke_questions")),
    LukeCloze: _Task(_query_table, _missing("no queries with answers in doc._.luke_queries")),
    SoftTextCategorizer: _Task(_category_table, _missing("no categories in doc.cats")),
}


def _percent(scores: Scores, name: str, parts: Iterable[str]) -> list[str]:
    return [_percent_of(scores[f"{name}_{x}"]) for x in parts]


def _percent_of(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}"
