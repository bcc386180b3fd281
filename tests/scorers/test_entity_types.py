import json
import random

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from spacy_luke.annotations import register_extensions
from spacy_luke.scorers.entity_types import make_typing_scorer

VOCAB = spacy.blank("en").vocab
LABELS = ["a", "b", "c", "d", "e"]
score = make_typing_scorer()
register_extensions()


def plain_scores(pairs):
    """Strict, loose macro and loose micro as published: pairs of gold and predicted sets."""
    n = len(pairs)
    strict = sum(g == p for g, p in pairs) / n
    macro_p = sum(len(g & p) / len(p) for g, p in pairs if p) / n
    macro_r = sum(len(g & p) / len(g) for g, p in pairs if g) / n
    right = sum(len(g & p) for g, p in pairs)
    n_predicted, n_gold = sum(len(p) for _, p in pairs), sum(len(g) for g, _ in pairs)
    micro_p = right / n_predicted if n_predicted else 0.0
    micro_r = right / n_gold if n_gold else 0.0

    def f1(p, r):
        return 2 * p * r / (p + r) if p + r else 0.0

    return {
        "types_strict": strict,
        "types_macro_p": macro_p,
        "types_macro_r": macro_r,
        "types_macro_f": f1(macro_p, macro_r),
        "types_micro_p": micro_p,
        "types_micro_r": micro_r,
        "types_micro_f": f1(micro_p, micro_r),
    }


def example_of(pairs, words=None):
    """A document with a mention a word, each with gold and predicted types."""
    words = words or [f"w{i}" for i in range(len(pairs))]
    gold, predicted = Doc(VOCAB, words=words), Doc(VOCAB, words=words)
    gold.spans["luke_types"] = [
        Span(gold, i, i + 1, label=label) for i, (types, _) in enumerate(pairs) for label in (sorted(types) or [""])
    ]
    for i, (_, types) in enumerate(pairs):
        predicted[i : i + 1]._.luke_types = dict.fromkeys(types, 0.9)
    return Example(predicted, gold)


def assert_equal(scores, expected):
    assert {name: scores[name] for name in expected} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_equal_to_the_published_definitions(seed):
    rng = random.Random(seed)
    share = rng.choice([0.0, 0.2, 0.5, 0.9])

    def some():
        return {label for label in LABELS if rng.random() < share}

    documents = [[(some(), some()) for _ in range(rng.randint(1, 6))] for _ in range(rng.randint(1, 5))]
    if seed % 3 == 0:
        documents = [[(g, g if rng.random() < 0.6 else p) for g, p in pairs] for pairs in documents]
    scores = score([example_of(pairs) for pairs in documents])
    assert_equal(scores, plain_scores([pair for pairs in documents for pair in pairs]))


@pytest.mark.parametrize("rule", ["openentity", "figer"])
def test_golden(shared, rule):
    """The predicted sets are those that the two rules give; thresholds are the typer's, not the scorer's."""
    cases = json.loads(shared("golden/typing_metrics.json").read_text())["sets"]
    assert cases
    for case in cases:
        gold = [{LABELS[i] if i < 5 else f"t{i}" for i, x in enumerate(row) if x} for row in case["gold"]]
        predicted = [{LABELS[i] if i < 5 else f"t{i}" for i in row} for row in case[rule]["predicted"]]
        logits = case["logits"]
        rules = {
            "openentity": [[i for i, x in enumerate(row) if x > 0] for row in logits],
            "figer": [[i for i, x in enumerate(row) if x > 0 or x == max(row)] for row in logits],
        }
        assert rules[rule] == [sorted(row) for row in case[rule]["predicted"]]
        scores = score([example_of(list(zip(gold, predicted, strict=True)))])
        assert scores["types_strict"] == pytest.approx(case[rule]["strict_accuracy"], abs=1e-12)
        for name, key in (("loose_macro", "types_macro"), ("loose_micro", "types_micro")):
            expected = case[rule][name]
            if isinstance(expected, str):  # the reference divides by zero where there is no gold label at all
                assert expected == "ZeroDivisionError"
                expected = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
            found = {x: scores[f"{key}_{x[0]}"] for x in ("precision", "recall", "f1")}
            assert found == pytest.approx(expected, abs=1e-12)


def test_per_type():
    scores = score([example_of([({"a"}, {"a", "b"}), ({"b"}, set())])])
    assert scores["types_per_type"] == {"a": {"p": 1.0, "r": 1.0, "f": 1.0}, "b": {"p": 0.0, "r": 0.0, "f": 0.0}}


def test_other_words_and_blanks():
    """The prediction has real text, the gold words with unknown blanks, cut otherwise."""
    gold = Doc(VOCAB, words=["Mary-Ann", "isn't", "here", "(", "yet", ")"])
    gold.spans["luke_types"] = [
        Span(gold, 0, 1, label="person"),
        Span(gold, 4, 6, label="time"),
        Span(gold, 2, 3, label="x"),
    ]
    predicted = Doc(
        VOCAB,
        words=["Mary", "-", "Ann", "is", "n't", "here(", "yet", ")"],
        spaces=[False, False, True, False, True, False, False, False],
    )
    predicted[0:3]._.luke_types = {"person": 0.9}
    predicted[6:8]._.luke_types = {"time": 0.8, "y": 0.7}
    scores = score([Example(predicted, gold)])
    assert scores["types_per_type"]["person"]["f"] == 1.0
    assert scores["types_per_type"]["time"]["f"] == 1.0
    assert scores["types_micro_p"] == pytest.approx(2 / 3)
    assert scores["types_per_type"]["x"]["r"] == 0.0  # "here" is no word of the prediction


def test_what_is_not_annotated_is_left_out():
    nothing = Doc(VOCAB, words=["a"])
    predicted = Doc(VOCAB, words=["a"])
    predicted[0:1]._.luke_types = {"x": 0.9}
    scores = score([Example(predicted, nothing)])
    assert set(scores.values()) == {None}
    bare = example_of([(set(), set())])
    scores = score([bare])
    assert (scores["types_strict"], scores["types_micro_f"], scores["types_macro_f"]) == (1.0, 0.0, 0.0)


def test_spans_that_the_gold_does_not_have_are_not_scored():
    example = example_of([({"a"}, {"a"}), (set(), set())])
    example.predicted[0:2]._.luke_types = {"b": 0.9}
    assert score([example])["types_micro_f"] == 1.0


def test_as_a_registered_scorer():
    assert registry.scorers.get("spacy-luke.typing_scorer.v1") is make_typing_scorer
    assert score([], threshold=0.5, labels=["a"])["types_micro_f"] is None
