"""Scores are calibrated by a temperature and a shift, which are fitted to what is right."""

import numpy as np
import pytest
import torch
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.components.calibration import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    apply_calibration,
    fit_calibration,
    log_odds,
)
from spacy_luke.components.spans.found import FoundSpans, judged_spans
from spacy_luke.components.spans.gold import read_scored_spans
from spacy_luke.components.units.sides import joint_logits
from spacy_luke.scorers.reliability import measure_reliability
from tests.pipelines import annotate, make_pipeline


def draw(n, *, temperature, shift, seed=0):
    """Scores that are wrong in a known way, and what is right."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(1, 2, n)
    right = rng.random(n) < 1 / (1 + np.exp(-(odds / temperature + shift)))
    return (1 / (1 + np.exp(-odds))).tolist(), right.tolist()


@pytest.mark.parametrize(("temperature", "shift"), [(2.5, -0.5), (0.5, 0.0), (1.0, 1.0)])
def test_what_is_known_is_found(temperature, shift):
    scores, right = draw(20_000, temperature=temperature, shift=shift)
    fitted = fit_calibration(scores, right)
    assert fitted == pytest.approx((temperature, shift), rel=0.1, abs=0.06)
    after = apply_calibration(np.array(scores), *fitted)
    assert measure_reliability(list(zip(after.tolist(), right))).ece < 0.015
    assert measure_reliability(list(zip(scores, right))).ece > 0.03
    assert (np.argsort(after) == np.argsort(scores)).all()  # the order stays


def test_no_line_is_better():
    """The fit is the least of cross-entropy: no neighbour is less."""
    scores, right = draw(300, temperature=1.7, shift=0.3)
    n, target = sum(right), np.array(right)
    target = np.where(target, (n + 1) / (n + 2), 1 / (len(right) - n + 2))

    def loss(temperature, shift):
        p = apply_calibration(np.array(scores), temperature, shift)
        return -(target * np.log(p) + (1 - target) * np.log1p(-p)).sum()

    temperature, shift = fit_calibration(scores, right)
    best = loss(temperature, shift)
    for other in ((1.02, 0), (0.98, 0), (1, 0.03), (1, -0.03)):
        assert loss(temperature * other[0], shift + other[1]) > best


def test_extremes():
    with pytest.raises(ValueError, match="there are none"):
        fit_calibration([], [])
    for scores, right in (([0.9] * 40, [True] * 40), ([0.9, 0.8], [True, True]), ([0.2] * 9, [False] * 9)):
        temperature, shift = fit_calibration(scores, right)
        found = apply_calibration(np.array(scores), temperature, shift)
        assert LOWEST_TEMPERATURE <= temperature <= HIGHEST_TEMPERATURE
        assert ((0 < found) & (found < 1)).all()
        assert abs(found.mean() - ((len(right) + 1) / (len(right) + 2) if right[0] else 1 / (len(right) + 2))) < 0.02
    against, _ = fit_calibration([0.9] * 50 + [0.1] * 50, [False] * 50 + [True] * 50)  # the surest are wrong
    assert against == HIGHEST_TEMPERATURE
    parted, _ = fit_calibration([0.6] * 500 + [0.4] * 500, [True] * 500 + [False] * 500)
    assert LOWEST_TEMPERATURE <= parted < 0.2
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()


def test_a_bias_that_is_read_later():
    """The probabilities of shown spans, with one bias, are those of a prediction with it."""
    nlp = make_pipeline("luke_ner")
    ner = nlp.get_pipe("luke_ner")
    docs = [nlp.get_pipe("sentencizer")(nlp.make_doc("Ada Lovelace lived in London in 1840."))]
    low = ner.predict(docs, none_bias=-6.0, chance=0.0)
    for bias in (-1.5, 0.0, 2.0, 7.0):
        direct = ner.predict(docs, none_bias=bias, chance=0.0)
        for flat in (True, False):
            places, probabilities = low[0].shown(bias, before=-6.0, flat=flat)
            expected_places, expected = direct[0].shown(bias, before=bias, flat=flat)
            assert places == expected_places
            assert places == low[0].above(bias, flat=flat)
            assert probabilities == pytest.approx(expected, rel=1e-3)
    assert len(low[0].shown(-6.0, before=-6.0, flat=False)[0]) > len(places)


def test_judged_spans():
    nlp = make_pipeline("luke_ner")
    ner = nlp.get_pipe("luke_ner")
    doc = nlp.make_doc("Ada Lovelace left London .")
    reference = doc.copy()
    reference.set_ents([Span(reference, 0, 1, "PER"), Span(reference, 3, 4, "PER")])
    number = {label: i + 1 for i, label in enumerate(ner.labels)}
    rows = [[0, 1, "PER", 5.0, 0.9, 4.0, 1], [0, 2, "LOC", 3.0, 0.8, 2.0, 1], [3, 4, "LOC", 1.0, 0.6, 0.5, 0.2]]
    table = np.array([[a, b, number[label], *rest] for a, b, label, *rest in rows])

    def judged(bias, *, flat, chance=0.0):
        golds = [read_scored_spans(Example(doc, reference), spans_key=None)]
        settings = {"none_bias": bias, "proposal_threshold": chance}
        return judged_spans([FoundSpans.joined([table])], golds, ner.labels, settings, before=0.0, flat=flat)

    assert judged(0.0, flat=True) == ([0.9, 0.6], [True, False])
    assert judged(0.0, flat=True, chance=0.5) == ([0.9], [True])
    scores, right = judged(1.0, flat=False)
    assert right == [True, False]
    assert scores[0] == pytest.approx(0.9 / (1 + 0.9 * np.exp(-4.0) * (np.e - 1)))
    reference._.luke_scope = {"entities": {"annotates": ["PER"]}}  # nothing is known of places
    assert judged(0.0, flat=True) == ([0.9], [True])


@pytest.mark.parametrize("name", ["luke_ner", "luke_typer", "luke_relation"])
def test_settings_change_scores_and_not_their_order(name):
    """Temperature and shift move every score as `apply_calibration` does; what is shown stays where no threshold is
    compared."""
    nlp = make_pipeline("luke_ner", *({name} - {"luke_ner"}))
    before = shown(nlp, name)
    nlp.get_pipe(name).cfg.update(temperature=2.0, shift=-0.25)
    after = shown(nlp, name)
    assert before
    assert [x[:-1] for x in after] == [x[:-1] for x in before]
    expected = apply_calibration(np.array([x[-1] for x in before]), 2.0, -0.25)
    assert [x[-1] for x in after] == pytest.approx(expected.tolist(), abs=1e-5)


def test_scores_of_mentions():
    """A relation's score is its probability times the scores of its mentions, where both have one."""
    settings = {"none": "no", "multi_label": True, "threshold": 0.0}
    nlp = make_pipeline("luke_ner", "luke_relation", luke_relation=settings)
    alone = [doc._.luke_relations for doc in annotate(nlp)]
    nlp.get_pipe("luke_relation").mention_scores = True
    joint = [doc._.luke_relations for doc in annotate(nlp)]
    assert sum(map(len, alone)) > 0
    for before, after in zip(alone, joint, strict=True):
        for a, b in zip(before, after, strict=True):
            assert (a.head.start, a.tail.start, a.label) == (b.head.start, b.tail.start, b.label)
            expected = a.score * b.head._.luke_score * b.tail._.luke_score
            assert b.score == pytest.approx(expected, rel=1e-4)
            assert b.score < a.score
    logits = torch.tensor([[-3.0, 0.0, 40.0, -float("inf")]] * 2)
    found = joint_logits(logits, torch.tensor([1.0, 0.5]))
    assert torch.equal(found[0], logits[0])
    assert found[1].sigmoid().tolist() == pytest.approx([0.5 * x for x in logits[1].sigmoid().tolist()])
    with pytest.raises(ValueError, match=r"mention_scores = true needs multi_label = true"):
        make_pipeline("luke_ner", "luke_relation", luke_relation={"mention_scores": True})


def shown(nlp, name):
    if name == "luke_typer":
        nlp.get_pipe(name).cfg["threshold"] = 0.0
    rows = []
    for i, doc in enumerate(annotate(nlp)):
        if name == "luke_relation":
            rows += [(i, x.head.start, x.tail.start, x.label, x.score) for x in doc._.luke_relations]
            continue
        for span in doc.ents:
            found = {span.label_: span._.luke_score} if name == "luke_ner" else span._.luke_types
            rows += [(i, span.start, span.end, label, score) for label, score in sorted(found.items())]
    return rows
