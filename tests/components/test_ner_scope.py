"""luke_ner learns from Docs whose gold leaves labels open: what it is taught, and that the rest teaches nothing."""

import numpy as np
import pytest
import torch
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.pipelines.score_tables import make_table
from spacy_luke.scorers.items import entity_items
from tests.components.recognised import FLAT, LABELS, gold_docs, make_ner, make_noisy_ner
from tests.components.recognised import make_examples as make_entities
from tests.tiny import make_checkpoint

NONE, LOC, ORG, PER = range(4)
PEOPLE, PLACES, GROUPS = (
    [next(x for x, own in some if own == label) for some in FLAT[:3]] for label in ("PER", "LOC", "ORG")
)


def classes_of(ner, example):
    """What each candidate span may be, as sets of classes."""
    gold = ner.gold(example)
    found = {}
    for item in ner.items(0, example.predicted, gold):
        for a, b, number in zip(item.spans.start_E.tolist(), item.spans.end_E.tolist(), item.gold_E.tolist()):
            found[a, b] = set(gold.allowed.classes(number))
    return found


def annotated(nlp, i=0, spans_key=None, **scope):
    gold = gold_docs(nlp, spans_key)[i]
    gold._.luke_scope = {"entities": scope}
    return Example(nlp.make_doc(gold.text), gold)


def state(nlp):
    return {(name, key): p.detach().clone() for name, c in nlp.pipeline for key, p in c.named_parameters()}


def test_spans_may_be_what_their_source_does_not_annotate():
    nlp, ner = make_ner()
    labels = {"LOC": ["LOC", "ORG"], "ORG": None, "PER": ["PER", ""]}
    example = annotated(nlp, annotates=["PER", "LOC"], labels=labels)
    found = classes_of(ner, example)
    places = {(x.start, x.end): x.label_ for x in example.reference.ents}
    wanted = {"LOC": {LOC, ORG}, "ORG": {NONE, LOC, ORG, PER}, "PER": {NONE, PER}}
    assert {x: found[x] for x in places} == {x: wanted[label] for x, label in places.items()}
    assert {frozenset(x) for place, x in found.items() if place not in places} == {frozenset({NONE, ORG})}


def test_gold_of_a_group_may_be_in_doc_ents():
    """Where the Doc has no group of the name; what overlaps an entity is then open."""
    nlp, ner = make_ner(spans_key="nested")
    gold = gold_docs(nlp)[1]
    example = Example(nlp.make_doc(gold.text), gold)
    assert "nested" not in gold.spans
    found = classes_of(ner, example)
    (bank,) = (x for x in gold.ents if x.text == "Bank of Ghana")
    assert found[bank.start, bank.end] == {ORG}
    assert found[bank.end - 1, bank.end] == {NONE, LOC, PER}
    assert ner.survey(lambda: [example]).total == len(gold.ents)
    # Scores go by what training goes by: what is found inside an entity is neither right nor wrong, but of its label.
    doc = example.predicted
    doc.spans["nested"] = [Span(doc, x.start, x.end, x.label_) for x in gold.ents]
    doc.spans["nested"].append(Span(doc, bank.end - 1, bank.end, "LOC"))
    scores = ner.score([example])
    assert (scores["spans_nested_p"], scores["spans_nested_r"], scores["ents_f"]) == (1.0, 1.0, 1.0)
    items = entity_items([example], spans_key="nested")
    assert len(items) == len(gold.ents)
    assert all(x.gold and x.found for x in items)
    (row,) = make_table(ner, scores, [gold]).totals
    assert row == ("all", "100.00", "100.00", "100.00", str(len(gold.ents)))
    doc.spans["nested"].append(Span(doc, bank.end - 1, bank.end, "ORG"))
    assert ner.score([example])["spans_nested_p"] == len(gold.ents) / (len(gold.ents) + 1)


def test_spans_that_overlap():
    nlp, ner = make_ner(spans_key="nested")
    example = annotated(nlp, 1, spans_key="nested", nested=False)
    (bank,) = (x for x in example.reference.spans["nested"] if x.text == "Bank of Ghana")
    example.reference.spans["nested"] = [x for x in example.reference.spans["nested"] if x.text != "Ghana"]
    found = classes_of(ner, example)
    assert found[bank.start, bank.end] == {ORG}
    assert found[bank.end - 1, bank.end] == {NONE, LOC, PER}
    # One that overlaps two may be neither of what these are; one that overlaps none is none.
    people = [x for x in example.reference.spans["nested"] if x.label_ == "PER"]
    far = {x: may for x, may in found.items() if all(x[1] <= y.start or y.end <= x[0] for y in [bank, *people])}
    for (a, b), may in far.items():
        over = [x for x in example.reference.spans["nested"] if a < x.end and x.start < b]
        assert may == ({NONE} if not over else {LOC} if (a, b) == (over[0].start, over[0].end) else {NONE, ORG, PER})
    example.reference._.luke_scope = None
    assert classes_of(ner, example)[bank.end - 1, bank.end] == {NONE}
    # doc.ents never hold what is nested: nothing is open there.
    nlp, ner = make_ner()
    assert {frozenset(x) for x in classes_of(ner, annotated(nlp, 1, nested=False)).values()} == {
        frozenset({x}) for x in range(4)
    }


@pytest.mark.parametrize("model", [{}, {"spans_per_word": None}])
def test_gradients_of_ner_are_those_of_summed_probabilities(model):
    """Of an update's loss by the logits, against autograd."""
    nlp, ner = make_noisy_ner(model=model)
    examples = [annotated(nlp, 0, annotates=["PER"]), annotated(nlp, 1, labels={"LOC": ["LOC", "PER"]})]
    (batch,) = ner.batches(examples)
    assert len(batch.allowed_SL) == 2
    scores = ner.model.predict(batch)
    loss, (d_logits, d_proposals) = ner.get_loss(batch, scores)
    logits, kept = scores.logits_KL.double().requires_grad_(), scores.kept_K.tolist()
    p = logits.softmax(-1)
    total = torch.zeros((), dtype=torch.double)
    for row, e in enumerate(kept):
        number = int(batch.gold_E[e])
        may = batch.allowed_SL[-2 - number] if number < -1 else np.arange(4) == number
        total = total - p[row][torch.from_numpy(may)].sum().log()
    (wanted,) = torch.autograd.grad(total, logits)
    torch.testing.assert_close(d_logits, wanted.float(), atol=1e-5, rtol=1e-4)
    if scores.proposals_E is None:
        assert float(loss) == pytest.approx(float(total.detach()), rel=1e-5)
        assert d_proposals is None
    gold = np.flatnonzero(batch.gold_mentions_E())
    assert set(gold.tolist()) <= set(kept)
    assert len(gold) == 2 * 3  # LOC or PER is a mention too


@pytest.mark.parametrize("spans_key", [None, "nested"])
def test_what_is_all_annotated_is_learned_as_ever(spans_key):
    """Bit for bit, and so is a scope that says what is true anyway."""
    found = []
    for scope in (None, {"annotates": LABELS, "labels": {x: x for x in LABELS}}):
        nlp, ner = make_ner(spans_key=spans_key)
        examples = make_entities(nlp, spans_key)
        for example in examples:
            example.reference._.luke_scope = None if scope is None else {"entities": scope}
        optimizer = make_adamw(learn_rate=1e-3)
        losses = [ner.update(examples, sgd=optimizer)["luke_ner"] for _ in range(3)]
        assert all(batch.allowed_SL is None for batch in ner.batches(examples))
        found.append((losses, state(nlp)))
    assert found[0][0] == found[1][0]
    assert all(torch.equal(x, found[1][1][name]) for name, x in found[0][1].items())


def test_ner_learns_nothing_of_what_is_open():
    nlp, ner = make_ner()
    before, optimizer = state(nlp), make_adamw(learn_rate=0.1)
    examples = [annotated(nlp, i, annotates=[], labels={"*": None}) for i in range(4)]
    assert ner.update(examples, sgd=optimizer) == {"luke_ner": 0.0}
    assert all(torch.equal(x, before[name]) for name, x in state(nlp).items())


def sentences_of(nlp, numbers):
    """Docs of the names in ever other combinations, 54 in all."""
    docs = []
    for i in numbers:
        person, place, group = PEOPLE[i % 3], PLACES[i // 3 % 3], GROUPS[i // 9 % 3]
        text = f"{person} left {place} and joined the {group} ."
        text = text if i < 27 else f"{person} works for the {group} in {place} !"
        doc = nlp.make_doc(text)
        names = ((person, "PER"), (place, "LOC"), (group, "ORG"))
        doc.set_ents([doc.char_span(text.index(x), text.index(x) + len(x), label=label) for x, label in names])
        docs.append(doc)
    return docs


@pytest.mark.slow
def test_parts_with_one_label_each_teach_what_the_whole_does():
    """Two thirds of all names stand without their label: not told so, the component learns that they are no names."""
    f1 = {}
    for system in ("whole", "joined", "plain"):
        nlp, ner = make_ner(initialize=False)
        golds = sentences_of(nlp, [i for i in range(54) if i % 5])
        for i, gold in enumerate(golds if system != "whole" else ()):
            label = LABELS[i % 3]
            gold.set_ents([x for x in gold.ents if x.label_ == label])
            gold._.luke_scope = {"entities": {"annotates": [label]}} if system == "joined" else None
        examples = [Example(nlp.make_doc(gold.text), gold) for gold in golds]
        ner.initialize(lambda examples=examples: examples, nlp=nlp, weights=make_checkpoint)
        optimizer = make_adamw(learn_rate=2e-3)
        for _ in range(60):
            ner.update(examples, sgd=optimizer)
        others = [Example(nlp.make_doc(gold.text), gold) for gold in sentences_of(nlp, range(0, 54, 5))]
        f1[system] = nlp.evaluate(others)["ents_f"]
    assert f1["whole"] > 0.95
    assert f1["joined"] > f1["whole"] - 0.1
    assert f1["plain"] < f1["whole"] - 0.2


def test_labels_of_ner_are_those_that_gold_means():
    nlp, _ = make_ner(initialize=False)
    examples = [annotated(nlp, i, labels={"LOC": ["GPE", "FAC"], "ORG": None, "PER": ""}) for i in range(4)]
    ner = nlp.get_pipe("luke_ner")
    ner.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint)
    assert ner.labels == ("FAC", "GPE")
    with pytest.raises(ValueError, match="does not know the label 'PER'"):
        ner.update(make_entities(nlp))


def test_scores_and_tuning_of_ner_leave_open_labels_out():
    nlp, ner = make_noisy_ner()
    plain, scoped = make_entities(nlp), [annotated(nlp, i, annotates=["PER"]) for i in range(4)]
    for examples in (plain, scoped):
        for example in examples:
            example.predicted = nlp(example.predicted)
    found = [(x.start, x.end, x.label_) for example in plain for x in example.predicted.ents]
    assert {label for _, _, label in found} == set(LABELS)
    all_types, of_people = (ner.score(examples)["ents_per_type"] for examples in (plain, scoped))
    assert set(all_types) == set(LABELS)
    assert of_people == {"PER": all_types["PER"]}
    assert ner.score(scoped)["ents_f"] == all_types["PER"]["f"]
    tuned = ner.tune(scoped)
    for example in scoped:
        example.predicted = nlp(nlp.make_doc(example.reference.text))
    assert ner.score(scoped)["ents_f"] == pytest.approx(tuned["ents_f"])
