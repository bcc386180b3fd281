"""Predictions that are kept beside a line of results, and what two systems differ by on the same documents.

A run's file in results/predictions has a line a document: the answers that are gold and those that were found, each as
its place (characters; words where a document has no text) and label: "0-12 person", "0-12,30-38 Cause-Effect(e1,e2)".
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_luke.reports.statistics import LEVEL, draw_sums, f_scores
from spacy_luke.scorers.items import ScoredItem

RESULTS = Path(__file__).parent / "results"
FOLDER = RESULTS / "predictions"
DRAWS = 2000
CHANCES = 200_000  # drawn of Student's t, to know its quantile
Answers = tuple[list[str], list[str]]  # gold and found of a document
Floats = NDArray[np.float64]


class Gap(NamedTuple):
    """By how many points the second system is above the first, and where 95 of 100 draws have it. runs: seeds; None of
    systems that have none."""

    points: float
    low: float
    high: float
    runs: int | None

    @property
    def is_significant(self) -> bool:
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return self.describe()

    def describe(self, digits: int = 1) -> str:
        said = (", one run" if self.runs == 1 else "") + ("" if self.is_significant else ", not significant")
        return f"{self.points:+.{digits}f} ({self.low:+.{digits}f} to {self.high:+.{digits}f}{said})"


def answers_of(items: Iterable[ScoredItem], documents: int) -> list[Answers]:
    """The items of each document as gold and found answers."""
    answers: list[Answers] = [([], []) for _ in range(documents)]
    for item in items:
        text = ",".join(f"{a}-{b}" for a, b in item.places) + f" {item.label}"
        for kept, some in zip((item.gold, item.found), answers[item.doc]):
            if kept:
                some.append(text)
    return answers


def with_types(relations: Sequence[Answers], entities: Sequence[Answers]) -> list[Answers]:
    """Relations with the labels of the entities at their ends, gold ones of gold and found ones of found, as strict
    scores count them: "0-12,30-38 lives_in PER,LOC". Of several entities at a place all labels count."""
    typed = []
    for pair, others in zip(relations, entities, strict=True):
        sides = []
        for answers, own in zip(pair, others, strict=True):
            labels: dict[str, list[str]] = {}
            for place, label in (x.split(" ", 1) for x in sorted(own)):
                labels.setdefault(place, []).append(label)
            ends = [["/".join(labels.get(x, [])) for x in answer.split(" ", 1)[0].split(",")] for answer in answers]
            sides.append([f"{answer} {','.join(some)}" for answer, some in zip(answers, ends)])
        typed.append((sides[0], sides[1]))
    return typed


def answers_of_mentions(gold: Iterable[Sequence[Any]], found: Iterable[Sequence[Any]]) -> list[Answers]:
    """Of each document the mentions (start, end, label) that are gold, and those that were found."""
    return [
        tuple([f"{a}-{b} {label}" for a, b, label in mentions] for mentions in pair)
        for pair in zip(gold, found, strict=True)
    ]


def answers_of_ents(examples: Sequence[Any]) -> list[Answers]:
    """The entities in doc.ents of examples."""
    pairs = [x.reference for x in examples], [x.predicted for x in examples]
    return answers_of_mentions(*([[(x.start, x.end, x.label_) for x in doc.ents] for doc in docs] for docs in pairs))


def keep(path: str, answers: Sequence[Answers], *, folder: Path | None = None) -> str:
    """Write the answers of a run. path: inside the folder, results/predictions; without its commas, and with "_" for
    blanks. RETURNS: the path as written, for the line of results."""
    path = path.replace(",", "").replace(" ", "_")
    file = (folder or FOLDER) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(x, ensure_ascii=False) + "\n" for x in answers), encoding="utf8")
    return path


def keep_run(
    path: str, answers: Sequence[Answers], *, limit: int | None, dev: bool, settings: dict[str, Any]
) -> str | None:
    """`keep`, of a run as it was asked for: nothing of a smoke run, which has a limit. Runs on the dev part differ in
    the settings that they try: these name the file, in a folder of its own."""
    if limit is not None:
        return None
    if dev:
        file = Path(path)
        values = "-".join(str(x) for x in settings.values() if x is not None)
        path = f"{file.parent}_dev/{file.stem}-{values}.jsonl"
    return keep(path, answers)


def read(path: str) -> list[Answers]:
    """What `keep` wrote."""
    return [tuple(json.loads(x)) for x in (FOLDER / path).read_text(encoding="utf8").splitlines()]


def count(documents: Sequence[Answers], *, macro: bool = False) -> Floats:
    """Of each document what is right, wrong and missed: (D, 1, 3). macro: of each label apart, without its direction
    "(e1,e2)": (D, L, 3); an answer in the wrong direction is wrong and missed, as SemEval-2010's script counts."""
    labels = sorted({_kind(x) for gold, found in documents for x in (*gold, *found)}) if macro else []
    place = {label: i for i, label in enumerate(labels)}
    counts_DL3 = np.zeros((len(documents), max(len(labels), 1), 3))
    for row_L3, (gold, found) in zip(counts_DL3, documents):
        for answer in {*gold, *found}:
            kind = 0 if answer in gold and answer in found else 2 if answer in gold else 1
            row_L3[place[_kind(answer)] if macro else 0, kind] += 1
    return counts_DL3


def find_inner(answers: Sequence[str]) -> set[str]:
    """Those of one place each that are inside of another's."""
    places = {answer: tuple(map(int, answer.split(" ", 1)[0].split("-"))) for answer in answers}
    return {
        x for x, (a, b) in places.items() if any(c <= a and b <= d and (a, b) != (c, d) for c, d in places.values())
    }


def count_outermost(documents: Sequence[Answers]) -> Floats:
    """As `count`, of the mentions alone that are inside of no other, of the gold ones and of those that were found."""
    return count(
        [
            ([a for a in gold if a not in find_inner(gold)], [b for b in found if b not in find_inner(found)])
            for gold, found in documents
        ]
    )


def counts_of(task: str) -> Callable[[Sequence[Answers]], Floats]:
    """How the answers to a task are counted: SemEval-2010's by label."""
    return partial(count, macro=task == "semeval")


def score(counts: Floats) -> Floats:
    """(..., L, 3) -> (...): percent, the mean of F1 over the labels that the gold has."""
    in_gold_L = (counts[..., 0] + counts[..., 2]).reshape(-1, counts.shape[-2]).sum(0) > 0
    found: Floats = 100 * f_scores(counts)[..., in_gold_L].mean(-1)
    return found


def compare(first: Sequence[Floats], second: Sequence[Floats], *, draws: int = DRAWS, seed: int = 0) -> Gap:
    """The paired bootstrap over documents (Koehn, EMNLP 2004), and the seeds beside.

    first, second: counts of the runs of two systems, the same seeds in the same order, on the same documents. A draw
    takes documents with replacement, the same ones of both systems and of all runs; the variance of the draws' mean gap
    is that of documents, the variance of the runs' gaps over their number that of seeds. The interval is Student's for
    the sum of both (Satterthwaite, 1946). Seeds that are drawn with replacement, as documents are, vary too little:
    three of them hold the truth in three quarters of such intervals. Of one run nothing is known of seeds, and its
    interval is where the draws of documents are.
    """
    if not first or [x.shape[0] for x in first] != [x.shape[0] for x in second] or len({len(x) for x in first}) > 1:
        raise ValueError("Expected as many runs of both systems, all of the same documents.")
    gaps_S = np.array([score(b.sum(0)) - score(a.sum(0)) for a, b in zip(first, second)])
    drawn_SR = np.stack(
        [
            score(draw_sums(b, draws=draws, seed=seed)) - score(draw_sums(a, draws=draws, seed=seed))
            for a, b in zip(first, second)
        ]
    )
    drawn_R, gap = drawn_SR.mean(0), float(gaps_S.mean())
    if len(first) == 1:
        low, high = np.quantile(drawn_R, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return Gap(gap, float(low), float(high), 1)
    both = np.array([drawn_R.var(ddof=1), gaps_S.var(ddof=1) / len(first)])
    freedom = both.sum() ** 2 / max((both**2 / (len(first[0]) - 1, len(first) - 1)).sum(), 1e-12)
    half = np.quantile(np.random.default_rng(seed).standard_t(max(freedom, 1.0), CHANCES), (1 + LEVEL) / 2)
    return Gap(gap, *(float(gap + sign * half * np.sqrt(both.sum())) for sign in (-1, 1)), len(first))


def compare_lines(
    first: Sequence[dict[str, Any]],
    second: Sequence[dict[str, Any]],
    *,
    counts: Callable[[Sequence[Answers]], Floats] = count,
    documents: int | None = None,
    key: str = "predictions",
) -> Gap | None:
    """The gap between two systems' lines of results, by the seeds that both have with predictions; None without any.
    counts: of the answers of a run. documents: of runs that were tested on more, the first ones alone. key: of the
    lines, which file it is."""
    of_first, of_second = ({x["seed"]: x[key] for x in some if x.get(key)} for some in (first, second))
    seeds = sorted(of_first.keys() & of_second.keys())
    if not seeds:
        return None
    runs = [[counts(read(of[seed])[:documents]) for seed in seeds] for of in (of_first, of_second)]
    return compare(*runs)


def _kind(answer: str) -> str:
    return answer.split(" ", 1)[1].split("(")[0]
