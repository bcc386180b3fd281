"""Components learn from Docs whose gold leaves labels open: what they are taught, and that the rest teaches nothing."""

import numpy as np
import pytest
import torch
from spacy.training import Example

from spacy_luke.bridge.optimizer import make_adamw
from tests.components.recognised import LABELS, gold_docs, make_ner, make_noisy_ner
from tests.components.recognised import make_examples as make_entities
from tests.components.related import make_examples, make_pipeline
from tests.tiny import make_checkpoint

NONE, LOC, ORG, PER = range(4)


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


# ---- luke_ner


def test_spans_may_be_what_their_source_does_not_annotate():
    nlp, ner = make_ner()
    labels = {"LOC": ["LOC", "ORG"], "ORG": None, "PER": ["PER", ""]}
    example = annotated(nlp, annotates=["PER", "LOC"], labels=labels)
    found = classes_of(ner, example)
    places = {(x.start, x.end): x.label_ for x in example.reference.ents}
    wanted = {"LOC": {LOC, ORG}, "ORG": {NONE, LOC, ORG, PER}, "PER": {NONE, PER}}
    assert {x: found[x] for x in places} == {x: wanted[label] for x, label in places.items()}
    assert {frozenset(x) for place, x in found.items() if place not in places} == {frozenset({NONE, ORG})}


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


def test_two_halves_are_learned_by_heart():
    """Each half annotates what the other leaves out, of the same sentences."""
    nlp, ner = make_ner(initialize=False)
    examples = []
    for labels in (["PER"], ["LOC", "ORG"]):
        for gold in gold_docs(nlp):
            gold.set_ents([x for x in gold.ents if x.label_ in labels])
            gold._.luke_scope = {"entities": {"annotates": labels}}
            examples.append(Example(nlp.make_doc(gold.text), gold))
    ner.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint)
    assert sorted(ner.labels) == LABELS
    optimizer = make_adamw(learn_rate=2e-3)
    for _ in range(150):
        if ner.update(examples, sgd=optimizer)["luke_ner"] < 0.005:
            break
    else:
        pytest.fail("not learned")
    assert nlp.evaluate(make_entities(nlp))["ents_f"] == 1.0


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


# ---- luke_typer and luke_relation


def with_scope(examples, task, **scope):
    for example in examples:
        example.reference._.luke_scope = {task: scope}
    return examples


def test_gold_types():
    nlp, typer = make_pipeline("luke_typer")  # city, group, person, place, scientist
    labels = {"scientist": ["scientist", "group"], "place": None, "group": ["group", ""]}
    first, second, third, _ = with_scope(make_examples(nlp), "types", annotates=["person", "city"], labels=labels)
    rows = {
        example.predicted[a:b].text: row
        for example in (first, second, third)
        for (a, b), row in rows_of(typer, example)
    }
    assert rows["Ada Lovelace"] == [0, 2, 1, -1, 2]  # a person, a scientist or a group
    assert rows["Berlin"] == [0, -1, 0, -1, -1]
    assert rows["Bank of Ghana"] == [0, -1, 0, -1, -1]
    assert rows["London"] == [-1] * 5
    assert rows["Accra"] == [1, -1, -1, -1, -1]  # a city, and may be anything else


def rows_of(component, example):
    units, gold, _ = component.gold(example)
    return [(units.mentions[u], row) for u, row in enumerate(gold.tolist())]


def test_groups_of_types_that_overlap_become_one():
    nlp, typer = make_pipeline("luke_typer")
    labels = {"person": ["person", "group"], "scientist": ["group", "city"]}
    example = with_scope(make_examples(nlp), "types", labels=labels)[0]
    assert dict(rows_of(typer, example))[0, 2] == [2, 2, 2, 0, 0]


@pytest.mark.parametrize("focus", [0.0, 1.0])
def test_gradients_of_types_are_those_of_what_may_hold(focus):
    nlp, typer = make_pipeline("luke_typer", focus=focus)
    labels = {"scientist": ["scientist", "group"], "place": ["place", "city"]}
    examples = with_scope(make_examples(nlp), "types", annotates=["person", "city", "place"], labels=labels)
    (batch,) = typer.batches(examples)
    assert set(np.unique(batch.gold)) == {-1, 0, 1, 2}
    generator = torch.Generator().manual_seed(0)
    logits = (3 * torch.randn(batch.gold.shape, generator=generator)).double().requires_grad_()
    p, gold = logits.sigmoid(), torch.from_numpy(batch.gold)
    total = -p[gold == 1].log().sum() - ((1 - p[gold == 0]).log() * p[gold == 0] ** focus).sum()
    for u in range(len(gold)):
        if (gold[u] == 2).any():
            total = total - (1 - (1 - p[u][gold[u] == 2]).prod()).log()
    (wanted,) = torch.autograd.grad(total, logits)
    loss, (gradient,) = typer.get_loss(batch, logits.detach().float())
    assert float(loss) == pytest.approx(float(total.detach()), rel=1e-5)
    torch.testing.assert_close(gradient, wanted.float(), atol=1e-5, rtol=1e-4)


def test_gold_relations_of_one_class():
    nlp, relation = make_pipeline("luke_relation")  # no_relation, home_of, lives_in, works_for
    labels = {"lives_in": ["lives_in", "works_for"], "home_of": ["home_of", ""], "works_for": None}
    examples = with_scope(make_examples(nlp), "relations", annotates=["lives_in", "home_of"], labels=labels)
    (batch,) = relation.batches(examples)
    may = [batch.allowed_SL[-2 - x].tolist() for x in batch.gold.tolist()]
    assert may.count([False, False, True, True]) == 2
    assert may.count([True, True, False, False]) == 1
    asked = sum(len(relation.gold(example)[0]) for example in examples)
    assert may.count([True, False, False, True]) == asked - 2 - 1 - 2
    assert len(may) == asked - 2  # the two of which nothing is known are not even encoded


@pytest.mark.parametrize("multi_label", [False, True])
def test_positive_only_relations_teach_what_holds(multi_label):
    nlp, relation = make_pipeline("luke_relation", multi_label=multi_label)
    examples = with_scope(make_examples(nlp), "relations", annotates=[])
    (batch,) = relation.batches(examples)
    assert len(batch.units_UK) == 5  # the gold ones
    if multi_label:
        assert set(np.unique(batch.gold)) == {-1, 1}
    else:
        assert batch.allowed_SL is None
        assert (batch.gold > 0).all()


def test_gradients_of_relations_are_those_of_summed_probabilities():
    nlp, relation = make_pipeline("luke_relation")
    labels = {"lives_in": ["lives_in", "works_for"]}
    examples = with_scope(make_examples(nlp), "relations", annotates=["works_for"], labels=labels)
    (batch,) = relation.batches(examples)
    generator = torch.Generator().manual_seed(0)
    logits = (3 * torch.randn(len(batch.gold), 4, generator=generator)).double().requires_grad_()
    p = logits.softmax(-1)
    may = [batch.allowed_SL[-2 - x] if x < -1 else np.arange(4) == x for x in batch.gold.tolist()]
    total = -(p * torch.from_numpy(np.stack(may))).sum(-1).log().sum()
    (wanted,) = torch.autograd.grad(total, logits)
    loss, (gradient,) = relation.get_loss(batch, logits.detach().float())
    assert float(loss) == pytest.approx(float(total.detach()), rel=1e-5)
    torch.testing.assert_close(gradient, wanted.float(), atol=1e-5, rtol=1e-4)
    assert relation.loss_weight(batch) == len(batch.gold)


@pytest.mark.parametrize(
    ("name", "task", "settings"),
    [
        ("luke_typer", "types", {}),
        ("luke_relation", "relations", {}),
        ("luke_relation", "relations", {"multi_label": True}),
    ],
)
def test_units_that_are_all_annotated_are_learned_as_ever(name, task, settings):
    found = []
    for is_said in (False, True):
        nlp, component = make_pipeline(name, **settings)
        examples = make_examples(nlp)
        if is_said:
            with_scope(examples, task, annotates=component.labels, labels={x: x for x in component.labels})
        optimizer = make_adamw(learn_rate=1e-3)
        losses = [component.update(examples, sgd=optimizer)[name] for _ in range(3)]
        found.append((losses, state(nlp)))
    assert found[0][0] == found[1][0]
    assert all(torch.equal(x, found[1][1][key]) for key, x in found[0][1].items())


@pytest.mark.parametrize(("name", "task"), [("luke_typer", "types"), ("luke_relation", "relations")])
def test_units_of_which_nothing_is_known_teach_nothing(name, task):
    nlp, component = make_pipeline(name)
    before, optimizer = state(nlp), make_adamw(learn_rate=0.1)
    examples = with_scope(make_examples(nlp), task, annotates=[], labels={"*": None})
    assert component.update(examples, sgd=optimizer) == {name: 0.0}
    assert all(torch.equal(x, before[key]) for key, x in state(nlp).items())


def test_docs_without_relations_said_teach_none():
    """None where nothing is said, [] where there are none."""
    nlp, relation = make_pipeline("luke_relation")
    examples = make_examples(nlp)
    for example in examples[1:]:
        example.reference._.luke_rows = {}
    assert {int(x) for batch in relation.batches(examples) for x in batch.owner_U()} == {0}


def test_labels_of_units_are_those_that_gold_means():
    nlp, typer = make_pipeline(
        "luke_typer", examples=lambda nlp: with_scope(make_examples(nlp), "types", labels={"place": ["spot", "site"]})
    )
    assert typer.labels == ("city", "group", "person", "scientist", "site", "spot")


def test_scores_and_tuning_of_units_leave_open_labels_out():
    for name, task, keep in (("luke_typer", "types", "person"), ("luke_relation", "relations", "works_for")):
        settings = {"multi_label": True} if name == "luke_relation" else {}
        nlp, component = make_pipeline(name, threshold=0.0001, **settings)
        examples = make_examples(nlp)
        for example in examples:
            example.predicted = component(example.predicted)
        per_type = component.score(examples)[f"{task}_per_type"]
        assert len(per_type) > 2
        with_scope(examples, task, annotates=[keep])
        assert component.score(examples)[f"{task}_per_type"] == {keep: per_type[keep]}
        tuned = component.tune(with_scope(make_examples(nlp), task, annotates=[keep]))
        for example in examples:
            example.predicted = component(make_examples(nlp)[examples.index(example)].predicted)
        assert component.score(examples)[component.metric] == pytest.approx(tuned[component.metric])
