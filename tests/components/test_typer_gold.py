"""`luke_typer`: gold types, labels, tuning, and fine-tuned heads."""

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.bridge.optimizer import make_adamw
from tests.components.related import LABELS, LONG, docs_of, make_examples, make_pipeline, trained, types_of
from tests.components.typed import MODES, same
from tests.tiny import SENTENCES, make_checkpoint


def test_gold():
    """Several spans of one extent; a mention with no type; words that differ from the prediction's."""
    nlp, typer = make_pipeline("luke_typer")
    gold = Doc(nlp.vocab, words=["Ada", "Love", "lace", "saw", "London"], spaces=[True, False, True, True, False])
    gold.spans["luke_types"] = [
        Span(gold, 0, 3, label="person"),
        Span(gold, 4, 5, label=""),
        Span(gold, 0, 3, label="scientist"),
        Span(gold, 0, 3, label="person"),
    ]
    places, gold_ML, missing = typer.gold(Example(nlp.make_doc("Ada Lovelace saw London"), gold))
    assert places.mentions == [(0, 2), (3, 4)]
    assert gold_ML.tolist() == [[0, 0, 1, 0, 1], [0, 0, 0, 0, 0]]
    assert not missing
    doc = Doc(nlp.vocab, words=["Ada", "Lovelace saw", "London"], spaces=[True, True, False])
    places, gold_ML, missing = typer.gold(Example(doc, gold))
    assert places.mentions == [(2, 3)]
    assert missing == {"do not fall on word boundaries": 1}


@pytest.mark.parametrize("attention", MODES)
def test_gold_that_cannot_be_predicted_is_counted(attention):
    def examples(nlp):
        doc, predicted = nlp.make_doc(LONG), nlp.make_doc(LONG)
        doc.spans["luke_types"] = [Span(doc, 0, 2, label="a"), Span(doc, 3, 60, label="b")]
        other = Doc(nlp.vocab, words=["Ada", "Love", "lace"], spaces=[True, False, False])
        other.spans["luke_types"] = [Span(other, 0, 2, label="a")]
        return [Example(predicted, doc), Example(nlp.make_doc("Ada Lovelace"), other)]

    expected = r"2 of 3 gold mentions.*1 have no pieces or are longer than a window, 1 do not fall on word boundaries"
    with pytest.warns(UserWarning, match=expected):
        nlp, typer = make_pipeline("luke_typer", attention, examples=examples)
    assert typer.labels == ("a", "b")
    assert typer.update(examples(nlp))["luke_typer"] > 0


def test_label_unseen_in_initialisation():
    nlp, typer = make_pipeline("luke_typer")
    doc = nlp.make_doc("Ada saw London")
    doc.spans["luke_types"] = [Span(doc, 0, 1, label="robot")]
    example = Example(nlp.make_doc(doc.text), doc)
    with pytest.raises(ValueError, match=r"does not know the type 'robot' of 'Ada'.*5 types.*add_label"):
        typer.update([example])
    typer.add_label("robot")
    assert typer.update([example])["luke_typer"] > 0


def test_add_label():
    nlp = trained("luke_typer")
    typer = nlp.get_pipe("luke_typer")
    before = [types_of(doc) for doc in nlp.pipe(docs_of(nlp))]
    assert typer.add_label("river") == 1
    assert typer.add_label("river") == 0
    assert typer.labels[-1] == "river"
    for doc, found in zip(nlp.pipe(docs_of(nlp)), before, strict=True):
        same({key: {k: p for k, p in x.items() if k != "river"} for key, x in types_of(doc).items()}, found)
    gold = nlp.make_doc(SENTENCES[2])
    gold.spans["luke_types"] = [Span(gold, 3, 4, label="river")]
    optimizer = make_adamw(learn_rate=3e-3)
    for _ in range(25):
        typer.update([Example(nlp.make_doc(gold.text), gold)], sgd=optimizer)
    doc = nlp(docs_of(nlp)[2])
    assert list(types_of(doc)[3, 4]) == ["river"]


def test_labels_are_given():
    nlp = spacy.blank("en")
    typer = nlp.add_pipe("luke_typer", config={"overlap": 32})
    examples = make_examples(nlp)
    labels = ["z", *LABELS["luke_typer"]]
    typer.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint, labels=labels)
    assert list(typer.labels) == typer.label_data == labels
    with pytest.raises(ValueError, match=r"also hold \['group', 'person', 'place', 'scientist'\]"):
        typer.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint, labels=["city", "z"])
    with pytest.raises(ValueError, match="repeat"):
        typer.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint, labels=[*labels, "z"])
    none = [Example(nlp.make_doc("Ada"), nlp.make_doc("Ada"))]
    with pytest.raises(ValueError, match=r"found no labels: expected spans of doc.spans\['luke_types'\]"):
        typer.initialize(lambda: none, nlp=nlp, weights=make_checkpoint)


@pytest.mark.slow
def test_ten_thousand_types():
    """A list of so many is learned, by the loss that is made for it; only those that hold are written."""
    nlp = spacy.blank("en")
    typer = nlp.add_pipe("luke_typer", config={"overlap": 32, "focus": 2.0})
    labels = [f"type {i}" for i in range(9_995)] + LABELS["luke_typer"]
    examples = make_examples(nlp)
    typer.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint, labels=labels)
    optimizer = make_adamw(learn_rate=5e-3)
    for _ in range(30):
        typer.update(make_examples(nlp), sgd=optimizer)
    doc = nlp(docs_of(nlp)[0])
    assert set(doc.ents[1]._.luke_types) == {"place"}
    again = spacy.blank("en")
    again.add_pipe("luke_typer", config={"overlap": 32})
    again.from_bytes(nlp.to_bytes())
    assert again(docs_of(again)[0]).ents[1]._.luke_types == doc.ents[1]._.luke_types
    assert len(doc.to_bytes()) < 3000


def test_tune():
    nlp, typer = make_pipeline("luke_typer")
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(15):  # not yet by heart
        typer.update(make_examples(nlp), sgd=optimizer)
    golds, chances = [], []
    for example in make_examples(nlp):
        ((places, logits),) = typer.predict([example.predicted])
        golds.append(typer.gold(example)[1])
        chances.append(1 / (1 + np.exp(-logits)))
    gold, p = np.concatenate(golds), np.concatenate(chances)

    def f1(threshold):
        return 2 * ((p > threshold) & (gold > 0)).sum() / ((p > threshold).sum() + gold.sum())

    best = max(f1(t / 100) for t in range(1, 100))
    tuned = typer.tune(make_examples(nlp))
    assert tuned["types_micro_f"] == pytest.approx(best)
    assert f1(tuned["threshold"]) == pytest.approx(best)
    assert typer.cfg["threshold"] == tuned["threshold"]
    assert nlp.evaluate(make_examples(nlp))["types_micro_f"] == pytest.approx(best)
    with pytest.raises(ValueError, match="Expected examples with gold types"):
        typer.tune([Example(nlp.make_doc("Ada"), nlp.make_doc("Ada"))])


def test_tuning_counts_what_cannot_be_predicted():
    nlp, typer = make_pipeline("luke_typer")
    other = Doc(nlp.vocab, words=["Ada", "Love", "lace"], spaces=[True, False, False])
    other.spans["luke_types"] = [Span(other, 0, 2, label=label) for label in ("person", "place", "")]
    lost = Example(nlp.make_doc("Ada Lovelace"), other)
    with_it, without = typer.tune([*make_examples(nlp), lost]), typer.tune(make_examples(nlp))
    assert with_it["types_micro_f"] < without["types_micro_f"]


def test_head_of_a_fine_tuned_checkpoint():
    """Taken over where the labels fit, and given back."""
    checkpoint = make_checkpoint()
    checkpoint.labels = ["z", *LABELS["luke_typer"]]
    checkpoint.task = "entity_classification"
    generator = torch.Generator().manual_seed(1)
    checkpoint.tensors["head.classifier.weight"] = torch.randn(6, 32, generator=generator)
    checkpoint.tensors["head.classifier.bias"] = torch.randn(6, generator=generator)
    nlp, typer = make_pipeline("luke_typer", "full", weights=lambda: checkpoint)
    assert list(typer.labels) == checkpoint.labels
    again = typer.to_checkpoint()
    assert (again.labels, again.task) == (checkpoint.labels, "entity_classification")
    for name in ("weight", "bias"):
        name = f"head.classifier.{name}"
        assert torch.equal(again.tensors[name], checkpoint.tensors[name])
    checkpoint.labels[1] = "robot"  # the examples have a type that it does not know
    with pytest.warns(UserWarning, match="begins with a fresh head: .* as it has not the labels"):
        _, typer = make_pipeline("luke_typer", "full", weights=lambda: checkpoint)
    assert list(typer.labels) == LABELS["luke_typer"]
    _, typer = make_pipeline("luke_typer", "full", features="all")
    with pytest.raises(ValueError, match="features = 'all', but that of other LUKE code reads 'entity'"):
        typer.to_checkpoint()
