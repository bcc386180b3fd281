import json
import random
from collections import Counter

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from spacy_luke.scorers.relations import make_relation_scorer

VOCAB = spacy.blank("en").vocab
WORDS = [f"w{i}" for i in range(6)]
score = make_relation_scorer()


def doc_of(relations=None, *, words=WORDS, pairs=None, entities=(), spaces=None, spans_key=None):
    """Places are words [start, end); a relation is (head, tail, label), a place is a number or (start, end)."""
    doc = Doc(VOCAB, words=words, spaces=spaces)

    def characters(place):
        start, end = place if isinstance(place, tuple) else (place, place + 1)
        return [doc[start:end].start_char, doc[start:end].end_char]

    if relations is not None:
        rows = [[*characters(head), *characters(tail), label, 1.0] for head, tail, label in relations]
        doc.user_data["luke_relations"] = rows
    if pairs is not None:
        doc.user_data["luke_pairs"] = [[*characters(head), *characters(tail)] for head, tail in pairs]
    spans = [Span(doc, start, end, label=label) for start, end, label in entities]
    if spans_key:
        doc.spans[spans_key] = spans
    else:
        doc.set_ents(spans)
    return doc


def classified(golds, predictions, none="Other"):
    """Two words a pair, one pair a document; labels as a classifier has them."""
    return [
        Example(
            doc_of([] if p == none else [(0, 1, p)], pairs=[(0, 1)]), doc_of([] if g == none else [(0, 1, g)], pairs=[(0, 1)])  # noqa: E501
        )
        for g, p in zip(golds, predictions, strict=True)
    ]  # fmt: skip


def f1(p, r):
    return 2 * p * r / (p + r) if p + r else 0.0


def plain_classification(golds, predictions, none):
    """Accuracy; micro without the class `none`; P, R and F1 of each label of the gold."""
    pairs = list(zip(golds, predictions, strict=True))
    right = sum(g == p != none for g, p in pairs)
    n_predicted, n_gold = sum(p != none for p in predictions), sum(g != none for g in golds)
    micro = (right / n_predicted if n_predicted else 0.0, right / n_gold if n_gold else 0.0)
    per_label = {}
    for label in set(golds) - {none}:
        both = sum(g == p == label for g, p in pairs)
        own = both / max(predictions.count(label), 1), both / golds.count(label)
        per_label[label] = (*own, f1(*own))
    accuracy = sum(g == p for g, p in pairs) / len(pairs)
    return accuracy, (*micro, f1(*micro)), per_label


def plain_semeval(golds, predictions):
    """The confusion matrix of semeval2010_task8_scorer-v1.2.pl, (9+1)-way with directionality."""
    matrix, wrong_direction = Counter(), Counter()
    for gold, predicted in zip(golds, predictions, strict=True):
        g, p = gold.partition("(")[0], predicted.partition("(")[0]
        if g == p and gold != predicted:
            wrong_direction[g] += 1
        else:
            matrix[p, g] += 1
    names = {gold.partition("(")[0] for gold in golds} - {"Other"}
    scores = []
    for name in names:
        proposed = sum(n for (p, _), n in matrix.items() if p == name)
        actual = sum(n for (_, g), n in matrix.items() if g == name) + wrong_direction[name]
        precision = matrix[name, name] / (proposed + wrong_direction[name]) if proposed else 0.0
        scores.append(f1(precision, matrix[name, name] / actual))
    return sum(scores) / len(scores)


@pytest.mark.parametrize("seed", range(20))
def test_given_pairs_are_scored_as_published(seed):
    rng = random.Random(seed)
    labels = ["NA", "a", "b", "c"]
    golds = [rng.choice(labels) for _ in range(rng.randint(3, 40))]
    golds[0] = "a"
    predictions = [g if rng.random() < 0.6 else rng.choice(labels) for g in golds]
    scores = score(classified(golds, predictions, none="NA"))
    accuracy, micro, per_label = plain_classification(golds, predictions, "NA")
    assert scores["relations_accuracy"] == pytest.approx(accuracy)
    assert [scores[f"relations_{x}"] for x in "prf"] == pytest.approx(micro)
    means = [sum(own) / len(own) for own in zip(*per_label.values(), strict=True)]
    assert [scores[f"relations_macro_{x}"] for x in "prf"] == pytest.approx(means)
    for label, own in per_label.items():
        assert [scores["relations_per_type"][label][x] for x in "prf"] == pytest.approx(own)
    assert scores["relations_semeval_f"] is None


@pytest.mark.parametrize("seed", range(20))
def test_semeval_as_its_official_scorer(seed):
    rng = random.Random(seed)
    names = ["Cause-Effect", "Part-Whole", "X-Y", "Z-Z"][: rng.randint(1, 4)]
    labels = ["Other", *(f"{name}({d})" for name in names for d in ("e1,e2", "e2,e1"))]
    golds = [rng.choice(labels) for _ in range(rng.randint(3, 60))]
    golds[0] = "X-Y(e1,e2)"
    predictions = [g if rng.random() < 0.5 else rng.choice([*labels, "New-One(e1,e2)"]) for g in golds]
    assert score(classified(golds, predictions))["relations_semeval_f"] == pytest.approx(
        plain_semeval(golds, predictions)
    )


@pytest.mark.slow
def test_semeval_on_the_real_key(shared):
    """All 2,717 labels, an arbitrary third of them wrong."""
    lines = shared("data/semeval2010_task8/SemEval2010_task8_testing_keys/TEST_FILE_FULL.TXT").read_text().splitlines()
    golds = lines[1::4]
    rng = random.Random(0)
    predictions = [g if rng.random() < 0.67 else rng.choice(golds) for g in golds]
    scores = score(classified(golds, predictions))
    assert scores["relations_semeval_f"] == pytest.approx(plain_semeval(golds, predictions))
    assert score(classified(golds, golds))["relations_semeval_f"] == pytest.approx(1.0)


def test_golden(shared):
    """TACRED's script gives precision 1 where nothing is predicted; otherwise all figures agree."""
    cases = json.loads(shared("golden/relation_metrics.json").read_text())["sets"]
    assert cases
    for case in cases:
        scores = score(classified(case["gold"], case["predicted"], none="NA"))
        found = [scores[f"relations_{x}"] or 0.0 for x in "prf"]
        expected = case["eval_result"]
        assert scores["relations_accuracy"] == pytest.approx(expected["acc"])
        assert found == pytest.approx([expected[f"micro_{x}"] for x in ("p", "r", "f1")])
        official = case["tacred_scorer"]
        assert found[1:] == pytest.approx([official["recall"], official["f1"]])
        if set(case["predicted"]) != {"NA"}:
            assert found[0] == pytest.approx(official["precision"])


@pytest.mark.parametrize("seed", range(20))
def test_end_to_end_is_plain_sets(seed):
    """Boundary and strict F1 (SpERT, PURE): relations that nobody proposed are misses."""
    rng = random.Random(seed)
    golds, found, examples = [], [], []
    for i in range(4):
        sides = []
        for _ in range(2):
            entities = {n: rng.choice("AB") for n in range(6) if rng.random() < 0.7}
            pairs = [(h, t) for h in entities for t in entities if h != t]
            chosen = rng.sample(pairs, min(len(pairs), rng.randint(0, 8)))
            sides.append((entities, {(h, t, rng.choice("rs")) for h, t in chosen}))
        (gold_entities, gold), (entities, predicted) = sides
        predicted |= {row for row in gold if rng.random() < 0.5 and {row[0], row[1]} <= set(entities)}
        golds += [(i, *row, gold_entities[row[0]], gold_entities[row[1]]) for row in gold]
        found += [(i, *row, entities[row[0]], entities[row[1]]) for row in predicted]
        docs = [
            doc_of(sorted(rows), entities=[(n, n + 1, label) for n, label in sorted(labels.items())])
            for labels, rows in ((entities, predicted), (gold_entities, gold))
        ]
        examples.append(Example(*docs))
    scores = score(examples)

    def micro(golds, found):
        right = len(set(golds) & set(found))
        p, r = right / max(len(found), 1), right / max(len(golds), 1)
        return p, r, f1(p, r)

    assert [scores[f"relations_strict_{x}"] for x in "prf"] == pytest.approx(micro(golds, found))
    assert [scores[f"relations_{x}"] for x in "prf"] == pytest.approx(
        micro([row[:4] for row in golds], [row[:4] for row in found])
    )
    assert scores["relations_accuracy"] is None


def test_predictions_for_pairs_that_are_not_given_do_not_count():
    gold = doc_of([(0, 1, "a")], pairs=[(0, 1), (2, 3)])
    predicted = doc_of([(0, 1, "a"), (1, 0, "a"), (4, 5, "b")])
    scores = score([Example(predicted, gold)])
    assert (scores["relations_f"], scores["relations_accuracy"]) == (1.0, 1.0)
    assert score([Example(predicted, doc_of([(0, 1, "a")]))])["relations_p"] == pytest.approx(1 / 3)


def test_pairs_with_several_labels():
    gold = doc_of([(0, 1, "a"), (0, 1, "b"), (2, 3, "a")], pairs=[(0, 1), (2, 3)])
    predicted = doc_of([(0, 1, "a"), (2, 3, "a")])
    scores = score([Example(predicted, gold)])
    assert (scores["relations_p"], scores["relations_accuracy"]) == (1.0, 0.5)
    assert scores["relations_r"] == pytest.approx(2 / 3)


def test_other_words_and_blanks():
    """Blanks of the gold are unknown, its words are others: characters decide."""
    entities = [(0, 1, "PER"), (2, 5, "LOC")]
    gold = doc_of([(0, (2, 5), "in"), ((2, 5), 0, "of")], words=["Mary-Ann", "in", "(", "Bonn", ")"], entities=entities)
    words, spaces = ["Mary", "-", "Ann", "in", "(Bonn", ")"], [False, False, True, True, False, False]
    predicted = doc_of(
        [((0, 3), (4, 6), "in"), ((4, 6), (0, 2), "of")],
        words=words,
        spaces=spaces,
        entities=[(0, 3, "PER"), (4, 6, "ORG")],
    )
    assert predicted.text != gold.text
    scores = score([Example(predicted, gold)])
    assert scores["relations_per_type"]["in"]["f"] == 1.0
    assert scores["relations_per_type"]["of"]["f"] == 0.0  # "Mary-" is not "Mary-Ann"
    assert scores["relations_strict_f"] == 0.0  # LOC is not ORG
    predicted.set_ents([Span(predicted, 0, 3, label="PER"), Span(predicted, 4, 6, label="LOC")])
    assert score([Example(predicted, gold)])["relations_strict_f"] == 0.5
    with pytest.raises(ValueError, match="must have the same characters, blanks apart"):
        score([Example(doc_of([], words=["x"]), gold)])


def test_entities_of_a_span_group():
    gold = doc_of([(0, (1, 3), "r")], entities=[(0, 1, "A"), (1, 3, "B"), (1, 2, "C")], spans_key="sc")
    predicted = doc_of([(0, (1, 3), "r")], entities=[(0, 1, "A"), (1, 3, "B")], spans_key="sc")
    assert make_relation_scorer(spans_key="sc")([Example(predicted, gold)])["relations_strict_f"] == 1.0
    predicted.spans["sc"] = [Span(predicted, 0, 1, label="B"), Span(predicted, 1, 3, label="B")]
    scores = make_relation_scorer(spans_key="sc")([Example(predicted, gold)])
    assert (scores["relations_strict_f"], scores["relations_f"]) == (0.0, 1.0)


def test_nothing_to_score():
    predicted = doc_of([(0, 1, "a")])
    assert set(score([Example(predicted, doc_of())]).values()) == {None}  # not annotated
    scores = score([Example(doc_of([]), doc_of([]))])
    assert set(scores.values()) == {None}
    scores = score([Example(predicted, doc_of([]))])
    assert (scores["relations_p"], scores["relations_f"], scores["relations_macro_f"]) == (0.0, 0.0, None)


def test_the_name_of_no_relation_is_none():
    gold = doc_of([(0, 1, "NA"), (1, 2, "a")], pairs=[(0, 1), (1, 2)])
    scores = score([Example(doc_of([(1, 2, "a")]), gold)], none="NA", threshold=0.5)
    assert (scores["relations_f"], scores["relations_accuracy"]) == (1.0, 1.0)


def test_as_a_registered_scorer():
    assert registry.scorers.get("spacy-luke.relation_scorer.v1") is make_relation_scorer
    resolved = registry.resolve({"scorer": {"@scorers": "spacy-luke.relation_scorer.v1", "spans_key": "sc"}})
    assert resolved["scorer"]([], labels=["a"])["relations_f"] is None
