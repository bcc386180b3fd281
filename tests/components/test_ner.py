import numpy as np
import pytest
import torch
from spacy.tokens import Span
from spacy.training import Example
from spacy.training.loop import create_evaluation_callback
from spacy.util import filter_spans, registry

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.components.labelled import make_add_labels
from tests.components.recognised import MODES, TEXTS, found_in, make_examples, make_ner, make_noisy_ner, trained
from tests.tiny import SENTENCES, make_checkpoint


@pytest.mark.product
@pytest.mark.parametrize("spans_key", [None, "sc"])
@pytest.mark.parametrize("attention", MODES)
def test_overfit(attention, spans_key):
    nlp = trained(attention, spans_key)
    for example in make_examples(nlp, spans_key):
        doc = nlp(example.reference.text)
        gold = example.reference.ents if spans_key is None else example.reference.spans[spans_key]
        assert set(found_in(doc, spans_key)) == {(span.start, span.end, span.label_) for span in gold}
        assert all(0.4 < score <= 1 for score in found_in(doc, spans_key).values())
    if spans_key is not None:
        doc = nlp(SENTENCES[1])
        group = doc.spans[spans_key]
        assert not doc.ents
        assert {"Bank of Ghana", "Ghana"} <= {span.text for span in group}
        assert group.attrs["scores"].tolist() == pytest.approx([span._.luke_score for span in group])
    scores = nlp.evaluate(make_examples(nlp, spans_key))
    name = "ents" if spans_key is None else f"spans_{spans_key}"
    assert scores[f"{name}_f"] == 1.0
    assert set(scores[f"{name}_per_type"]) == {"LOC", "ORG", "PER"}


@pytest.mark.product
@pytest.mark.parametrize("batch_size", [1, 7, 64])
@pytest.mark.parametrize("attention", MODES)
def test_pipe_equals_one_by_one(attention, batch_size):
    nlp, _ = make_noisy_ner(attention=attention, spans_key="sc")
    alone = [found_in(nlp(text), "sc") for text in TEXTS]
    assert sum(map(len, alone)) > 50
    assert not alone[4]
    piped = list(nlp.pipe(TEXTS, batch_size=batch_size))
    assert [doc.text for doc in piped] == TEXTS
    for doc, one in zip(piped, alone, strict=True):
        assert found_in(doc, "sc") == pytest.approx(one, abs=1e-5)


@pytest.mark.parametrize("pieces", [1, 100, 100_000])
def test_batch_size_changes_nothing(pieces):
    nlp, ner = make_noisy_ner()
    expected = [found_in(doc) for doc in nlp.pipe(TEXTS)]
    ner.cfg["batch_size"] = pieces
    for doc, one in zip(nlp.pipe(TEXTS), expected, strict=True):
        assert found_in(doc) == pytest.approx(one, abs=1e-5)


@pytest.mark.parametrize("pieces", [1, 100, 100_000])
@pytest.mark.parametrize("int8", [False, True])
def test_batch_size_changes_nothing_with_a_threshold(pieces, int8):
    """Also in windows without a span that has a chance."""
    nlp, ner = make_ner(spans_key="sc", model={"spans_per_word": 2.0})
    with torch.no_grad():
        for parameter in ner.model.shims[0].module.parameters():
            parameter.mul_(10 if parameter.dim() > 1 else 0)
    if int8:
        ner.encoder.quantize()

    def found():
        return [found_in(doc, "sc") for doc in nlp.pipe(TEXTS)]

    everything = found()
    chances = [one.chance_E for one in ner.predict([nlp.make_doc(text) for text in TEXTS])]
    ner.proposal_threshold = float(np.quantile(np.concatenate(chances), 0.8))
    expected = found()
    assert 0 < sum(map(len, expected)) < sum(map(len, everything)) / 2
    assert any(one and not other for one, other in zip(everything, expected))
    ner.cfg["batch_size"] = pieces
    for one, wanted, known in zip(found(), expected, everything, strict=True):
        assert one == pytest.approx(wanted, abs=1e-5)
        assert one == pytest.approx({key: known[key] for key in one}, abs=1e-5)


def test_one_way_does_not_depend_on_other_spans():
    nlp, ner = make_noisy_ner(attention="one_way", spans_key="sc")
    many = found_in(nlp(TEXTS[7]), "sc")
    ner.cfg["max_span_words"] = 1
    few = found_in(nlp(TEXTS[7]), "sc")
    assert few == pytest.approx({key: score for key, score in many.items() if key[1] - key[0] == 1}, abs=1e-5)


def test_flat_output_is_greedy():
    """The best spans by logit, none of which overlap: a plain twin over the nested output."""
    flat, ner = make_noisy_ner()
    doc = flat.make_doc(TEXTS[7])
    (predicted,) = ner.predict([doc])
    order = sorted(range(len(predicted.start_E)), key=lambda i: -predicted.logit_E[i])
    taken, expected = set(), set()
    for i in order:
        words = set(range(predicted.start_E[i], predicted.end_E[i]))
        if not words & taken:
            taken |= words
            expected.add((predicted.start_E[i], predicted.end_E[i], ner.labels[predicted.label_E[i] - 1]))
    ner.set_annotations([doc], [predicted])
    assert set(found_in(doc)) == expected


def test_entities_of_earlier_components():
    nlp = trained()
    ner = nlp.get_pipe("luke_ner")
    words = nlp.make_doc(SENTENCES[0])
    earlier = [Span(words, 1, 2, label="CITY"), Span(words, 6, 7, label="X")]
    doc = nlp.make_doc(SENTENCES[0])
    doc.set_ents([Span(doc, span.start, span.end, label=span.label_) for span in earlier])
    ner(doc)
    assert set(found_in(doc)) == {(1, 2, "CITY"), (4, 5, "LOC"), (6, 7, "X"), (7, 9, "ORG")}
    ner.cfg["overwrite"] = True
    ner(doc)
    assert set(found_in(doc)) == {(0, 2, "PER"), (4, 5, "LOC"), (7, 9, "ORG")}


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("gold_ents", [False, True])
def test_default_weights_score_the_group(other, gold_ents):
    """What `spacy train` follows where no weights are written: the group, unless doc.ents are another component's."""
    nlp = trained(spans_key="sc")
    if other:
        ruler = nlp.add_pipe("entity_ruler")
        ruler.add_patterns([{"label": "LOC", "pattern": "London"}])
    dev = make_examples(nlp, "sc")
    for example in dev if gold_ents else []:
        gold = example.reference
        gold.set_ents([span for span in gold.spans["sc"] if span.text == "London"])
    weights = {name: w for name, w in nlp.config["training"]["score_weights"].items() if w}
    assert weights == {"ents_f": 1.0}
    evaluate = create_evaluation_callback(nlp, lambda nlp: dev, weights)
    score, scores = evaluate()
    assert scores["spans_sc_f"] == 1.0
    assert score == scores.get("ents_f", 0.0) == float(gold_ents or not other)
    with torch.no_grad():
        nlp.get_pipe("luke_ner").model.shims[0].module.classifier.bias[0] += 100  # nothing is found
    score, scores = evaluate()
    assert scores["spans_sc_f"] == 0.0
    assert score == float(other and gold_ents)


def test_group_and_entities():
    """With set_ents the group has all, doc.ents those without overlap, and both are scored."""
    nlp = trained(spans_key="sc")
    nlp.get_pipe("luke_ner").cfg["set_ents"] = True
    dev = make_examples(nlp, "sc")
    for example in dev:
        gold = example.reference
        gold.set_ents(filter_spans(gold.spans["sc"]))
        doc = nlp(gold.text)
        assert len(doc.ents) == len(filter_spans(doc.spans["sc"]))
        assert {(x.start, x.end, x.label_) for x in doc.ents} <= set(found_in(doc, "sc"))
    assert any(len(example.reference.ents) < len(example.reference.spans["sc"]) for example in dev)
    scores = nlp.evaluate(dev)
    assert scores["spans_sc_f"] == 1.0
    assert 0 < scores["ents_r"] <= 1.0


@pytest.mark.parametrize("order", ["own_ner last", "own_ner first"])
def test_scores_of_entities_stay_where_another_component_finds_the_same(order):
    """`span._.luke_score` has one value for a place: that of doc.ents; a group has its own besides."""
    nlp = trained()
    doc = nlp(SENTENCES[0])
    wanted = [(x.start, x.end, x.label_, x._.luke_score) for x in doc.ents]
    own = trained(spans_key="sc").get_pipe("luke_ner")
    own.cfg["temperature"] = 3.0
    ready = nlp.get_pipe("luke_ner")
    both = [ready, own] if order == "own_ner last" else [own, ready]
    doc = nlp.make_doc(SENTENCES[0])
    for component in both:
        component(doc)
    assert [(x.start, x.end, x.label_, x._.luke_score) for x in doc.ents] == wanted
    scores = doc.spans["sc"].attrs["scores"]
    known = {(start, end): score for start, end, _, score in wanted}
    same = [
        (float(score), known[x.start, x.end]) for x, score in zip(doc.spans["sc"], scores) if (x.start, x.end) in known
    ]
    assert same
    assert all(mine < other for mine, other in same)
    for x, score in zip(doc.spans["sc"], scores):
        assert x._.luke_score == known.get((x.start, x.end), pytest.approx(score))


IOB = {"missing": 0, "outside": 2}


@pytest.mark.parametrize("rest", IOB)
@pytest.mark.parametrize("overwrite", [False, True])
def test_blocked_words(overwrite, rest):
    """As of spaCy's own recognizer: they are in no entity and stay blocked; all others are outside, not missing."""
    nlp = trained()
    ner = nlp.get_pipe("luke_ner")
    ner.cfg["overwrite"] = overwrite
    doc = nlp.make_doc(SENTENCES[0])
    preset = [Span(doc, 7, 8, label="X")]  # inside of what it would find
    doc.set_ents(preset, blocked=[doc[1:2], doc[5:6]], default=rest)
    assert {word.ent_iob for word in doc} == {IOB[rest], 3}
    ner(doc)
    kept = {(7, 9, "ORG")} if overwrite else {(7, 8, "X")}
    assert set(found_in(doc)) == {(4, 5, "LOC"), *kept}
    assert [(word.ent_iob, word.ent_type_) for word in doc[:2]] == [(2, ""), (3, "")]
    assert (doc[5].ent_iob, doc[5].ent_type) == (3, 0)
    assert all(word.ent_iob for word in doc)
    ner(doc)
    assert set(found_in(doc)) == {(4, 5, "LOC"), *kept}
    doc.set_ents([], blocked=[doc[:]])
    ner(doc)
    assert doc.ents == ()
    assert {word.ent_iob for word in doc} == {3}


def test_blocked_words_make_room():
    """What would lose against a span with a blocked word is found without it."""
    nlp, ner = make_noisy_ner(overwrite=True)
    ner.model.shims[0].module.classifier.bias.data[0] -= 20  # every span is something
    text = SENTENCES[0]
    free = nlp(text)
    longest = max(free.ents, key=len)
    assert len(longest) > 1
    doc = nlp.make_doc(text)
    doc.set_ents([], blocked=[doc[longest.start : longest.start + 1]])
    ner(doc)
    assert any(longest.start < span.start and span.end <= longest.end for span in doc.ents)
    assert not any(span.start <= longest.start < span.end for span in doc.ents)


def test_suggester():
    suggester = {"@misc": "spacy.ngram_suggester.v1", "sizes": [2]}
    with pytest.warns(UserWarning, match=r"7 of 11 gold spans.*7 are not proposed by the suggester"):
        nlp, ner = make_ner(suggester=suggester, spans_key="sc", max_span_words=None)
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(3):
        ner.update(make_examples(nlp, "sc"), sgd=optimizer)
    (items,) = ner.items(0, nlp.make_doc(SENTENCES[0]))
    assert set((items.spans.end_E - items.spans.start_E).tolist()) == {2}
    assert all(end - start == 2 for start, end, _ in found_in(nlp(SENTENCES[0]), "sc"))


def test_impossible_suggestions_are_reported():
    nlp, ner = make_noisy_ner()
    ner.suggester = registry.misc.get("spacy.ngram_suggester.v1")(sizes=[1])
    with pytest.warns(UserWarning, match=r"1 of 3 suggested spans cannot be encoded.*words \[1, 2\]"):
        nlp("Ada   London")


def test_labels():
    _, ner = make_ner(initialize=False)
    assert ner.labels == ()
    _, ner = make_ner()
    assert ner.labels == ("LOC", "ORG", "PER")
    assert ner.label_data == ["LOC", "ORG", "PER"]


def test_given_labels_keep_their_order():
    nlp, ner = make_ner(initialize=False)
    ner.initialize(lambda: make_examples(nlp), nlp=nlp, labels=["PER", "X", "ORG", "LOC"], weights=make_checkpoint)
    assert ner.labels == ("PER", "X", "ORG", "LOC")
    with pytest.raises(ValueError, match=r"also hold \['ORG', 'PER'\]"):
        ner.initialize(lambda: make_examples(nlp), nlp=nlp, labels=["X", "LOC"], weights=make_checkpoint)
    with pytest.raises(ValueError, match=r"repeat.*'X'"):
        ner.initialize(lambda: make_examples(nlp), nlp=nlp, labels=["X", "LOC", "X"], weights=make_checkpoint)


def test_add_label():
    nlp = trained()
    ner = nlp.get_pipe("luke_ner")
    before = found_in(nlp(SENTENCES[0]))
    assert ner.add_label("CITY") == 1
    assert ner.add_label("CITY") == 0
    assert ner.labels == ("LOC", "ORG", "PER", "CITY")
    assert found_in(nlp(SENTENCES[0])) == pytest.approx(before, abs=1e-5)
    for i in range(20):
        ner.add_label(f"X{i}")
    assert found_in(nlp(SENTENCES[0])) == pytest.approx(before, abs=1e-4)
    gold = nlp.make_doc(SENTENCES[0])
    gold.set_ents([Span(gold, 4, 5, label="CITY")])
    optimizer = make_adamw(learn_rate=3e-3)
    for _ in range(30):
        ner.update([Example(nlp.make_doc(SENTENCES[0]), gold)], sgd=optimizer)
    assert set(found_in(nlp(SENTENCES[0]))) == {(4, 5, "CITY")}
    with pytest.raises(ValueError, match="must be a string"):
        ner.add_label("")


def test_add_label_before_initialisation():
    """A label that the data lack stays, as in spaCy's own components; one that begins anew learns those of its data."""
    nlp, ner = make_ner(initialize=False)
    ner.add_label("X")
    assert ner.labels == ("X",)
    for expected in (("LOC", "ORG", "PER", "X"), ("LOC", "ORG", "PER")):
        ner.initialize(lambda: make_examples(nlp), nlp=nlp, weights=make_checkpoint)
        assert ner.labels == expected


def test_labels_for_sourced_components():
    nlp = trained()
    make_add_labels({"luke_ner": ["CITY", "PER"]})(nlp)
    assert nlp.get_pipe("luke_ner").labels == ("LOC", "ORG", "PER", "CITY")
    with pytest.raises(KeyError, match="luke_typer"):
        make_add_labels({"luke_typer": ["city"]})(nlp)


def test_head_of_a_fine_tuned_checkpoint_is_taken_over():
    checkpoint = make_checkpoint(labels=["NIL", "PER", "LOC", "ORG", "MISC"])
    _, ner = make_noisy_ner(weights=lambda: checkpoint)
    assert ner.labels == ("PER", "LOC", "ORG", "MISC")
    head = ner.model.shims[0].module.classifier
    assert torch.equal(head.weight, checkpoint.tensors["head.classifier.weight"])
    again = ner.to_checkpoint()
    assert again.labels == checkpoint.labels
    assert set(again.tensors) == set(checkpoint.tensors)
    for name, x in checkpoint.tensors.items():
        assert torch.equal(again.tensors[name], x), name
