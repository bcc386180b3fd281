import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.loop import create_evaluation_callback
from spacy.util import registry
from thinc.api import Adam
from torch import nn

from spacy_luke.batch.batches import make_batch
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.bridge.wrapper import shims_of
from tests.components.recognised import found_in, make_examples, make_ner, make_noisy_ner, trained
from tests.pipelines import make_pipeline
from tests.tiny import SENTENCES, make_checkpoint

MODES = ["full", "one_way"]
TEXTS = [*SENTENCES, "", " ", "Accra", " ".join(SENTENCES), "\n\n", "Ada Lovelace joined the Bank of Ghana ."]


def modules(ner):
    return [part for shim in shims_of(ner.model).values() for part in shim.module.modules()]


def state(ner):
    return {
        f"{node}/{name}": x.clone()
        for node, shim in shims_of(ner.model).items()
        for name, x in shim.module.state_dict().items()
    }


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
    assert set(found_in(nlp(SENTENCES[0]))) == set(before)
    gold = nlp.make_doc(SENTENCES[0])
    gold.set_ents([Span(gold, 4, 5, label="CITY")])
    optimizer = make_adamw(learn_rate=3e-3)
    for _ in range(30):
        ner.update([Example(nlp.make_doc(SENTENCES[0]), gold)], sgd=optimizer)
    assert set(found_in(nlp(SENTENCES[0]))) == {(4, 5, "CITY")}
    with pytest.raises(ValueError, match="must be a string"):
        ner.add_label("")


def test_add_label_before_initialisation():
    _, ner = make_ner(initialize=False)
    ner.add_label("X")
    assert ner.labels == ("X",)


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


# ---- training


@pytest.mark.product
@pytest.mark.parametrize(("accumulate", "pieces"), [(1, 4096), (2, 4096), (4, 4096), (1, 60), (1, 1), (2, 60)])
@pytest.mark.parametrize("attention", MODES)
def test_gradient_does_not_depend_on_the_division(attention, accumulate, pieces):
    def gradients(accumulate, pieces):
        nlp, ner = make_ner(attention=attention, spans_key="sc", batch_size=pieces)
        every = make_examples(nlp, "sc")
        size = len(every) // accumulate
        losses = {}
        for i in range(0, len(every), size):
            nlp.update(every[i : i + size], sgd=False, drop=0.0, losses=losses)
        result = {}
        ner.finish_update(lambda key, x, d_x: (x, result.setdefault(key[1], d_x.copy())))
        return result

    expected, actual = gradients(1, 100_000), gradients(accumulate, pieces)
    assert set(actual) == set(expected)
    assert max(np.abs(x).max() for x in expected.values()) > 0.01
    for name, x in expected.items():
        assert np.abs(actual[name] - x).max() <= 1e-6, name


def test_frozen_encoder():
    nlp, ner = make_ner(encoder={"trainable": False})
    before = state(ner)
    optimizer = make_adamw(learn_rate=1e-2)
    for _ in range(2):
        ner.update(make_examples(nlp), sgd=optimizer, drop=0.1)
    assert all(name.startswith("head.") for name, _ in ner.named_parameters())
    for name, x in state(ner).items():
        assert torch.equal(x, before[name]) == name.startswith("luke_encoder/"), name


@pytest.mark.parametrize("attention", MODES)
def test_adam_of_thinc(attention):
    nlp, ner = make_ner(attention=attention)
    optimizer = Adam(4e-3, use_averages=True)
    first = ner.update(make_examples(nlp), sgd=optimizer)["luke_ner"]
    for _ in range(15):
        last = ner.update(make_examples(nlp), sgd=optimizer)["luke_ner"]
    assert last < 0.7 * first
    now = state(ner)
    with nlp.use_params(optimizer.averages):
        averaged = state(ner)
    assert not torch.equal(averaged["head/classifier.bias"], now["head/classifier.bias"])
    assert all(torch.equal(x, now[name]) for name, x in state(ner).items())


def test_update_through_the_pipeline_with_its_own_optimizer():
    nlp, ner = make_ner()
    before, losses = state(ner), {}
    nlp.update(make_examples(nlp), losses=losses)
    assert losses["luke_ner"] > 0
    assert not torch.equal(state(ner)["head/classifier.bias"], before["head/classifier.bias"])


@pytest.mark.parametrize("attention", MODES)
def test_dropout(attention):
    nlp, ner = make_ner(attention=attention)

    def loss(drop):
        return ner.update(make_examples(nlp), drop=drop)["luke_ner"]

    def rates():
        parts = modules(ner)
        own = {part.p for part in parts if isinstance(part, nn.Dropout)}
        return own | {part.dropout for part in parts if type(part).__name__ == "Attention"}

    assert loss(0) == loss(0.0)
    assert rates() == {0}
    assert loss(0.3) != loss(0.3)
    assert rates() == {0.3}
    assert loss(0) == loss(0)


def test_nothing_is_left_in_train_mode(monkeypatch):
    nlp, ner = make_ner()
    nlp(SENTENCES[0])
    assert not any(part.training for part in modules(ner))
    ner.update(make_examples(nlp), sgd=make_adamw(), drop=0.1)
    assert not any(part.training for part in modules(ner))

    def fail(*args, **kwargs):
        assert ner.encoder.module.training
        raise RuntimeError("out of memory")

    monkeypatch.setattr(ner.encoder.module.entities, "forward", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        ner.update(make_examples(nlp))
    assert not any(part.training for part in modules(ner))


@pytest.mark.parametrize("attention", MODES)
def test_words_without_annotation_do_not_count(attention):
    nlp, ner = make_noisy_ner(attention=attention)
    gold = nlp.make_doc(SENTENCES[0])
    person, unknown = Span(gold, 0, 2, label="PER"), Span(gold, 4, 7)
    gold.set_ents([person], missing=[unknown], default="outside")
    example = Example(nlp.make_doc(SENTENCES[0]), gold)
    (item,) = ner.items(0, example.predicted, ner.gold(example))
    classes = dict(zip(zip(item.spans.start_E.tolist(), item.spans.end_E.tolist()), item.gold_E.tolist()))
    for (start, end), value in classes.items():
        expected = -1 if start < 7 and end > 4 else 3 if (start, end) == (0, 2) else 0
        assert value == expected, (start, end)
    # The loss is the mean over known spans, and no other span has a gradient.
    batch = make_batch([item])
    scores = ner.model.predict(batch)
    loss, (d_logits, _) = ner.get_loss(batch, scores)
    known = batch.gold_E >= 0
    log = scores.logits_KL.log_softmax(-1).numpy()[np.arange(len(known)), np.maximum(batch.gold_E, 0)]
    assert loss == pytest.approx(-log[known].sum(), rel=1e-5)
    assert not d_logits[torch.from_numpy(~known)].any()
    assert ner.loss_weight(batch) == known.sum()
    assert ner.update([example])["luke_ner"] == pytest.approx(-log[known].mean(), rel=1e-5)


def test_docs_without_any_annotation_change_nothing():
    nlp, ner = make_ner()
    before, optimizer = state(ner), make_adamw(learn_rate=0.1)
    blank = [Example(nlp.make_doc(text), nlp.make_doc(text)) for text in TEXTS]
    assert ner.update(blank, sgd=optimizer) == {"luke_ner": 0.0}
    assert all(torch.equal(x, before[name]) for name, x in state(ner).items())
    alone, mixed = ner.update(make_examples(nlp))["luke_ner"], ner.update([*blank, *make_examples(nlp)])["luke_ner"]
    assert mixed == pytest.approx(alone, rel=1e-5)


def test_gold_in_other_words():
    """The prediction's words differ from the gold ones; mentions are carried over by characters."""
    nlp, ner = make_ner()
    gold = Doc(nlp.vocab, words=["Ada", "Love", "lace", "saw", "London"], spaces=[True, False, True, True, False])
    gold.set_ents([Span(gold, 0, 3, label="PER"), Span(gold, 4, 5, label="LOC")])
    example = Example(nlp.make_doc("Ada Lovelace saw London"), gold)
    assert {key: value for key, value in ner.gold(example).items() if value > 0} == {(0, 2): 3, (3, 4): 1}


def test_alone_the_encoder_is_a_thinc_model():
    _, ner = make_ner()
    encoder = ner.model.layers[0]
    windows = [np.array([0, 7, 8, 9, 2]), np.array([0, 11, 2])]
    states = encoder.predict(windows)
    assert [x.shape for x in states] == [(5, 32), (3, 32)]
    ner.encoder.set_dropout(0)
    again, backprop = encoder.begin_update(windows)
    assert np.allclose(again[1], states[1], atol=1e-6)
    assert backprop([np.ones_like(x) for x in again]) == []
    assert ner.encoder.module.words.piece.weight.grad.abs().sum() > 0


def test_blank_pipeline_needs_no_import():
    assert spacy.blank("de").add_pipe("luke_ner").labels == ()


def test_tuned_bias():
    """With a bias more is found or less, and `tune` finds what is best on gold that another bias gives."""
    nlp = make_pipeline("luke_ner")
    ner = nlp.get_pipe("luke_ner")
    texts = [text for text in SENTENCES for _ in range(2)]

    def entities(bias):
        ner.cfg["none_bias"] = bias
        return [[(e.start, e.end, e.label_) for e in doc.ents] for doc in nlp.pipe(texts)]

    def spans(bias):
        ner.cfg["none_bias"] = bias
        return sum(len(found.start_E) for found in ner.predict([nlp.make_doc(text) for text in texts]))

    for parameter in ner.model.shims[0].module.classifier.parameters():
        parameter.data *= 20
    margins = np.concatenate([x.margin_E for x in ner._predict([nlp.make_doc(text) for text in texts], -1000.0)])
    ner.model.shims[0].module.classifier.bias.data[0] += float(np.median(margins))
    assert spans(-6.0) > spans(0.0) > spans(6.0)
    for wanted in (-1.0, 0.25):
        golds = []
        for text, found in zip(texts, entities(wanted)):
            gold = nlp.make_doc(text)
            gold.set_ents([Span(gold, a, b, label) for a, b, label in found])
            golds.append(gold)
        ner.cfg["none_bias"] = 0.0
        found = ner.tune([Example(nlp.make_doc(gold.text), gold) for gold in golds])
        assert found["ents_f"] == 1.0
        assert found["none_bias"] == ner.cfg["none_bias"]
        assert entities(found["none_bias"]) == [[(e.start, e.end, e.label_) for e in gold.ents] for gold in golds]
    with pytest.raises(ValueError, match="Expected examples with gold entities"):
        empty = nlp.make_doc(SENTENCES[0])
        empty.set_ents([])
        ner.tune([Example(empty.copy(), empty)])
