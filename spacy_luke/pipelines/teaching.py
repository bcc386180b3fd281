"""A trained pipeline as a teacher: what it says of texts, with the probabilities of all that it considered."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import minibatch

from ..annotations import TYPES, Taught, get_types, set_taught
from ..components.ner import LukeNER
from ..components.relation import LukeRelation
from ..components.spans.found import FoundSpans, read_spans
from ..components.typer import LukeTyper
from ..components.units.asked import Units
from ..components.units.classifier import UnitClassifier
from ..model.taught_losses import distributions
from ..readers.docbin import write_docbin
from ..stores.progress import ProgressBar
from .gold import luke_components

_LEAST = 0.001  # probability that a span is a mention, below which it is taught as none
_AT_ONCE = 64  # Docs
Teacher = LukeNER | UnitClassifier


@dataclass(frozen=True)
class Lesson:
    """What a teacher has said of texts. places: of each of its components that teach, how many spans, mentions or
    pairs have probabilities."""

    texts: int
    words: int
    places: dict[str, int]


def teachers_of(nlp: Language) -> dict[str, Teacher]:
    """The components that can teach, by name."""
    return {x.name: x for x in luke_components(nlp) if isinstance(x, Teacher)}


def write_lesson(
    nlp: Language, texts: Iterable[Doc], path: Path, *, components: Sequence[str], progress: bool = False
) -> Lesson:
    """Let a pipeline say what it thinks of texts, and write them with it, as Docs that training reads.

    path: a .spacy file. components: names of those that teach. What it finds is on the Docs as if it were gold, so that
    the learner's labels and shares are counted from it; what is learned are the probabilities beside it.
    """
    counts = {"texts": 0, "words": 0}
    places = dict.fromkeys(components, 0)

    def said() -> Iterator[Doc]:
        with ProgressBar[Doc](None, "the teacher reads", unit="words", show=progress) as bar:
            for docs in minibatch(texts, _AT_ONCE):
                for doc, some in teach(nlp, docs, components):
                    counts["texts"] += 1
                    counts["words"] += len(doc)
                    for one in some:
                        places[one.component] += len(one.places_PK)
                    bar.update(len(doc))
                    yield doc

    write_docbin(said(), path)
    return Lesson(counts["texts"], counts["words"], places)


def teach(nlp: Language, docs: Sequence[Doc], components: Sequence[str]) -> Iterator[tuple[Doc, list[Taught]]]:
    """Run a pipeline over Docs, up to the last of these components; with each Doc comes what they say, which lies on
    it, too."""
    docs = list(docs)
    said: list[list[Taught]] = [[] for _ in docs]
    last = max(nlp.pipe_names.index(name) for name in components)
    for name, proc in nlp.pipeline[: last + 1]:
        if name not in components or not isinstance(proc, Teacher):
            docs = list(proc.pipe(docs)) if hasattr(proc, "pipe") else [proc(doc) for doc in docs]
            continue
        taught, found = _of_spans(proc, docs) if isinstance(proc, LukeNER) else _of_units(proc, docs)
        proc.set_annotations(docs, found)
        for mine, one in zip(said, taught, strict=True):
            mine.append(one)
    for doc, mine in zip(docs, said):
        for name, proc in nlp.pipeline:
            if name in components and isinstance(proc, LukeTyper):
                _write_types(doc, proc)
        doc.tensor = np.zeros((0,), dtype="float32")
        set_taught(doc, mine)
        yield doc, mine


def _of_spans(ner: LukeNER, docs: Sequence[Doc]) -> tuple[list[Taught], list[FoundSpans]]:
    """The distribution of each span that is encoded and may be a mention, and what is found."""
    rows: list[list[np.ndarray]] = [[] for _ in docs]
    found: list[list[np.ndarray]] = [[] for _ in docs]
    for batch, scores in ner.scored(docs, chance=ner.proposal_threshold):
        for owner, some in read_spans(batch, scores, none_bias=ner.none_bias):
            found[owner].append(some)
        probability_KL, kept = distributions(scores.logits_KL), scores.kept_K.numpy()
        table = np.concatenate([batch.start_E[kept, None], batch.end_E[kept, None], probability_KL], 1)
        owner_K = batch.owner_E()[kept]
        for owner in np.unique(owner_K).tolist():
            rows[owner].append(table[(owner_K == owner) & (probability_KL[:, 0] <= 1 - _LEAST)])
    labels = ("", *ner.labels)
    taught = []
    for doc, parts in zip(docs, rows):
        table = np.concatenate(parts) if parts else np.zeros((0, 2 + len(labels)))
        places = [_characters(doc, [(int(a), int(b))]) for a, b in table[:, :2].tolist()]
        taught.append(_taught(ner.name, labels, places, table[:, 2:]))
    return taught, [FoundSpans.joined(parts) for parts in found]


def _of_units(proc: UnitClassifier, docs: Sequence[Doc]) -> tuple[list[Taught], list[Any]]:
    """The probabilities of the labels of each unit that the component asks about, as its head gives them, and what is
    found."""
    asked: list[Units] = [proc.asked(doc) for doc in docs]
    rows: list[list[tuple[int, np.ndarray]]] = [[] for _ in docs]
    lost: list[list[int]] = [[] for _ in docs]
    scored = list(proc.scored_by_head(docs, asked, lost))
    for some in scored:
        rows[some.owner] += zip(some.number_U.tolist(), distributions(some.logits_UL, several=proc.multi_label))
    labels = tuple(label or "" for label in proc.classes)
    taught = []
    for doc, units, known in zip(docs, asked, rows):
        places = [_characters(doc, units.places(number)) for number, _ in known]
        taught.append(_taught(proc.name, labels, places, np.array([row for _, row in known])))
    return taught, proc.found(docs, asked, proc.with_mentions(docs, asked, scored), lost)


def _taught(name: str, labels: tuple[str, ...], places: Sequence[list[int]], rows: np.ndarray) -> Taught:
    n = len(places)
    places_PK = np.array(places, dtype=np.int64).reshape(n, -1 if n else 2)
    return Taught(name, labels, places_PK, rows.astype(np.float32).reshape(n, len(labels)))


def _characters(doc: Doc, words: Sequence[tuple[int, int]]) -> list[int]:
    return [edge for a, b in words for edge in (doc[a].idx, doc[b - 1].idx + len(doc[b - 1]))]


def _write_types(doc: Doc, typer: LukeTyper) -> None:
    """What is found, in the form of gold."""
    doc.spans[TYPES] = [
        Span(doc, span.start, span.end, label) for span in typer.getter(doc) for label in (get_types(span) or {"": 1.0})
    ]


def check_can_learn(teacher: Teacher, student: Teacher) -> None:
    """ValueError where a component cannot learn what the teacher's says."""
    kind = next(one for one in (LukeNER, LukeTyper, LukeRelation, UnitClassifier) if isinstance(teacher, one))
    if not isinstance(student, kind):
        raise ValueError(f"'{student.name}' is a {student.noun}, but the teacher's is a {teacher.noun}.")
    if isinstance(teacher, LukeRelation) and isinstance(student, LukeRelation):
        for setting in ("multi_label", "has_none"):
            mine, its = getattr(student, setting), getattr(teacher, setting)
            if mine != its:
                raise ValueError(
                    f"'{student.name}' has {setting} = {mine}, but the teacher's {its}: expected the same, by "
                    "multi_label and none of both."
                )
