"""Types and relations are learned from Docs whose gold leaves labels open, and what is left open teaches nothing."""

import numpy as np
import pytest
import torch

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.pipelines.score_tables import make_table
from tests.components.related import make_examples, make_pipeline


def state(nlp):
    return {(name, key): p.detach().clone() for name, c in nlp.pipeline for key, p in c.named_parameters()}


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


def test_tables_count_gold_by_what_it_means():
    nlp, typer = make_pipeline("luke_typer")
    examples = make_examples(nlp)
    labels = {"person": "scientist", "place": ["place", "city"], "group": None}
    golds = [x.reference for x in with_scope(examples, "types", labels=labels)]
    table = make_table(typer, typer.score(examples), golds)
    assert table.counts == {"scientist": 3, "city|place": 3, "city": 1}
    assert table.totals[1][-1] == "7"  # mentions, without the groups
    nlp, relation = make_pipeline("luke_relation")
    examples = make_examples(nlp)
    labels = {"lives_in": "works_for", "home_of": None}
    golds = [x.reference for x in with_scope(examples, "relations", labels=labels)]
    assert make_table(relation, relation.score(examples), golds).counts == {"works_for": 4}
