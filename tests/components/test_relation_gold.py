"""`luke_relation`: gold relations, labels, and fine-tuned heads."""

from contextlib import nullcontext

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.bridge.optimizer import make_adamw
from tests.components.pairs import LONG, MODES, PAIRS, make, probabilities
from tests.components.related import (
    LABELS,
    docs_of,
    make_examples,
    relations_of,
)
from tests.tiny import SENTENCES, make_checkpoint


def related(nlp, text, *rows, words=None, pairs=None):
    """An example of entities and relations between them, both as words of the text."""
    gold = nlp.make_doc(text)
    gold.set_ents([Span(gold, a, b, label="ENT") for a, b in {x for row in rows for x in row[:2]}])
    gold._.luke_relations = [(gold[slice(*head)], gold[slice(*tail)], label) for head, tail, label in rows]
    if pairs is not None:
        gold._.luke_pairs = [(gold[slice(*head)], gold[slice(*tail)]) for head, tail in pairs]
    return Example(nlp.make_doc(text) if words is None else words, gold)


@pytest.mark.parametrize("mode", MODES)
def test_gold_that_cannot_be_predicted_is_counted(mode):
    def examples(nlp):
        far = related(nlp, LONG, ((0, 2), (4, 5), "a"), ((0, 2), (30, 31), "b"))
        other = Doc(nlp.vocab, words=["Ada saw", "London"], spaces=[True, False])
        moved = related(nlp, "Ada saw London", ((0, 1), (2, 3), "c"), words=other)
        twice = related(nlp, "Ada saw London", ((0, 1), (2, 3), "a"), ((0, 1), (2, 3), "b"))
        given = related(nlp, "Ada saw London", ((0, 1), (2, 3), "a"), ((2, 3), (0, 1), "b"), pairs=[((0, 1), (2, 3))])
        itself = related(nlp, "Ada saw London", ((0, 1), (0, 1), "a"), ((0, 1), (2, 3), "none"))
        outside = related(nlp, "Ada saw London", ((0, 1), (2, 3), "a"))
        outside.reference.set_ents([])
        long = related(nlp, LONG, ((0, 2), (3, 55), "b"))
        return [far, moved, twice, given, itself, outside, long]

    reasons = [
        "are not proposed by the suggester",
        "are not among the given pairs",
        "have a head or tail that does not fall on word boundaries",
        "have a pair with another label (set multi_label)",
        "have a head that is their tail",
        "have a head or tail that is no mention",
        "have mentions without pieces, or longer than a window",
    ]
    with pytest.warns(UserWarning, match="7 of 10 gold relations .* can never be predicted") as warned:
        nlp, relation = make(mode, examples=examples, none="none", suggester={**PAIRS, "max_words": 10})
    message = str(warned[0].message)
    for reason in reasons:
        assert f"1 {reason}" in message, reason
    assert relation.update(examples(nlp))["luke_relation"] > 0


def test_label_unseen_in_initialisation():
    nlp, relation = make("pair")
    example = related(nlp, "Ada saw London", ((0, 1), (2, 3), "hates"))
    with pytest.raises(ValueError, match=r"does not know the relation 'hates'.*\['home_of', 'lives_in', 'works_for'\]"):
        relation.update([example])
    relation.add_label("hates")
    assert relation.update([example])["luke_relation"] > 0


@pytest.mark.parametrize("multi_label", [False, True])
def test_add_label(multi_label):
    nlp, relation = make("pair", multi_label=multi_label)
    doc = docs_of(nlp)[0]
    before = probabilities(relation, doc)
    assert relation.add_label("hates") == 1
    assert relation.add_label("hates") == 0
    assert relation.classes[-1] == "hates"
    after = probabilities(relation, doc)
    for pair, row in before.items():
        *rest, new = after[pair]
        assert [x / sum(rest) for x in rest] == pytest.approx(row, abs=1e-5)
        assert multi_label or new < 1e-5  # of one softmax it takes nothing from the others
    optimizer = make_adamw(learn_rate=4e-3)
    example = related(nlp, SENTENCES[2], ((0, 2), (3, 4), "hates"))
    for _ in range(25):
        relation.update([example], sgd=optimizer)
    assert {key[4] for key in relations_of(nlp(docs_of(nlp)[2]))} >= {"hates"}


def test_labels_are_given():
    nlp = spacy.blank("en")
    relation = nlp.add_pipe("luke_relation", config={"overlap": 32})
    examples = make_examples(nlp)
    labels = ["z", *LABELS["luke_relation"]]
    relation.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint, labels=labels)
    assert list(relation.labels) == relation.label_data == labels
    assert relation.classes == [None, *labels]
    with pytest.raises(ValueError, match=r"also hold \['home_of', 'works_for'\]"):
        relation.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint, labels=["lives_in", "z"])
    with pytest.raises(ValueError, match="hold its name for no relation, 'no_relation'"):
        relation.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint, labels=[*labels, "no_relation"])
    with pytest.raises(ValueError, match=r"found no labels: expected relations in doc\._\.luke_relations"):
        relation.initialize(lambda: [related(nlp, "Ada")], nlp=nlp, weights=make_checkpoint)


def test_name_of_no_relation_in_the_gold():
    """Pairs that the gold says have none are learned as such, and no scorer counts them as missed."""
    nlp, relation = make("pair", none="Other")
    example = related(nlp, "Ada saw London", ((0, 1), (2, 3), "Other"))
    _, gold, missing = relation.gold(example)
    assert gold.tolist() == [0, 0]
    assert not missing
    scores = nlp.evaluate([related(nlp, "Ada saw London", ((0, 1), (2, 3), "Other")), *make_examples(nlp)])
    assert "Other" not in scores["relations_per_type"]


@pytest.mark.parametrize("mode", MODES)
def test_every_pair_has_a_relation(mode):
    """none = null: the best label, whatever its probability; pairs without gold teach nothing."""
    nlp, relation = make(mode, none=None)
    assert relation.classes == LABELS["luke_relation"]
    examples = make_examples(nlp)
    assert sum(relation.loss_weight(batch) for batch in relation.batches(examples)) == 5
    doc = nlp(docs_of(nlp)[0])
    assert len(doc._.luke_relations) == 6
    for key, score in relations_of(doc).items():
        row = probabilities(relation, docs_of(nlp)[0])[key[:2], key[2:4]]
        assert (max(row), relation.labels[int(np.argmax(row))]) == (pytest.approx(score), key[4])


def test_a_fresh_head_knows_how_frequent_relations_are():
    _, relation = make("pair")
    bias = relation.model.shims[0].module.classifier.bias.softmax(-1).tolist()
    assert bias == pytest.approx([14 / 22, 2 / 22, 3 / 22, 3 / 22], rel=1e-4)
    _, relation = make("pair", multi_label=True)
    bias = relation.model.shims[0].module.classifier.bias.sigmoid().tolist()
    assert bias == pytest.approx([2 / 21, 3 / 21, 3 / 21], rel=1e-4)
    _, relation = make("pair", bias=False)
    assert relation.model.shims[0].module.classifier.bias is None


def test_head_of_a_fine_tuned_checkpoint():
    """Taken over where the labels fit, and given back; index 0 is "no relation"."""
    checkpoint = make_checkpoint()
    checkpoint.labels = ["nothing", "z", *LABELS["luke_relation"]]
    checkpoint.task = "entity_pair_classification"
    checkpoint.tensors["head.classifier.weight"] = torch.randn(5, 64, generator=torch.Generator().manual_seed(1))
    nlp, relation = make("full", weights=lambda: checkpoint)
    assert relation.classes == [None, *checkpoint.labels[1:]]
    again = relation.to_checkpoint()
    assert (again.labels, again.task) == (checkpoint.labels, "entity_pair_classification")
    assert torch.equal(again.tensors["head.classifier.weight"], checkpoint.tensors["head.classifier.weight"])
    assert not again.tensors["head.classifier.bias"].any()
    for config in ({"none": None}, {"multi_label": True}, {"features": "all"}):
        with pytest.warns(
            UserWarning, match="begins with a fresh head: .* nothing, z, .* of a head with other settings"
        ):
            _, relation = make("full", weights=lambda: checkpoint, **config)
        assert list(relation.labels) == LABELS["luke_relation"], config


@pytest.mark.parametrize("known", [False, True])
def test_relations_across_sentences_are_said_when_they_are_met(known):
    """As a config has it whose sentences are found in training: nothing can be counted before."""

    def examples():
        gold = nlp.make_doc("Ada met Bob. Zoe lives in Rome.")
        gold.set_ents([Span(gold, i, i + 1, "E") for i in (0, 2, 4, 7)])
        gold._.luke_relations = [(gold[0:1], gold[7:8], "far"), (gold[4:5], gold[7:8], "near")]
        doc = nlp.make_doc(gold.text)
        return [Example(nlp.get_pipe("sentencizer")(doc) if known else doc, gold)]

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    pairs = {"@misc": "spacy-luke.pairs.v1", "same_sentence": True}
    relation = nlp.add_pipe("luke_relation", config={"suggester": pairs})
    message = r"1 of 2 gold relations .*can never be predicted \(1 are not proposed by the suggester\)"
    with pytest.warns(UserWarning, match=message) if known else nullcontext():
        relation.initialize(examples, weights=make_checkpoint)
    for first in (True, False):
        with pytest.warns(UserWarning, match=message) if first and not known else nullcontext():
            nlp.update(examples(), sgd=make_adamw(0.0), annotates=["sentencizer"])
