"""`luke_ner`: what it learns from, gradients, dropout, tuning."""

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Adam
from torch import nn

from spacy_luke.annotations.scope import Scope
from spacy_luke.batch.batches import make_batch
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.bridge.wrapper import shims_of
from spacy_luke.components.spans.found import CHANCES, FoundSpans, best_settings
from spacy_luke.components.spans.gold import ScoredGold
from tests.components.recognised import MODES, TEXTS, make_examples, make_ner, make_noisy_ner, trained
from tests.components.updates import assert_division_is_irrelevant
from tests.pipelines import make_pipeline
from tests.tiny import SENTENCES


def modules(ner):
    return [part for shim in shims_of(ner.model).values() for part in shim.module.modules()]


def state(ner):
    return {
        f"{node}/{name}": x.clone()
        for node, shim in shims_of(ner.model).items()
        for name, x in shim.module.state_dict().items()
    }


@pytest.mark.product
@pytest.mark.parametrize(("accumulate", "pieces"), [(1, 4096), (2, 4096), (4, 4096), (1, 60), (1, 1), (2, 60)])
@pytest.mark.parametrize("attention", MODES)
def test_gradient_does_not_depend_on_the_division(attention, accumulate, pieces):
    assert_division_is_irrelevant(
        lambda pieces: make_ner(attention=attention, spans_key="sc", batch_size=pieces),
        lambda nlp: make_examples(nlp, "sc"),
        accumulate=accumulate,
        pieces=pieces,
    )


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


@pytest.mark.parametrize("make_optimizer", [Adam, make_adamw])
def test_a_label_more_between_updates(make_optimizer):
    """The optimizer goes on; what it knows of the head, which is larger now, begins anew."""
    nlp, ner = make_ner()
    optimizer = make_optimizer(4e-3)
    ner.update(make_examples(nlp), sgd=optimizer)
    ner.add_label("CITY")
    with nlp.use_params(optimizer.averages or {}):
        assert "CITY" in ner.labels
    before = state(ner)
    ner.update(make_examples(nlp), sgd=optimizer)
    assert not torch.equal(state(ner)["head/classifier.bias"], before["head/classifier.bias"])


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
    assert ner.gold(example).classes == {(0, 2): 3, (3, 4): 1}


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
    margins = np.concatenate([x.margin_E for x in ner.predict(map(nlp.make_doc, texts), none_bias=-1000.0, chance=0.0)])
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


@pytest.mark.parametrize("wide", [False, True])
def test_tuned_threshold_of_proposals(wide):
    """`tune` finds the highest threshold that costs nothing, by what predictions with it score."""
    nlp = trained("one_way")
    ner, examples = nlp.get_pipe("luke_ner"), make_examples(nlp)
    ner.model.attrs["spans_per_word"] = 100.0
    found = ner.predict([x.predicted for x in examples])
    rows = [zip(one.start_E, one.end_E, one.chance_E) for one in found]
    golds = [{(e.start, e.end) for e in x.reference.ents} for x in examples]
    lowest = min(chance for row, gold in zip(rows, golds) for start, end, chance in row if (start, end) in gold)
    # What is learned by heart is surer than what is found elsewhere: the lowest gets 0.12, or next to nothing.
    ner.model.shims[0].module.proposer.score.bias.data -= np.log(lowest / (1 - lowest)) + (100 if wide else 2)
    tuned = ner.tune(examples, nlp=nlp)
    chosen = ner.proposal_threshold
    assert chosen == tuned["proposal_threshold"] == nlp.config["components"]["luke_ner"]["proposal_threshold"]
    assert chosen == (0.0 if wide else 0.1)

    def score(chance):
        ner.proposal_threshold = chance
        return nlp.evaluate(make_examples(nlp))["ents_f"]

    assert score(chosen) == tuned["ents_f"] == 1.0
    assert score(0.99) < 1.0
    assert all(score(chance) < 1.0 for chance in CHANCES if chance > chosen)


def test_nothing_to_tune_where_nothing_proposes():
    nlp = trained("full")
    ner = nlp.get_pipe("luke_ner")
    assert set(ner.tune(make_examples(nlp), nlp=nlp)) == {"none_bias", "ents_f", "temperature", "shift"}
    assert ner.proposal_threshold == 0


def test_right_spans_are_not_given_for_wrong_ones():
    """A threshold of proposals that takes as many wrong spans away as right ones has the better F1, but texts of other
    kinds than the dev data would lose entities: the highest one with all right spans is chosen."""
    words, gold_chance = np.arange(110), np.where(np.arange(110) < 5, 0.3, 0.9)
    right = np.arange(110) < 100
    found = FoundSpans(
        words,
        words + 1,
        np.ones(110, dtype=np.int64),
        np.ones(110),
        np.full(110, 0.9),
        np.ones(110),
        np.where(right, gold_chance, 0.35),
    )
    spans = frozenset((i, i + 1, "PER") for i in range(100))
    gold = ScoredGold(spans, Scope(), total=100)
    best = best_settings([found], [gold], ["PER"], flat=True)
    assert best["proposal_threshold"] == 0.3
    assert len(found.above(best["none_bias"], flat=True, chance=0.4)) == 95  # all right: F1 0.974, where 0.3 has 0.952
    assert best["ents_f"] == pytest.approx(200 / 210)
