import random
import re
from collections import Counter
from functools import partial

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import f1_score, precision_score, recall_score
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from spacy_luke.readers.conll import make_column_doc, read_columns
from spacy_luke.readers.schemes import decode_tags
from spacy_luke.scorers.ner import make_ner_scorer

VOCAB = spacy.blank("en").vocab
score_ents = make_ner_scorer()
score_spans = partial(make_ner_scorer(), spans_key="sc")
TAGS = ["O", "O", *(f"{prefix}-{label}" for prefix in "BI" for label in ("PER", "LOC", "ORG"))]
BIOES = ["O", *(f"{prefix}-{label}" for prefix in "BIES" for label in ("PER", "LOC"))]


def conlleval(gold_sentences, predicted_sentences):
    """The plain algorithm of conlleval (CoNLL-2000, 2003): one pass over the words, a blank line is an O.

    Returns (precision, recall, f1) over all, and per label.
    """
    gold_count, predicted_count, correct = Counter(), Counter(), Counter()
    in_correct = False
    last_gold = last_predicted = ("O", "")
    rows = []
    for gold, predicted in zip(gold_sentences, predicted_sentences, strict=True):
        rows += [*zip(gold, predicted, strict=True), ("O", "O")]

    def begins(last, now):
        return (
            now[0] in ("B", "S")
            or (last[0] in ("E", "S", "O") and now[0] in ("E", "I"))
            or (now[0] != "O" and last[1] != now[1])
        )

    def ends(last, now):
        return (
            last[0] in ("E", "S")
            or (last[0] in ("B", "I") and now[0] in ("B", "S", "O"))
            or (last[0] != "O" and last[1] != now[1])
        )

    for gold_tag, predicted_tag in rows:
        gold, predicted = tuple(gold_tag.partition("-")[::2]), tuple(predicted_tag.partition("-")[::2])
        gold_ends, predicted_ends = ends(last_gold, gold), ends(last_predicted, predicted)
        gold_begins, predicted_begins = begins(last_gold, gold), begins(last_predicted, predicted)
        if in_correct:
            if gold_ends and predicted_ends:
                in_correct = False
                correct[last_gold[1]] += 1
            elif gold_ends != predicted_ends or gold[1] != predicted[1]:
                in_correct = False
        if gold_begins and predicted_begins and gold[1] == predicted[1]:
            in_correct = True
        gold_count[gold[1]] += gold_begins
        predicted_count[predicted[1]] += predicted_begins
        last_gold, last_predicted = gold, predicted

    def measure(n_correct, n_predicted, n_gold):
        p = n_correct / n_predicted if n_predicted else 0.0
        r = n_correct / n_gold if n_gold else 0.0
        return p, r, 2 * p * r / (p + r) if p + r else 0.0

    total = measure(correct.total(), predicted_count.total(), gold_count.total())
    labels = {label for counts in (gold_count, predicted_count) for label in counts if counts[label]}
    return total, {label: measure(correct[label], predicted_count[label], gold_count[label]) for label in labels}


def doc_of(words, mentions, spans_key=None):
    doc = Doc(VOCAB, words=words)
    spans = [Span(doc, start, end, label=label) for start, end, label in mentions]
    if spans_key is None:
        doc.set_ents(spans)
    else:
        doc.spans[spans_key] = spans
    return doc


def example_of(gold_tags, predicted_tags):
    words = [f"w{i}" for i in range(len(gold_tags))]
    return Example(doc_of(words, decode_tags(predicted_tags)), doc_of(words, decode_tags(gold_tags)))


def random_sentences(seed, tags, n_sentences=40):
    """Gold tags and predictions that are right three times in four."""
    rng = random.Random(seed)
    gold = [[rng.choice(tags) for _ in range(rng.randint(1, 12))] for _ in range(n_sentences)]
    predicted = [[tag if rng.random() < 0.75 else rng.choice(tags) for tag in sentence] for sentence in gold]
    return gold, predicted


def assert_equal_to_oracles(gold, predicted):
    scores = score_ents([example_of(*pair) for pair in zip(gold, predicted, strict=True)])
    overall, per_label = conlleval(gold, predicted)
    assert (scores["ents_p"], scores["ents_r"], scores["ents_f"]) == pytest.approx(overall, abs=1e-12)
    assert {label: (s["p"], s["r"], s["f"]) for label, s in scores["ents_per_type"].items()} == {
        label: pytest.approx(values, abs=1e-12) for label, values in per_label.items()
    }
    seqeval_scores = [f(gold, predicted, zero_division=0) for f in (precision_score, recall_score, f1_score)]
    assert seqeval_scores == pytest.approx(overall, abs=1e-12)


@pytest.mark.parametrize("tags", [TAGS, BIOES], ids=["IOB", "BIOES"])
@pytest.mark.parametrize("seed", range(20))
def test_equal_to_conlleval_and_seqeval(seed, tags):
    assert_equal_to_oracles(*random_sentences(seed, tags))


@given(st.lists(st.lists(st.tuples(*[st.sampled_from(TAGS)] * 2), min_size=1, max_size=6), min_size=1, max_size=3))
def test_equal_to_conlleval_and_seqeval_on_small_cases(sentences):
    gold = [[tag for tag, _ in sentence] for sentence in sentences]
    predicted = [[tag for _, tag in sentence] for sentence in sentences]
    if all(tag == "O" for sentence in gold + predicted for tag in sentence):
        gold[0][0] = predicted[0][0] = "B-PER"
    assert_equal_to_oracles(gold, predicted)


@pytest.mark.slow
def test_equal_on_conll2003(shared):
    """Noise on the real tags: shifted labels, lost and new mentions; whole documents give what sentences give."""
    path = shared("data/conll2003/eng.testb")
    rng = random.Random(0)
    blocks = path.read_text(encoding="utf8").strip().split("\n\n")
    gold = [[row.split()[-1] for row in block.split("\n")] for block in blocks if not block.startswith("-DOCSTART-")]
    predicted = [[tag if rng.random() < 0.95 else rng.choice(TAGS) for tag in sentence] for sentence in gold]
    assert_equal_to_oracles(gold, predicted)
    examples, tags = [], iter(predicted)
    for document in read_columns(path, format="conll2003"):
        mentions = [
            (start + i, start + j, label)
            for start in document.sentence_starts
            for i, j, label in decode_tags(next(tags))
        ]
        examples.append(Example(doc_of(document.words, mentions), make_column_doc(VOCAB, document)))
    assert score_ents(examples)["ents_f"] == pytest.approx(conlleval(gold, predicted)[0][2], abs=1e-12)


@st.composite
def nested_mentions(draw):
    spans = st.tuples(st.integers(0, 7), st.integers(1, 8), st.sampled_from(["A", "B"]))
    return draw(st.sets(spans.filter(lambda span: span[0] < span[1]), max_size=8))


@given(st.lists(st.tuples(nested_mentions(), nested_mentions()), max_size=4))
def test_nested_is_plain_sets(pairs):
    words = [f"w{i}" for i in range(8)]
    examples = [Example(doc_of(words, predicted, "sc"), doc_of(words, gold, "sc")) for gold, predicted in pairs]
    scores = score_spans(examples)
    n_gold = sum(len(gold) for gold, _ in pairs)
    n_predicted = sum(len(predicted) for _, predicted in pairs)
    n_correct = sum(len(gold & predicted) for gold, predicted in pairs)
    if not n_gold + n_predicted:
        assert scores == {"spans_sc_p": None, "spans_sc_r": None, "spans_sc_f": None, "spans_sc_per_type": None}
        return
    f1 = 2 * n_correct / (n_gold + n_predicted)
    assert scores["spans_sc_f"] == pytest.approx(f1, abs=1e-12)
    assert scores["spans_sc_p"] == pytest.approx(n_correct / max(n_predicted, 1), abs=1e-12)
    assert scores["spans_sc_r"] == pytest.approx(n_correct / max(n_gold, 1), abs=1e-12)
    labels = {label for pair in pairs for side in pair for _, _, label in side}
    assert set(scores["spans_sc_per_type"]) == labels


def test_a_prediction_given_twice_counts_once():
    gold, predicted = doc_of(["a", "b"], [(0, 1, "X")], "sc"), doc_of(["a", "b"], [(0, 1, "X"), (0, 1, "X")], "sc")
    assert score_spans([Example(predicted, gold)])["spans_sc_p"] == 1.0


def test_predictions_that_do_not_align_are_wrong():
    """'do' + "n't" against the gold word "don't": the prediction on 'do' alone must not be right."""
    gold = doc_of(["I", "don't", "know", "Mary-Ann"], [(1, 2, "X"), (3, 4, "PER")])
    words = ["I", "do", "n't", "know", "Mary", "-", "Ann"]
    scores = score_ents([Example(doc_of(words, [(1, 2, "X"), (4, 7, "PER")]), gold)])
    assert (scores["ents_p"], scores["ents_r"]) == (0.5, 0.5)
    assert scores["ents_per_type"]["PER"] == {"p": 1.0, "r": 1.0, "f": 1.0}
    assert scores["ents_per_type"]["X"] == {"p": 0.0, "r": 0.0, "f": 0.0}
    assert score_ents([Example(doc_of(words, [(1, 3, "X"), (4, 7, "PER")]), gold)])["ents_f"] == 1.0
    coarse = doc_of(["I", "don't know", "Mary-Ann"], [(1, 2, "X")])
    assert score_ents([Example(coarse, gold)])["ents_p"] == 0.0


def test_blank_words_do_not_disturb_the_alignment():
    gold = doc_of(["New", "York", "\n", "is", "big"], [(0, 2, "LOC")])
    predicted = doc_of([" ", "New", " ", "York", "is", "\n\n", "big"], [(1, 4, "LOC"), (5, 6, "X")])
    scores = score_ents([Example(predicted, gold)])
    assert scores["ents_per_type"]["LOC"]["f"] == 1.0
    assert scores["ents_per_type"]["X"]["p"] == 0.0


def test_different_texts_are_an_error():
    example = Example(doc_of(["a"], []), doc_of(["a"], []))
    example.predicted = doc_of(["abc"], [(0, 1, "X")])
    with pytest.raises(ValueError, match=re.escape("must have the same characters, blanks apart")):
        score_ents([example])


def test_missing_annotation_is_left_out():
    words = ["a", "b", "c"]
    unannotated = Doc(VOCAB, words=words)
    partly = Doc(VOCAB, words=words)
    partly.set_ents([Span(partly, 0, 1, label="X")], missing=[partly[2:3]], default="outside")
    predicted = [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]
    nothing = {"ents_p": None, "ents_r": None, "ents_f": None, "ents_per_type": None}
    assert score_ents([Example(doc_of(words, predicted), unannotated)]) == nothing
    scores = score_ents([Example(doc_of(words, predicted), partly)])
    assert (scores["ents_p"], scores["ents_r"]) == (0.5, 1.0)
    finer = doc_of(["a", "b", "c"], [(0, 1, "X")])
    assert score_spans([Example(finer, unannotated)])["spans_sc_f"] is None
    assert score_spans([Example(unannotated, doc_of(words, predicted, "sc"))])["spans_sc_r"] == 0.0
    assert score_ents([]) == nothing


def test_as_a_registered_scorer():
    assert registry.scorers.get("spacy-luke.ner_scorer.v1") is make_ner_scorer
    score = registry.resolve({"scorer": {"@scorers": "spacy-luke.ner_scorer.v1"}})["scorer"]
    names = ["p", "r", "f", "per_type"]
    assert score([], threshold=0.5) == {f"ents_{name}": None for name in names}
    assert score([], threshold=0.5, spans_key="x") == {f"spans_x_{name}": None for name in names}
