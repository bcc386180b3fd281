"""Differences between systems of benchmarks/, by their kept predictions, as plain loops and as SciPy find them."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from spacy_luke.reports.statistics import DRAWS_AT_ONCE
from spacy_luke.scorers.items import ScoredItem

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def paired(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("paired")
    sys.modules.pop("paired")


def make_run(seed, *, right=0.7, documents=60, labels=("A(e1,e2)", "A(e2,e1)", "B")):
    """Gold that is the same for each seed, and answers that are right so often."""
    gold, chosen = np.random.default_rng(0), np.random.default_rng(seed + 1)
    run = []
    for _ in range(documents):
        wanted = [f"{i}-{i + 1} {gold.choice(labels)}" for i in range(gold.integers(0, 4))]
        found = [x if chosen.random() < right else f"{x.split()[0]} {chosen.choice(labels)}" for x in wanted]
        run.append((wanted, [x for x in found if chosen.random() < 0.9]))
    return run


def plain_score(documents, *, macro):
    """Percent of F1, counted answer by answer."""
    counts = {}
    for gold, found in documents:
        for answer in {*gold, *found}:
            label = answer.split(" ")[1][0] if macro else ""
            kind = "right" if answer in gold and answer in found else "missed" if answer in gold else "wrong"
            counts.setdefault(label, {"right": 0, "wrong": 0, "missed": 0})[kind] += 1
    scored = [x for x in counts.values() if x["right"] + x["missed"]]
    return 100 * np.mean([2 * x["right"] / (2 * x["right"] + x["wrong"] + x["missed"]) for x in scored])


@pytest.mark.parametrize("macro", [False, True])
def test_scores_and_draws_are_those_of_plain_loops(paired, macro):
    stats = pytest.importorskip("scipy.stats")
    first, second = [[make_run(s, right=r) for s in (0, 1, 2)] for r in (0.6, 0.8)]
    counts = [[paired.count(run, macro=macro) for run in runs] for runs in (first, second)]
    for run, counted in zip(first, counts[0]):
        assert paired.score(counted.sum(0)) == pytest.approx(plain_score(run, macro=macro))
    draws = 40
    gap = paired.compare(*counts, draws=draws)
    weights = np.random.default_rng(0)
    drawn = weights.multinomial(60, np.full(60, 1 / 60), size=min(DRAWS_AT_ONCE, draws))
    plain = []
    for times in drawn:
        rows = [i for i, n in enumerate(times) for _ in range(n)]
        of_seed = [
            plain_score([b[i] for i in rows], macro=macro) - plain_score([a[i] for i in rows], macro=macro)
            for a, b in zip(first, second)
        ]
        plain.append(np.mean(of_seed))
    gaps = [plain_score(b, macro=macro) - plain_score(a, macro=macro) for a, b in zip(first, second)]
    of_documents = sum((x - np.mean(plain)) ** 2 for x in plain) / (draws - 1)
    of_seeds = sum((x - np.mean(gaps)) ** 2 for x in gaps) / 2 / 3
    freedom = (of_documents + of_seeds) ** 2 / (of_documents**2 / 59 + of_seeds**2 / 2)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(of_documents + of_seeds)
    assert (gap.low, gap.high) == pytest.approx((np.mean(gaps) - half, np.mean(gaps) + half), rel=0.01)
    assert gap.points == pytest.approx(np.mean(gaps))
    assert gap.runs == 3


def test_intervals_are_those_of_scipy(paired):
    stats = pytest.importorskip("scipy.stats")
    first, second = make_run(0, right=0.65, documents=300), make_run(1, right=0.8, documents=300)
    counts = [paired.count(run) for run in (first, second)]
    gap = paired.compare([counts[0]], [counts[1]], draws=5000)

    def difference(rows, axis):
        sums = [x[:, 0][rows].sum(axis) for x in counts]
        f = [2 * x[..., 0] / (2 * x[..., 0] + x[..., 1] + x[..., 2]) for x in sums]
        return 100 * (f[1] - f[0])

    def along_last(rows, axis=-1):
        return difference(np.moveaxis(rows, axis, 0), 0)

    result = stats.bootstrap(
        (np.arange(300),),
        along_last,
        n_resamples=5000,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(3),
    )
    low, high = result.confidence_interval
    assert gap.low == pytest.approx(low, abs=0.06 * (high - low))
    assert gap.high == pytest.approx(high, abs=0.06 * (high - low))
    assert gap.is_significant
    assert str(gap).endswith(", one run)")


@pytest.mark.slow
@pytest.mark.parametrize("documents_count", [False, True])
def test_intervals_hold_the_truth(paired, documents_count):
    """Of 95 in a hundred experiments with three seeds, and of no more than nearly all; seeds that were drawn with
    replacement had it in 75 where documents do not count."""
    chosen, held, spread = np.random.default_rng(0), [], 0.08 * documents_count
    for _ in range(200):
        share_D = chosen.normal(0.6, spread, 80)  # of the answers of a document that the first system has right
        gain_D = chosen.normal(0.05, spread, 80)
        runs = []
        for above_D in (0.0, gain_D):
            right_SD = [np.clip(share_D + above_D + chosen.normal(0, 0.03), 0, 1) for _ in range(3)]
            runs.append([np.stack([x, 1 - x, 1 - x], -1)[:, None] for x in right_SD])
        gap = paired.compare(*runs, draws=50)
        held.append(gap.low <= 5.0 <= gap.high)
    assert 0.9 <= np.mean(held) <= 0.985


def test_what_does_not_differ_is_said_to_be_so(paired):
    runs = [paired.count(make_run(s)) for s in (0, 1, 2)]
    gap = paired.compare(runs, runs)
    assert (gap.points, gap.low, gap.high) == (0, 0, 0)
    assert str(gap) == "+0.0 (+0.0 to +0.0, not significant)"
    worse = [paired.count(make_run(s, right=0.3)) for s in (0, 1, 2)]
    assert "not significant" not in str(paired.compare(runs, worse))
    with pytest.raises(ValueError, match="as many runs of both systems"):
        paired.compare(runs, runs[:2])
    with pytest.raises(ValueError, match="all of the same documents"):
        paired.compare(runs[:1], [runs[0][:-1]])


def test_mentions_inside_of_others_are_found(paired):
    answers = ["0-3 protein", "1-3 DNA", "1-2 DNA", "2-5 cell", "7-8 cell", "7-8 DNA"]
    assert paired.find_inner(answers) == {"1-3 DNA", "1-2 DNA"}
    counts = paired.count_outermost([(answers, ["1-3 DNA", "7-8 cell"]), (["4-5 DNA"], ["4-6 DNA", "4-5 DNA"])])
    assert counts.tolist() == [[[1, 1, 3]], [[0, 1, 1]]]  # right, wrong, missed


def test_predictions_are_kept_and_read(paired, tmp_path, monkeypatch):
    monkeypatch.setattr(paired, "FOLDER", tmp_path)
    items = [
        ScoredItem(0, ((0, 3),), "person", True, True),
        ScoredItem(2, ((4, 9),), "art work", True, False),
        ScoredItem(2, ((4, 9), (0, 2)), "Cause-Effect(e1,e2)", False, True),
    ]
    answers = paired.answers_of(items, 3)
    assert answers[1] == ([], [])
    assert answers[2] == (["4-9 art work"], ["4-9,0-2 Cause-Effect(e1,e2)"])
    assert paired.keep("a/b.jsonl", answers) == "a/b.jsonl"
    assert paired.read("a/b.jsonl") == answers
    lines = [{"seed": seed, "predictions": "a/b.jsonl"} for seed in (0, 1)]
    assert paired.compare_lines(lines, [{"seed": 5, "predictions": "a/b.jsonl"}, {"seed": 0}]) is None
    assert paired.compare_lines(lines, lines[1:]).runs == 1


def test_runs_that_tune_keep_a_file_for_each_of_their_settings(paired, tmp_path, monkeypatch):
    monkeypatch.setattr(paired, "FOLDER", tmp_path)
    answers = [(["0-1 A"], ["0-1 B"])]

    def keep(rate, **asked):
        return paired.keep_run("task/one-0.jsonl", answers, settings={"rate": rate, "layers": None}, **asked)

    assert keep(0.1, limit=None, dev=False) == keep(0.2, limit=None, dev=False) == "task/one-0.jsonl"
    files = [keep(rate, limit=None, dev=True) for rate in (0.1, 0.2)]
    assert files == ["task_dev/one-0-0.1.jsonl", "task_dev/one-0-0.2.jsonl"]
    assert all(paired.read(file) == answers for file in files)
    assert keep(0.3, limit=10, dev=True) is None
    assert not (tmp_path / "task_dev" / "one-0-0.3.jsonl").exists()


def test_relations_with_the_labels_of_their_ends(paired):
    """As the scorer counts strict ones: both entities must have the gold's labels."""
    relations = [(["0-3,9-12 knows", "0-3,20-25 lives in"], ["0-3,9-12 knows", "9-12,0-3 knows"])]
    entities = [(["0-3 PER", "9-12 PER", "20-25 LOC"], ["0-3 PER", "9-12 ORG"])]
    gold = ["0-3,9-12 knows PER,PER", "0-3,20-25 lives in PER,LOC"]
    assert paired.with_types(relations, entities) == [(gold, ["0-3,9-12 knows PER,ORG", "9-12,0-3 knows ORG,PER"])]
