"""Pipelines beside one another: what they score and how fast they are on the same Docs.

They take turns in one process, so that other jobs on the machine and first calls (code that oneDNN makes, weights that
are packed) count for none of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from time import perf_counter, process_time
from typing import Any

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example

from .gold import luke_components

_WORDS = 2_000  # that are measured on
TURNS = 5  # of each, the first of which does not count
SECONDS = 30.0  # after which no further round begins
_BUSY = 0.8  # of a core: with less of it others have worked at the same time


@dataclass(frozen=True)
class Measured:
    """scores: of each component that there is gold for, in points, by its name. speed: words a second, where the
    pipelines that are compared took turns on the same part of the data."""

    scores: dict[str, float]
    speed: float


@dataclass(frozen=True)
class Speeds:
    """words_per_second: of each pipeline, in its fastest turn; core: how much of one core the process had meanwhile."""

    words_per_second: tuple[float, ...]
    core: float

    @property
    def is_busy(self) -> bool:
        """Whether the machine had so much else to do that another measurement may say something else."""
        return self.core < _BUSY


def main_scores(nlp: Language, examples: Sequence[Example]) -> dict[str, float]:
    """Of each component that there is gold for, in points: the mean of the scores that training chooses the best
    pipeline by. The predicted Docs are annotated."""
    docs = nlp.pipe(example.predicted for example in examples)
    examples = [Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)]
    found: dict[str, float] = {}
    for name, component in nlp.pipeline:  # those of spaCy too, which may listen to an encoder
        if isinstance(component, Pipe) and (score := _main_score(nlp, name, component.score(examples))) is not None:
            found[name] = 100 * score
    return found


def _main_score(nlp: Language, name: str, scores: dict[str, Any]) -> float | None:
    """None where there is no gold."""
    given = nlp.get_pipe_meta(name).default_score_weights or {}
    weights = {key: w for key, w in given.items() if w and key in scores}
    weights = weights or {key: 1.0 for key in scores if key.endswith("_f")}  # of other names, as of doc.spans
    known = [(scores[key], w) for key, w in weights.items() if scores[key] is not None]
    return sum(score * w for score, w in known) / sum(w for _, w in known) if known else None


def compare_speed(
    pipelines: Sequence[Language], read: Callable[[Language], Sequence[Doc]], *, words: int = _WORDS
) -> Speeds:
    """read: gives a pipeline's Docs as it is to have them, of which the first with so many words are taken. What
    components hold of words that they have read is forgotten before each turn."""
    given = [(nlp, _first(read(nlp), words)) for nlp in pipelines]
    seconds: list[list[float]] = [[] for _ in given]
    begin, used = perf_counter(), process_time()
    for turn in range(TURNS):
        for (nlp, docs), own in zip(given, seconds, strict=True):
            own.append(_time(nlp, docs))
        if turn and perf_counter() - begin > SECONDS:
            break
    core = (process_time() - used) / (perf_counter() - begin)
    totals = [sum(map(len, docs)) for _, docs in given]
    return Speeds(tuple(n / min(own[1:]) for n, own in zip(totals, seconds, strict=True)), core)


def _first(docs: Sequence[Doc], words: int) -> Sequence[Doc]:
    ends = accumulate(map(len, docs))
    return docs[: next((i + 1 for i, end in enumerate(ends) if end >= words), len(docs))]


def _time(nlp: Language, docs: Sequence[Doc]) -> float:
    for component in luke_components(nlp):
        if component.encoder.sharing is not None:
            component.encoder.sharing.cache.clear()
    fresh = [doc.copy() for doc in docs]
    start = perf_counter()
    for _ in nlp.pipe(fresh):
        pass
    return perf_counter() - start
