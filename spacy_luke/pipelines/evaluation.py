"""Scores of a pipeline on gold documents, component by component, and its speed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..annotations import ENTITIES, EVERYTHING, Scope, get_scopes, set_scopes
from ..components.base import LukeComponent, find_component
from ..components.ner import LukeNER
from ..components.soft_textcat import SoftTextCategorizer
from ..scorers.items import ScoredItem
from ..scorers.reliability import Reliability, judged, measure_reliability
from ..stores.progress import ProgressBar
from ..text.spelling import nearest
from .gold import Given, luke_components, read_gold
from .score_notes import score_notes
from .score_tables import Scores, ScoreTable, items_of, make_table, missing_gold


@dataclass(frozen=True)
class ComponentScores:
    """table: has no totals where the gold lacks what the component is scored on, and `missing` then says what.
    reliability: how often what is shown is right, by its score; None of a component without scores of its own. items:
    all that is gold or found, where it is counted item by item. notes: what a reader of the scores should know."""

    name: str
    scores: Scores
    table: ScoreTable
    missing: str
    reliability: Reliability | None = None
    items: Sequence[ScoredItem] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Evaluation:
    """seconds: that the pipeline took, without the scorers. docs: as it annotated them."""

    documents: int
    words: int
    seconds: float
    components: Sequence[ComponentScores]
    docs: Sequence[Doc] = ()

    @property
    def scores(self) -> Scores:
        """Those of all components, the number of words, and words a second."""
        scores: Scores = {}
        for component in self.components:
            if component.table.totals:
                scores.update(component.scores)
        return {**scores, "words": self.words, "words_per_second": self.words / self.seconds}


def evaluate(
    nlp: Language,
    data: str | Path,
    *,
    given: Given = Given(),
    component: str | None = None,
    entities: Scope = EVERYTHING,
    beside: Sequence[Language] = (),
    progress: bool = False,
) -> Evaluation:
    """Score every LUKE component and soft_textcat, as its task's official script counts.

    data: a .spacy file or a folder of them. given: what the pipeline need not find; with entities or links a luke_ner
    is switched off. component: score this one only. entities: what the gold says of entities, where a Doc does not say
    it itself (`doc._.luke_scope`). beside: other pipelines, whose labels that may name, too. Raises ValueError where
    two components have scores of one name, and where nothing can be scored.
    """
    needless = LukeNER if given.entities or given.links else ()
    chosen = [proc for proc in _choose(nlp, component) if not isinstance(proc, needless)]
    examples = read_gold(nlp, data, given)
    _check_labels(entities, [example.reference for example in examples], data, [nlp, *beside])
    for doc in (example.reference for example in examples):
        if not entities.is_full:
            set_scopes(doc, {ENTITIES: entities, **get_scopes(doc)})
    with nlp.select_pipes(disable=[proc.name for proc in luke_components(nlp) if isinstance(proc, needless)]):
        start = perf_counter()
        asked = nlp.pipe(example.predicted for example in examples)
        with ProgressBar(asked, "evaluating", total=len(examples), unit="doc", show=progress) as docs:
            examples = [Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)]
        seconds = perf_counter() - start
    words = sum(len(example.predicted) for example in examples)
    scored = _score(chosen, examples)
    if not any(one.table.totals for one in scored):
        lacking = "".join(f"\n'{one.name}' is not scored: {data} has {one.missing}." for one in scored)
        raise ValueError(f"{data} has nothing that the components {nlp.pipe_names} could be scored on.{lacking}")
    return Evaluation(len(examples), words, seconds, scored, [example.predicted for example in examples])


def _check_labels(scope: Scope, golds: Sequence[Doc], data: str | Path, pipelines: Sequence[Language]) -> None:
    """Raises ValueError where the scope says what a label means that the gold does not have, or names one that no
    pipeline has. A component that does not say its labels may have any."""
    if scope.is_full:
        return
    spans = (span for doc in golds for some in (doc.ents, *doc.spans.values()) for span in some)
    known = sorted({span.label_ for span in spans})
    for label in scope.meanings:
        if label not in known:
            raise ValueError(
                f"It is said what the gold's label {label!r} means, but no entity of {data} has it"
                + nearest(label, known)
            )
    pipes: list[Any] = [pipe for nlp in pipelines for _, pipe in nlp.components]
    if not all(hasattr(pipe, "labels") for pipe in pipes):
        return
    ours = {label for pipe in pipes for label in pipe.labels}
    meant = {label for labels in scope.meanings.values() for label in labels or ()} - {""}
    if wrong := sorted(meant - ours) or sorted((scope.annotates or frozenset()) - ours - {*known}):
        said = "the gold's labels mean" if wrong[0] in meant else "the gold annotates"
        found = {label for pipe in pipes if isinstance(pipe, LukeNER) for label in pipe.labels}
        raise ValueError(
            f"It is said that {said} {wrong[0]!r}, but the pipeline has no such label"
            + nearest(wrong[0], found or ours)
        )


def _choose(nlp: Language, component: str | None) -> list[LukeComponent | SoftTextCategorizer]:
    texts = {name: proc for name, proc in nlp.pipeline if isinstance(proc, SoftTextCategorizer)}
    if component is None:
        return [*luke_components(nlp), *texts.values()]
    return [texts[component] if component in texts else find_component(nlp, LukeComponent, component)]


def _score(chosen: Sequence[LukeComponent | SoftTextCategorizer], examples: Sequence[Example]) -> list[ComponentScores]:
    golds = [example.reference for example in examples]
    scored: list[ComponentScores] = []
    names: set[str] = set()
    for proc in chosen:
        found = proc.score(examples)
        table = make_table(proc, found, golds)
        if table is None:
            continue
        if table.totals:
            if same := sorted(set(found) & names):
                raise ValueError(
                    f"'{proc.name}' has scores of the same names as a component before it ({same[0]} and others): "
                    "choose one with --component."
                )
            names.update(found)
        read_items = items_of(proc)
        items = [] if read_items is None else read_items(examples)
        reliability = None if read_items is None else measure_reliability(judged(items))
        if reliability is not None and table.totals:
            found = {**found, f"{proc.name}_reliability": reliability.to_dict()}
        items = items if table.totals else []
        notes = score_notes(proc, items, examples)
        scored.append(ComponentScores(proc.name, found, table, missing_gold(proc), reliability, items, notes))
    return scored
