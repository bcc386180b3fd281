"""spaCy's own components on LUKE's word states: what they are given, what the encoder learns of them."""

import numpy as np
import pytest
import spacy
import torch
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from thinc.api import Adam

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.checkpoint.checkpoint import write_huggingface
from spacy_luke.model.luke import LukeEncoder
from tests.components.listening import (
    KINDS,
    LONG,
    NEEDED,
    WIDTH,
    assert_sum,
    changed,
    gradients,
    listener,
    make_examples,
    make_pipeline,
    parameters,
    pooled,
    settings,
    word_states,
)
from tests.tiny import SENTENCES, make_checkpoint, make_wordpiece

# ---- what is given


@pytest.mark.parametrize("text", [SENTENCES[0], LONG, "Lagos" * 60], ids=["short", "long", "one word"])
def test_words_are_the_mean_of_their_pieces(text):
    nlp, owner, _ = make_pipeline("tagger")
    doc = nlp(text)
    assert doc.tensor.shape == (len(doc), WIDTH)
    assert np.allclose(doc.tensor, word_states(owner, doc).detach().numpy(), atol=1e-5)


@NEEDED
@pytest.mark.parametrize("text", [SENTENCES[0], LONG, "Lagos" * 60], ids=["short", "long", "one word"])
def test_transformer_data_gives_the_same_words(text):
    nlp, owner, _ = make_pipeline("tagger", kind="pieces")
    doc = nlp(text)
    data = doc._.trf_data
    assert np.allclose(pooled(doc), word_states(owner, doc).detach().numpy(), atol=1e-5)
    assert data.model_output.last_hidden_state.shape == (*data.wordpieces.input_ids.shape, WIDTH)
    assert data.wordpieces.attention_mask.sum(1).tolist() == data.wordpieces.lengths
    assert data.wordpieces.strings[0][0] == "<s>"
    again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert np.array_equal(pooled(again), pooled(doc))


@pytest.mark.parametrize("kind", KINDS)
def test_words_without_pieces_are_zeros(kind):
    nlp, _, _ = make_pipeline("tagger", kind=kind, weights=lambda: make_checkpoint(tokenizer=make_wordpiece()))
    docs = [Doc(nlp.vocab, words=words) for words in (["ada", "\x07", "london"], ["\x07", "\x08"], [])]
    for doc in [nlp.get_pipe("luke_encoder")(doc) for doc in docs[:2]]:
        words = doc.tensor if kind == "words" else pooled(doc)
        assert [bool(row.any()) for row in words] == [word.text.isalpha() for word in doc]
    assert [len(doc) for doc in nlp.pipe(docs)] == [3, 2, 0]
    examples = [
        Example.from_dict(Doc(nlp.vocab, words=[x.text for x in doc]), {"tags": ["NAME"] * len(doc)}) for doc in docs
    ]
    assert nlp.update(examples, sgd=make_adamw())["tagger"] > 0
    assert nlp.update(examples[1:], sgd=make_adamw())["tagger"] > 0
    assert nlp.update(examples[2:], sgd=make_adamw())["tagger"] == 0


def test_nothing_is_set_where_nobody_listens():
    nlp, _, _ = make_pipeline("luke_ner")
    doc = nlp(SENTENCES[0])
    assert doc.tensor.size == 0
    assert not doc.has_extension("trf_data") or doc._.trf_data is None


@pytest.mark.parametrize("kind", KINDS)
def test_windows_are_read_once_with_luke_components(kind):
    nlp, owner, _ = make_pipeline("luke_ner", "tagger", kind=kind)
    cache = owner.sharing.cache
    cache.clear()
    cache.encoded = cache.reused = 0
    list(nlp.pipe([*SENTENCES, " ".join(SENTENCES * 3)], batch_size=2))
    assert cache.encoded == cache.reused > 0


def test_an_upstream_of_another_name():
    nlp, owner, examples = make_pipeline()
    nlp.add_pipe("tagger", config={"model": {"tok2vec": listener("words", upstream="somebody")}})
    assert owner.listeners == []
    nlp.add_pipe("senter", config={"model": {"tok2vec": listener("words", upstream="luke_encoder")}})
    assert owner.listening_components == ["senter"]


# ---- learning


@pytest.mark.parametrize("kind", KINDS)
def test_learn_save_and_load(kind, tmp_path):
    """A tagger, a textcat and luke_ner, one encoder: all learn, and everything comes back from disk."""
    nlp, owner, examples = make_pipeline("luke_ner", "tagger", "textcat", kind=kind)
    before, optimizer = parameters(owner), make_adamw(learn_rate=4e-3)
    for i in range(300):
        losses = nlp.update(examples, sgd=optimizer)
        scores = (
            nlp.evaluate(make_examples(nlp)) if i % 20 == 19 else dict.fromkeys(["tag_acc", "cats_score", "ents_f"])
        )
        if scores["tag_acc"] == scores["cats_score"] == scores["ents_f"] == 1.0:
            break
    assert scores["tag_acc"] == scores["cats_score"] == scores["ents_f"] == 1.0
    assert losses["luke_encoder"] > 0
    assert {"words.piece.weight", "layers.0.attention.query.weight", "layers.1.down.bias"} <= changed(owner, before)
    texts = [*SENTENCES, "", LONG, " "]
    docs = [nlp(text) for text in texts]
    nlp.to_disk(tmp_path)
    other = spacy.load(tmp_path)
    ways = [nlp.pipe(texts, batch_size=n) for n in (1, 3, 100)]
    ways += [other.pipe(texts), spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes()).pipe(texts)]
    ways += [other.pipe(texts, n_process=2, batch_size=2)]
    for way in ways:
        for expected, found in zip(docs, way, strict=True):
            assert [x.tag_ for x in found] == [x.tag_ for x in expected]
            assert [x.label_ for x in found.ents] == [x.label_ for x in expected.ents]
            if len(found):  # spaCy's textcat gives an empty Doc other scores beside Docs than alone
                assert found.cats == pytest.approx(expected.cats, abs=1e-4)
            assert np.allclose(found.tensor, expected.tensor, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["tagger", "morphologizer", "senter", "parser", "ner", "spancat", "textcat"])
def test_all_of_spacys_components(name, kind):
    nlp, owner, examples = make_pipeline(name, kind=kind)
    before, optimizer = parameters(owner), make_adamw(learn_rate=2e-3)
    losses = [nlp.update(examples, sgd=optimizer)[name] for _ in range(25)]
    assert losses[-1] < losses[0]
    assert changed(owner, before)
    assert len(nlp(LONG))
    assert len(list(nlp.pipe(["", *SENTENCES]))) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_one_pass_for_all_listeners(kind, monkeypatch):
    nlp, owner, examples = make_pipeline("tagger", "textcat", "senter", kind=kind)
    passes, encode = [], LukeEncoder.encode_words
    monkeypatch.setattr(LukeEncoder, "encode_words", lambda *args, **how: passes.append(1) or encode(*args, **how))
    nlp.update(examples, sgd=make_adamw())
    assert len(passes) == 1
    assert owner.sharing.pending is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [SENTENCES[0], LONG], ids=["short", "long"])
def test_gradients_are_those_of_plain_autograd(kind, text):
    """Two listeners give back noise; the encoder's gradients are those of its sum with the word states."""
    nlp, owner, _ = make_pipeline("tagger", "senter", kind=kind)
    docs = [nlp.make_doc(x) for x in (SENTENCES[1], "", text)]
    owner.update([Example.from_dict(doc, {}) for doc in docs], losses={})
    noise = [np.random.default_rng(i).normal(size=(len(doc), WIDTH)).astype("f") for i, doc in enumerate(docs)]
    for name in ("tagger", "senter"):
        states, backprop = nlp.get_pipe(name).model.get_ref("tok2vec").begin_update(docs)
        assert [x.shape[0] for x in states] == [len(doc) for doc in docs]
        backprop([x.copy() for x in noise])
    sums = dict(owner.sharing.sums)
    total = sum((word_states(owner, doc) * torch.from_numpy(x)).sum() for doc, x in zip(docs, noise) if len(doc))
    (2 * total).backward()
    for name, p in owner.encoder.module.named_parameters():
        if p.grad is not None:
            assert torch.allclose(sums.pop(name), p.grad, rtol=1e-3, atol=1e-3), name
    assert not sums


def test_an_update_by_an_iterator():
    """It gives the examples once."""
    nlp, owner, examples = make_pipeline("tagger")
    owner.update(iter(examples))
    assert len(owner.sharing.pending.docs) == len(examples)


def test_gradients_of_all_components_are_added():
    alone = [gradients([name]) for name in ("tagger", "luke_ner", "textcat")]
    assert_sum(gradients(["tagger", "luke_ner", "textcat"]), *alone)
    assert_sum(gradients(["luke_ner", "textcat", "tagger"]), *alone)


def test_gradients_are_summed_over_updates_and_luke_losses_averaged():
    """spaCy's convention for its own: several updates before a step are as one of all their examples."""
    whole = gradients(["tagger"])
    assert_sum(gradients(["tagger"], parts=4), whole)
    luke = gradients(["luke_ner"], parts=2)
    assert_sum(gradients(["luke_ner", "tagger"], parts=2), luke, whole)


@pytest.mark.product
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [["luke_ner", "tagger"], ["tagger", "luke_ner"], ["tagger", "luke_ner", "textcat"]])
@pytest.mark.parametrize("make_optimizer", [make_adamw, Adam], ids=["AdamW", "Adam"])
def test_nlp_update_with_an_optimizer_in_any_order(names, kind, make_optimizer):
    nlp, owner, examples = make_pipeline(*names, kind=kind)
    optimizer, before = make_optimizer(learn_rate=1e-3), parameters(owner)
    nlp.update(examples, sgd=optimizer)
    assert changed(owner, before)  # already now, and not with the next update
    assert owner.sharing.pending is None
    assert not owner.sharing.has_gradients
    nlp.update(examples, sgd=optimizer)


# ---- bad input


def test_a_listener_of_another_width():
    nlp, owner, examples = make_pipeline()
    nlp.add_pipe("tagger", config={"model": {"tok2vec": listener("words", width=96)}})
    message = r"'tagger' listens to 'luke_encoder' with width = 96, .* have 32 numbers. Set width = 32"
    with pytest.raises(ValueError, match=message):
        nlp.initialize(lambda: examples)
    with pytest.raises(ValueError, match=message):
        nlp(SENTENCES[0])


def test_listeners_cannot_be_replaced_but_luke_encoders_can():
    nlp, owner, examples = make_pipeline("tagger", "luke_ner")
    with pytest.raises(ValueError, match="cannot be replaced by a copy of 'luke_encoder'"):
        nlp.replace_listeners("luke_encoder", "tagger", ["model.tok2vec"])
    nlp.replace_listeners("luke_encoder", "luke_ner", ["model.encoder"])
    ner = nlp.get_pipe("luke_ner")
    assert not ner.shared
    before = parameters(ner)
    nlp.update(examples, sgd=make_adamw(learn_rate=1e-3), exclude=["luke_ner"])
    nlp.update(examples, sgd=make_adamw(learn_rate=1e-3), exclude=["luke_ner"])
    assert changed(owner, before)
    assert not changed(ner, before)


def test_the_weight_of_listeners():
    """It concerns what the encoder learns of listeners, and nothing else."""
    luke, tagger = gradients(["luke_ner"]), gradients(["tagger"])
    half = {name: x / 2 for name, x in tagger.items()}
    assert_sum(gradients(["luke_ner", "tagger"], listener_weight=0.5), luke, half)
    assert_sum(gradients(["luke_ner", "tagger"], listener_weight=0.0), luke)
    with pytest.raises(ValueError, match="listener_weight must be a finite number, 0 or more, but it is -1"):
        spacy.blank("en").add_pipe("luke_encoder", config={"listener_weight": -1})


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_that_comes_twice(kind):
    nlp, owner, examples = make_pipeline("tagger", "senter", kind=kind)
    docs = [example.predicted for example in examples]
    owner.update(examples, losses={})
    node = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    _, backprop = node.begin_update(docs)
    taken = owner.listeners[0]._backprop
    noise = [np.ones((len(doc), WIDTH), dtype="f") for doc in docs]
    backprop(noise)
    with pytest.raises(ValueError, match="gave back a gradient twice, or after the step"):
        taken(noise)


def test_wrong_settings():
    nlp = spacy.blank("en")
    for name in ("overlap", "batch_size"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1"):
            nlp.add_pipe("luke_encoder", config={name: 0})


# ---- spacy train


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frozen", [[], ["luke_encoder"]], ids=["trained", "frozen"])
def test_spacy_train(kind, frozen, tmp_path, capsys):
    nlp = spacy.blank("en")
    write_huggingface(make_checkpoint(), tmp_path / "tiny")
    DocBin(docs=[x.reference for x in make_examples(nlp)], store_user_data=True).to_disk(tmp_path / "data.spacy")
    nlp.add_pipe("luke_encoder", config={"overlap": 32})
    for name in ("luke_ner", "tagger", "textcat"):
        nlp.add_pipe(name, config=settings(name, kind))
    config = nlp.config
    config["initialize"]["components"]["luke_encoder"] = {
        "weights": {"@misc": "spacy-luke.checkpoint.v1", "path": str(tmp_path / "tiny")}
    }
    config["paths"].update(train=str(tmp_path / "data.spacy"), dev=str(tmp_path / "data.spacy"))
    config["training"].update(
        max_steps=4, eval_frequency=2, accumulate_gradient=2, annotating_components=["luke_encoder"]
    )
    if frozen:  # what is frozen is not initialised either, and comes from another pipeline
        other, owner, _ = make_pipeline()
        other.to_disk(tmp_path / "other")
        config["components"]["luke_encoder"] = {"source": str(tmp_path / "other")}
        config["initialize"]["components"].pop("luke_encoder")
        config["training"]["frozen_components"] = frozen
    config["training"]["optimizer"] = {"@optimizers": "spacy-luke.AdamW.v1", "learn_rate": 1e-3}
    config.to_disk(tmp_path / "train.cfg")
    train(tmp_path / "train.cfg", tmp_path / "out")
    assert "Saved pipeline" in capsys.readouterr().out
    trained = spacy.load(tmp_path / "out" / "model-last")
    assert trained(SENTENCES[0]).cats
    if frozen:
        assert not changed(trained.get_pipe("luke_encoder"), parameters(owner))


def test_an_encoder_that_is_renamed():
    """Its listeners by name would read zeros, and are named; those of any encoder read on."""
    nlp, _, _ = make_pipeline("tagger", "morphologizer")
    node = next(x for x in nlp.get_pipe("tagger").model.walk() if x.name == "tok2vec-listener")
    node.upstream_name = "luke_encoder"
    before = nlp(SENTENCES[0])
    with pytest.warns(
        UserWarning, match=r"'tagger' listens to 'luke_encoder'.*nlp.rename_pipe\('enc', 'luke_encoder'\)"
    ):
        nlp.rename_pipe("luke_encoder", "enc")
    nlp.rename_pipe("enc", "luke_encoder")
    after = nlp(SENTENCES[0])
    assert np.array_equal(before.tensor, after.tensor)
    assert [x.tag_ for x in before] == [x.tag_ for x in after]
    node.upstream_name = "*"
    nlp.rename_pipe("luke_encoder", "enc")
    assert np.array_equal(before.tensor, nlp(SENTENCES[0]).tensor)
