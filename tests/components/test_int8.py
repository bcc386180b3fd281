"""Pipelines in int8: every component predicts with it, it is stored and shared as others are, and is not trained."""

import copy
import json

import pytest
import spacy
import torch
from safetensors import safe_open
from spacy.training import Example

from spacy_luke.bridge.digests import shim_digest
from spacy_luke.model.int8 import QuantizedLinear
from spacy_luke.pipelines.quantization import quantize
from tests.components import known
from tests.components.every import MAKERS, facts
from tests.components.listening import make_pipeline as make_listeners
from tests.components.recognised import make_examples, make_ner, overfit
from tests.tiny import SENTENCES

MESSAGE = r"encoder is int8 \(`spacy luke quantize`\): it predicts, but cannot be trained or exported"


def predict(nlp, ask, **settings):
    return [facts(doc) for doc in nlp.pipe([ask(nlp, text) for text in TEXTS[ask]], **settings)]


TEXTS = {ask: (SENTENCES if "Ada" in words else known.TEXTS) for _, ask, words in MAKERS.values()}


def encoders(nlp):
    return [x.encoder for _, x in nlp.pipeline if hasattr(x, "own_shims") and "luke_encoder" in x.own_shims]


@pytest.fixture(scope="module", params=MAKERS)
def made(request, tmp_path_factory):
    """A quantised pipeline, how it is asked, and what it said before."""
    make, ask, _ = MAKERS[request.param]
    nlp = make(tmp_path_factory.mktemp("made"))
    before = predict(nlp, ask)
    size = len(nlp.to_bytes())
    quantize(nlp)
    return nlp, ask, before, size


def near(some, others, *, tolerance):
    """Most of what was found is the same, and the scores of that are near."""
    for one, other in zip(some, others, strict=True):
        both = set(one) & set(other)
        assert len(both) >= 0.7 * max(len(one), len(other))
        assert sum(abs(one[key] - other[key]) for key in both) / max(len(both), 1) < tolerance


def test_predictions_are_near(made):
    nlp, ask, before, _ = made
    found = predict(nlp, ask)
    assert any(map(len, found))
    near(found, before, tolerance=0.1)


def test_saved_and_loaded(made, tmp_path):
    nlp, ask, _, size = made
    expected = predict(nlp, ask)
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    assert predict(loaded, ask) == expected
    data = nlp.to_bytes()
    assert len(data) < size
    assert predict(spacy.blank(nlp.lang).from_config(nlp.config).from_bytes(data), ask) == expected
    assert [shim_digest(x) for x in encoders(loaded)] == [shim_digest(x) for x in encoders(nlp)]
    assert all(x.is_int8 and not x.named_parameters() for x in encoders(loaded))
    loaded.to_disk(tmp_path / "again")
    assert predict(spacy.load(tmp_path / "again"), ask) == expected
    files = sorted(x.relative_to(tmp_path) for x in tmp_path.rglob("model.safetensors") if "again" not in x.parts)
    assert files
    assert all((tmp_path / x).read_bytes() == (tmp_path / "again" / x).read_bytes() for x in files)


def test_the_file_says_it(made, tmp_path):
    nlp, *_ = made
    nlp.to_disk(tmp_path)
    versions = set()
    for path in tmp_path.rglob("model.safetensors"):
        with safe_open(path, framework="pt") as file:
            shims = json.loads(file.metadata()["spacy_luke"])["shims"]
            names = {name for name in file.keys() if file.get_tensor(name).dtype == torch.int8}
        for node, stored in shims.items():
            versions.add((node == "luke_encoder", stored["version"], stored["settings"].get("numbers")))
            assert (node == "luke_encoder") == any(name.startswith(f"{node}/layers.0.up") for name in names)
    assert {x for x in versions if x[0]} == {(True, 2, "int8")}
    assert all(x[1:] == (1, None) for x in versions if not x[0])


def test_documents_do_not_depend_on_the_batch(made):
    """In float too, the last digit may."""
    nlp, ask, _, _ = made
    together = predict(nlp, ask)
    for one, other in zip(predict(nlp, ask, batch_size=1), together, strict=True):
        assert set(one) == set(other)
        assert all(abs(one[key] - other[key]) < 0.02 * max(1, abs(other[key])) for key in one)


def test_autocast_is_not_for_int8(made):
    nlp, ask, _, _ = made
    expected = predict(nlp, ask)
    nodes = [x.encoder_node for _, x in nlp.pipeline if hasattr(x, "encoder_node")]
    for node in nodes:
        node.attrs["predict_precision"] = "bfloat16"
    try:
        assert predict(nlp, ask) == expected
    finally:
        for node in nodes:
            node.attrs["predict_precision"] = "float32"


def test_not_twice(made):
    with pytest.raises(ValueError, match=r"The encoder of \['.*is int8 already"):
        quantize(made[0])


def test_no_encoder():
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    with pytest.raises(ValueError, match=r"has no LUKE or ERNIE encoder; its components are \['sentencizer'\]"):
        quantize(nlp)


@pytest.mark.parametrize("attention", ["one_way", "full"])
def test_what_was_learned_stays(attention):
    data, config = overfit(attention)
    nlp = spacy.blank("en").from_config(config).from_bytes(data)
    quantize(nlp)
    assert nlp.evaluate(make_examples(nlp))["ents_f"] == 1.0


def test_no_training():
    nlp, ner = make_ner()
    quantize(nlp)
    for pipeline in (nlp, copy.deepcopy(nlp), spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())):
        with pytest.raises(ValueError, match=MESSAGE):
            pipeline.update(make_examples(nlp))
    with pytest.raises(ValueError, match=MESSAGE):
        ner.to_checkpoint()


def test_no_training_without_gold_either():
    """It is said before the gold is looked at, which may not be there."""
    nlp, _ = make_ner()
    quantize(nlp)
    with pytest.raises(ValueError, match=MESSAGE):
        nlp.update([Example(nlp.make_doc("Ada left."), nlp.make_doc("Ada left."))])


def test_no_training_of_a_shared_one():
    nlp, _, examples = make_listeners("luke_ner", "tagger")
    quantize(nlp)
    with pytest.raises(ValueError, match=MESSAGE):
        nlp.update(examples)


def test_heads_learn_on_a_frozen_one():
    nlp, owner, examples = make_listeners("luke_ner", "tagger")
    quantize(nlp)
    before = {name: x.clone() for name, x in owner.encoder.module.state_dict().items()}
    head = nlp.get_pipe("luke_ner").model.shims[0].module.classifier.weight
    old = head.detach().clone()
    optimizer = nlp.resume_training()
    losses = []
    for _ in range(10):
        given = [Example(nlp.make_doc(x.text), x.reference) for x in examples]
        found = nlp.update(given, sgd=optimizer, exclude=["luke_encoder"], annotates=["luke_encoder"])
        losses.append(found["luke_ner"])
    assert losses[-1] < losses[0]
    assert not torch.equal(head, old)
    assert all(torch.equal(x, before[name]) for name, x in owner.encoder.module.state_dict().items())
    nlp.to_bytes()


def test_a_new_checkpoint_makes_it_float_again():
    nlp, ner = make_ner()
    other, _ = make_ner()
    quantize(nlp)
    ner.load_encoder(other.get_pipe("luke_ner").to_checkpoint())
    assert not ner.encoder.is_int8
    assert not any(isinstance(x, QuantizedLinear) for x in ner.encoder.module.modules())
    nlp.update(make_examples(nlp))


def test_a_copy_of_a_shared_one():
    nlp, _, _ = make_listeners("luke_ner")
    quantize(nlp)
    expected = [facts(doc) for doc in nlp.pipe(SENTENCES)]
    nlp.replace_listeners("luke_encoder", "luke_ner", ["model.encoder"])
    nlp.remove_pipe("luke_encoder")
    assert [set(facts(doc)) for doc in nlp.pipe(SENTENCES)] == [set(x) for x in expected]
