"""GLUE's metrics against their plain definitions."""

import math
import random

import pytest
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_luke.readers.datasets import glue as reader
from spacy_luke.scorers import glue

NLP = spacy.blank("en")


def example(gold, predicted):
    docs = [Doc(NLP.vocab, words=["a"]) for _ in range(2)]
    docs[0].cats, docs[1].cats = predicted, gold
    return Example(*docs)


def hard(labels, label, rest=0.0):
    return {name: 1.0 if name == label else rest for name in labels}


def score(task, pairs):
    return glue.make_glue_scorer(task)([example(*pair) for pair in pairs], threshold=0.5)


def test_the_reader_knows_the_same_tasks_and_labels():
    assert set(reader.GLUE_TASKS) == set(glue.METRICS)
    for task, label in glue.POSITIVE.items():
        labels = reader.GLUE_TASKS[task].labels
        assert label == "similar" if labels is None else label in labels.values()
    with pytest.raises(ValueError, match="task must be one of"):
        glue.make_glue_scorer("ax")
    assert spacy.registry.scorers.get("spacy-luke.glue_scorer.v1") is glue.make_glue_scorer


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("task", ["mrpc", "qqp", "cola", "rte"])
def test_two_labels(task, seed):
    rng = random.Random(seed)
    negative, positive = list(reader.GLUE_TASKS[task].labels.values())
    gold = [rng.random() < 0.6 for _ in range(40)]
    predicted = [g if rng.random() < 0.7 else not g for g in gold]
    labels = (negative, positive)
    found = score(
        task,
        [(hard(labels, labels[g]), {labels[p]: 0.6, labels[not p]: 0.4}) for g, p in zip(gold, predicted, strict=True)],
    )
    tp = sum(g and p for g, p in zip(gold, predicted, strict=True))
    tn = sum(not g and not p for g, p in zip(gold, predicted, strict=True))
    fp = sum(not g and p for g, p in zip(gold, predicted, strict=True))
    fn = sum(g and not p for g, p in zip(gold, predicted, strict=True))
    precision, recall = tp / (tp + fp), tp / (tp + fn)
    expected = {
        "glue_accuracy": (tp + tn) / 40,
        "glue_f": 2 * precision * recall / (precision + recall),
        "glue_matthews": (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)),
    }
    wanted = {"mrpc": ["glue_accuracy", "glue_f"], "cola": ["glue_matthews"], "rte": ["glue_accuracy"]}
    wanted = {name: expected[name] for name in wanted.get(task, wanted["mrpc"])}
    assert found == pytest.approx({**wanted, "glue_score": sum(wanted.values()) / len(wanted)})


def test_three_labels():
    labels = ["entailment", "neutral", "contradiction"]
    pairs = [(hard(labels, a), hard(labels, b, 0.9)) for a, b in [(labels[0], labels[0]), (labels[1], labels[2])]]
    assert score("mnli", pairs) == {"glue_accuracy": 0.5, "glue_score": 0.5}


def plain_pearson(xs, ys):
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    return covariance / math.sqrt(sum((a - x) ** 2 for a in xs) * sum((b - y) ** 2 for b in ys))


def plain_ranks(xs):
    return [sum(other < x for other in xs) + (sum(other == x for other in xs) + 1) / 2 for x in xs]


@pytest.mark.parametrize("seed", range(5))
def test_correlations(seed):
    rng = random.Random(seed)
    gold = [rng.randrange(11) / 10 for _ in range(30)]  # with ties
    predicted = [round(min(max(g + rng.gauss(0, 0.3), 0), 1), 1) for g in gold]
    cats = [[{"similar": x, "dissimilar": 1 - x} for x in side] for side in (gold, predicted)]
    found = score("stsb", list(zip(*cats, strict=True)))
    pearson = plain_pearson(gold, predicted)
    spearman = plain_pearson(plain_ranks(gold), plain_ranks(predicted))
    assert found == pytest.approx(
        {"glue_pearson": pearson, "glue_spearman": spearman, "glue_score": (pearson + spearman) / 2}
    )


def test_edges():
    yes, no = ({"acceptable": x, "unacceptable": 1 - x} for x in (1.0, 0.0))
    assert score("cola", [(yes, yes), (no, yes)])["glue_matthews"] == 0.0  # one label only
    alike = {"equivalent": 0.0, "not_equivalent": 1.0}
    assert score("mrpc", [(alike, alike)]) == {"glue_accuracy": 1.0, "glue_f": 0.0, "glue_score": 0.5}
    same = {"similar": 0.1, "dissimilar": 0.9}
    assert score("stsb", [(same, same)] * 3)["glue_pearson"] == 0.0
    assert score("cola", [({}, yes)]) == score("cola", []) == {"glue_matthews": None, "glue_score": None}
    assert score("cola", [({}, {}), (yes, yes), (no, no)])["glue_matthews"] == 1.0  # what has no gold is left out
    with pytest.raises(ValueError, match="document 1 has none"):
        score("cola", [(yes, yes), (yes, {})])
    with pytest.raises(ValueError, match="Expected the category 'similar'"):
        score("stsb", [(yes, yes)])
