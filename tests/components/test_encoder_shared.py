"""`luke_encoder`: one encoder for several components."""

import copy
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.cli.train import train as spacy_train
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from thinc.api import Adam

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.checkpoint.checkpoint import write_huggingface
from tests.components.related import KEY, docs_of, gold_doc, make_examples, relations_of, settings_of, types_of
from tests.components.sharing import (
    LONG,
    NAMES,
    SHARED,
    answers,
    equal,
    learn,
    make_shared,
    noise,
    same,
    settings_for,
    start,
    state,
)
from tests.tiny import SENTENCES, make_checkpoint
from tests.training_config import quiet, write_config
from tests.training_config import start as start_training

# ---- sharing


def test_one_module():
    nlp = make_shared()
    owner = nlp.get_pipe("luke_encoder")
    assert owner.listening_components == NAMES
    assert len(owner.listeners) == 3
    for name in NAMES:
        component = nlp.get_pipe(name)
        assert component.shared
        assert component.encoder is owner.encoder
        assert list(component.own_shims) == ["head"]
        assert all(parameter.startswith("head.") for parameter, _ in component.named_parameters())
    assert all(parameter.startswith("encoder.") for parameter, _ in owner.named_parameters())


@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_equal_to_encoders_of_their_own(attention):
    nlp = noise(make_shared(attention))
    own = spacy.blank("en")
    for name in NAMES:
        own.add_pipe(name, config=settings_for(name, attention, {"train_precision": "float32"}))
    for name in NAMES:
        component = own.get_pipe(name)
        component.initialize(lambda: make_examples(own), nlp=own, weights=make_checkpoint)
        component.model.shims[0].fill(nlp.get_pipe(name).model.shims[0].module.state_dict())
        assert equal(state(component.encoder), state(nlp.get_pipe("luke_encoder").encoder))
    expected = answers(own)
    assert all(map(sum, zip(*([len(part) > 1 for part in found] for found in expected))))
    same(expected, answers(nlp), abs=1e-5)


def test_words_are_read_once():
    """In one-way attention three components read a text as one does; in full attention nothing can be shared."""
    nlp = noise(make_shared())
    cache = nlp.get_pipe("luke_encoder").sharing.cache
    list(nlp.pipe(docs_of(nlp)))
    alone = make_shared(names=["luke_ner"])
    list(alone.pipe(docs_of(nlp)))
    assert cache.encoded == alone.get_pipe("luke_encoder").sharing.cache.encoded
    assert cache.reused >= 1.4 * cache.encoded  # the sentence without mentions is read by one of three
    before = cache.reused, cache.encoded
    doc = nlp.make_doc(LONG)
    doc.spans[KEY] = [doc[i : i + 1] for i in range(len(doc))]
    with nlp.select_pipes(disable=["luke_relation"]):
        nlp(doc)  # several windows, the same for both
    assert cache.reused - before[0] == cache.encoded - before[1] > 500
    for nothing in (make_shared("full"), make_shared(pieces=0)):
        list(nothing.pipe(docs_of(nothing)))
        assert nothing.get_pipe("luke_encoder").sharing.cache.reused == 0


def test_a_stream_is_read_once_in_little_memory():
    """Docs are handed on before their words are forgotten, whatever the batch size."""
    nlp = make_shared(pieces=300)
    cache = nlp.get_pipe("luke_encoder").sharing.cache
    docs = [Doc(nlp.vocab, words=["."] * (9 + i % 5)) for i in range(200)]
    for doc in docs:
        doc.set_ents([Span(doc, 0, 1, label="ENT"), Span(doc, 2, 4, label="ENT")])
        doc.spans[KEY] = list(doc.ents)
    list(nlp.pipe(docs, batch_size=1000))
    assert cache.held <= 300
    assert cache.reused >= 1.8 * cache.encoded


# ---- learning


def test_learned_together(tmp_path):
    """All three by heart; the encoder is stored once."""
    nlp = make_shared()
    before = state(nlp.get_pipe("luke_encoder").encoder)
    losses = learn(nlp, 45)
    assert max(losses[name] for name in NAMES) < 0.3
    assert not equal(before, state(nlp.get_pipe("luke_encoder").encoder))
    scores = nlp.evaluate(make_examples(nlp))
    assert min(scores[f"{name}_f"] for name in ("ents", "types_micro", "relations")) > 0.9
    expected = answers(nlp)
    nlp.to_disk(tmp_path)
    sizes = {path.parent.name: path.stat().st_size for path in tmp_path.rglob("model.safetensors")}
    assert set(sizes) == {"luke_encoder", *NAMES}
    assert sizes["luke_encoder"] > 100_000
    assert max(sizes[name] for name in NAMES) < 6_000
    again = [spacy.load(tmp_path), pickle.loads(pickle.dumps(nlp)), copy.deepcopy(nlp)]
    again.append(spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()))
    for other in again:
        same(expected, answers(other), abs=1e-6)
        owner = other.get_pipe("luke_encoder")
        assert all(other.get_pipe(name).encoder is owner.encoder for name in NAMES)
        assert owner.encoder is not nlp.get_pipe("luke_encoder").encoder
    for other in again[1:3]:
        learn(other, 1)
    same(expected, answers(nlp), abs=0)  # copies are apart
    same(expected, answers(again[0]), abs=1e-6)


def gradients_alone(name, attention):
    """The encoder's, of a component that has it for itself."""
    nlp, found = spacy.blank("en"), {}
    component = nlp.add_pipe(name, config=settings_for(name, attention, {"train_precision": "float32"}))
    component.initialize(lambda: make_examples(nlp), nlp=nlp, weights=make_checkpoint)
    component.update(make_examples(nlp), drop=0.0)
    component.finish_update(lambda key, x, d_x: (x, found.setdefault(key, d_x.copy())))
    return {parameter: x for (node, parameter), x in found.items() if node == component.encoder.id}


@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_gradient_is_the_sum_of_the_components(attention):
    """A step has the sum of the gradients of the mean losses: those of encoders of their own, added."""
    nlp = make_shared(attention)
    nlp.update(make_examples(nlp), sgd=False, drop=0.0)
    grad = {}
    nlp.get_pipe("luke_encoder").finish_update(lambda key, x, d_x: (x, grad.setdefault(key[1], d_x.copy())))
    expected = {}
    for name in NAMES:
        for parameter, x in gradients_alone(name, attention).items():
            expected[parameter] = expected.get(parameter, 0) + x
    assert set(grad) == set(expected)
    assert max(np.abs(x).max() for x in expected.values()) > 0.01
    for name, x in expected.items():
        assert np.abs(grad[name] - x).max() <= 1e-5, name


def test_accumulated_updates_give_the_mean():
    """Two updates with the same examples before a step are one."""

    def gradients(times):
        nlp, found = make_shared(), {}
        for _ in range(times):
            nlp.update(make_examples(nlp), sgd=False, drop=0.0)
        for _, component in nlp.pipeline:
            component.finish_update(lambda key, x, d_x: (x, found.setdefault((x.shape, key[1]), d_x.copy())))
        return found

    one, two = gradients(1), gradients(2)
    assert set(one) == set(two)
    for key, x in one.items():
        assert np.abs(two[key] - x).max() <= 1e-6, key


@pytest.mark.parametrize("kind", ["adamw", "thinc", "none"])
def test_optimizers(kind):
    """spaCy's own too; each component makes a step of what it added to the encoder's gradients."""
    nlp = make_shared()
    before = state(nlp.get_pipe("luke_encoder").encoder)
    optimizer = {"adamw": make_adamw(learn_rate=4e-3), "thinc": Adam(4e-3, use_averages=True), "none": None}[kind]
    losses = []
    for _ in range(10):
        found = nlp.update(make_examples(nlp), sgd=optimizer)
        losses.append(sum(found.values()))
    assert losses[-1] < 0.8 * losses[0]
    now = state(nlp.get_pipe("luke_encoder").encoder)
    assert not equal(before, now)
    if kind == "thinc":
        expected = answers(nlp)
        with nlp.use_params(optimizer.averages):
            averaged = answers(nlp)
        assert str(averaged) != str(expected)
        assert equal(now, state(nlp.get_pipe("luke_encoder").encoder))
        same(expected, answers(nlp), abs=0)


@pytest.mark.product
@pytest.mark.parametrize("how", ["exclude", "alone", "trainable"])
@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_frozen_encoder(attention, how):
    """It stays as it is to the last bit; what stands on it learns."""
    nlp = make_shared(attention, **({"trainable": False} if how == "trainable" else {}))
    learn(nlp, 1)  # and it may have learned before
    owner = nlp.get_pipe("luke_encoder")
    before, optimizer = state(owner.encoder), make_adamw(learn_rate=1e-2)
    heads = {name: state(nlp.get_pipe(name).model.shims[0]) for name in NAMES}
    answers(nlp)
    for _ in range(3):
        if how == "alone":
            for name in NAMES:
                nlp.get_pipe(name).update(make_examples(nlp), sgd=optimizer, drop=0.1)
        else:
            nlp.update(
                make_examples(nlp), sgd=optimizer, drop=0.1, exclude=["luke_encoder"] if how == "exclude" else []
            )
        answers(nlp)
    owner.finish_update(optimizer)
    assert equal(before, state(owner.encoder))
    assert all(p.grad is None for p in owner.encoder.module.parameters())
    for name in NAMES:
        assert not equal(heads[name], state(nlp.get_pipe(name).model.shims[0]))


def test_a_frozen_encoder_reads_the_words_of_an_update_once():
    nlp = make_shared()
    cache = nlp.get_pipe("luke_encoder").sharing.cache
    nlp.update(make_examples(nlp), sgd=make_adamw(), exclude=["luke_encoder"])
    assert cache.reused >= cache.encoded > 0
    encoded = cache.encoded
    nlp.update(make_examples(nlp), sgd=make_adamw())  # with gradients nothing is held
    assert cache.encoded == encoded


@pytest.mark.parametrize("frozen", NAMES)
def test_frozen_component(frozen):
    """Its head stays; the encoder learns from the others."""
    nlp = make_shared()
    before, encoder = state(nlp.get_pipe(frozen).model.shims[0]), state(nlp.get_pipe("luke_encoder").encoder)
    learn(nlp, 2, exclude=[frozen])
    assert equal(before, state(nlp.get_pipe(frozen).model.shims[0]))
    assert not equal(encoder, state(nlp.get_pipe("luke_encoder").encoder))


def test_answers_are_never_stale():
    """Predictions after each update equal those of a pipeline that holds nothing."""
    nlp = noise(make_shared())
    optimizer = make_adamw(learn_rate=1e-4)
    found = []
    for _ in range(3):
        learn(nlp, 1, optimizer)
        found.append(answers(nlp))
        nlp.get_pipe("luke_encoder").sharing.cache.clear()
        same(found[-1], answers(nlp), abs=1e-6)
    assert len({str(x) for x in found}) == 3
    nlp.from_bytes(noise(make_shared()).to_bytes())
    same(answers(noise(make_shared())), answers(nlp), abs=1e-6)


def test_entities_of_an_update_annotate_the_next_component():
    """annotating_components: relations are learned between the entities that were just found."""
    nlp = make_shared(names=["luke_ner", "luke_relation"])
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(50):
        examples = [Example(nlp.make_doc(x.text), x.reference) for x in make_examples(nlp)]
        losses = nlp.update(examples, sgd=optimizer, annotates=["luke_ner"])
    assert 0 < losses["luke_relation"] < 0.3
    doc = nlp(SENTENCES[0])  # from raw text
    assert [x.text for x in doc.ents] == ["Ada Lovelace", "London", "Royal Society"]
    assert relations_of(doc).keys() == relations_of(examples[0].reference).keys()


# ---- spaCy's ways with pipelines


def test_precisions_follow_the_encoder():
    nlp = make_shared(predict_precision="bfloat16")
    for name in NAMES:
        assert nlp.get_pipe(name).encoder_node.attrs["predict_precision"] == "bfloat16"
    assert answers(nlp)


def test_order():
    """The encoder must stand before those that share it."""
    nlp = spacy.blank("en")
    typer = nlp.add_pipe("luke_typer", config=settings_of("luke_typer", encoder=SHARED))
    message = (
        r"SharedEncoder\.v1, but no luke_encoder stands before it in the pipeline.*add_pipe\('luke_encoder', before="
    )
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            nlp(docs_of(nlp)[0])
        with pytest.raises(ValueError, match=message):
            typer.update(make_examples(nlp))
        for weights in (None, make_checkpoint):
            with pytest.raises(ValueError, match=message):
                typer.initialize(lambda: make_examples(nlp), nlp=nlp, weights=weights)
        if "luke_encoder" not in nlp.pipe_names:
            nlp.add_pipe("luke_encoder")  # behind it
    nlp.remove_pipe("luke_encoder")
    nlp.add_pipe("luke_encoder", before="luke_typer")
    with pytest.raises(
        ValueError, match=r"'luke_encoder' needs a checkpoint(.*\n)+\[initialize.components.luke_encoder.wei"
    ):
        typer.initialize(lambda: make_examples(nlp), nlp=nlp)
    with pytest.raises(ValueError, match="'luke_typer' shares the encoder of 'luke_encoder': give its checkpoint in"):
        typer.initialize(lambda: make_examples(nlp), nlp=nlp, weights=make_checkpoint)
    with pytest.raises(ValueError, match="no weights yet"):
        nlp(docs_of(nlp)[0])
    start(nlp)
    assert answers(nlp)


def test_another_name(tmp_path):
    nlp = make_shared(owner="reader", upstream="reader")
    learn(nlp, 2)
    expected = answers(nlp)
    nlp.to_disk(tmp_path)
    same(expected, answers(spacy.load(tmp_path)), abs=1e-6)
    nlp.rename_pipe("reader", "eyes")
    same(expected, answers(nlp), abs=1e-6)
    learn(nlp, 1)
    with pytest.raises(ValueError, match=r"no luke_encoder named 'other' stands before it"):
        make_shared(owner="reader", upstream="other")


def test_two_encoders():
    """Each component has that of its upstream."""
    nlp = spacy.blank("en")
    for owner in ("one", "two"):
        nlp.add_pipe("luke_encoder", name=owner, config={"model": {"train_precision": "float32"}})
    for name, upstream in (("luke_typer", "one"), ("luke_relation", "two")):
        nlp.add_pipe(name, config=settings_of(name, encoder={**SHARED, "upstream": upstream}))
    for i, owner in enumerate(("one", "two")):
        nlp.get_pipe(owner).initialize(lambda: make_examples(nlp), nlp=nlp, weights=lambda i=i: make_checkpoint(seed=i))
    for name in ("luke_typer", "luke_relation"):
        nlp.get_pipe(name).initialize(lambda: make_examples(nlp), nlp=nlp)
    assert nlp.get_pipe("luke_typer").encoder is nlp.get_pipe("one").encoder
    assert nlp.get_pipe("luke_relation").encoder is nlp.get_pipe("two").encoder
    learn(nlp, 2)


def test_disabled_components(tmp_path):
    nlp = noise(make_shared())
    expected = answers(nlp)
    with nlp.select_pipes(disable=["luke_encoder"]):  # it has nothing to do itself
        same(expected, answers(nlp), abs=1e-6)
    nlp.to_disk(tmp_path)
    with nlp.select_pipes(enable=["luke_encoder", "luke_relation"]):
        assert all(x._.luke_score is None for doc in nlp.pipe(docs_of(nlp)) for x in doc.ents)
        learn(nlp, 1)
    less = spacy.load(tmp_path, exclude=["luke_ner", "luke_typer"])
    assert relations_of(less(docs_of(less)[0]))
    without = spacy.load(tmp_path, exclude=["luke_encoder"])
    with pytest.raises(ValueError, match="or it was disabled or excluded when the pipeline was loaded"):
        without("Ada")


def test_replace_listeners(tmp_path):
    """A component gets a copy of the encoder as its own, which learns and is stored with it."""
    nlp = noise(make_shared())
    expected = answers(nlp)
    nlp.replace_listeners("luke_encoder", "luke_typer", ["model.encoder"])
    typer, owner = nlp.get_pipe("luke_typer"), nlp.get_pipe("luke_encoder")
    assert not typer.shared
    assert typer.encoder is not owner.encoder
    assert typer.encoder.sharing is None
    assert owner.listening_components == ["luke_ner", "luke_relation"]
    assert nlp.config["components"]["luke_typer"]["model"]["encoder"]["@architectures"] == "spacy-luke.LukeEncoder.v1"
    same(expected, answers(nlp), abs=1e-6)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    same(expected, answers(again), abs=1e-6)
    before = state(owner.encoder)
    typer.update(make_examples(nlp), sgd=make_adamw(learn_rate=1e-2))
    assert equal(before, state(owner.encoder))
    assert not equal(before, state(typer.encoder))


def test_sourced_components(tmp_path):
    """Into another pipeline: with the encoder, or with a copy of it."""
    nlp = noise(make_shared())
    expected = answers(nlp)
    nlp.to_disk(tmp_path / "whole")
    both, source = spacy.blank("en"), spacy.load(tmp_path / "whole")
    for name in ("luke_encoder", *NAMES):
        both.add_pipe(name, source=source)
    same(expected, answers(both), abs=1e-6)
    config = spacy.blank("en").config
    config["nlp"]["pipeline"] = ["luke_typer"]
    source = {"source": str(tmp_path / "whole"), "component": "luke_typer", "replace_listeners": ["model.encoder"]}
    config["components"] = {"luke_typer": source}
    alone = spacy.util.load_model_from_config(config)
    assert not alone.get_pipe("luke_typer").shared
    for doc, found in zip(alone.pipe(docs_of(alone)), expected, strict=True):
        assert types_of(doc).keys() == found[1].keys()
    alone.to_disk(tmp_path / "alone")
    again = spacy.load(tmp_path / "alone")
    assert [types_of(x) for x in again.pipe(docs_of(again))] == [types_of(x) for x in alone.pipe(docs_of(alone))]


PROCESSES = """
    import multiprocessing, os, sys
    import spacy
    from tests.components.related import docs_of, relations_of, types_of

    def read(docs):
        return [({(e.start, e.end) for e in doc.ents}, types_of(doc), relations_of(doc)) for doc in docs]

    if __name__ == "__main__":
        nlp = spacy.load("pipeline")
        expected = read([nlp(doc) for doc in docs_of(nlp) * 3])
        assert sum(len(x[2]) for x in expected) >= 6, expected
        multiprocessing.set_start_method("fork" if hasattr(os, "fork") else "spawn")
        found = read(nlp.pipe(docs_of(nlp) * 3, n_process=2, batch_size=5))
        for one, other in zip(expected, found, strict=True):
            assert one[0] == other[0]
            for a, b in zip([*one[1].values(), one[2]], [*other[1].values(), other[2]], strict=True):
                assert a.keys() == b.keys(), (a, b)
                assert all(abs(a[key] - b[key]) < 1e-5 for key in a), (a, b)
        print("same")
"""


def test_processes(tmp_path):
    """After a prediction in the parent, whose threads a forked child does not have."""
    noise(make_shared()).to_disk(tmp_path / "pipeline")
    (tmp_path / "run.py").write_text(textwrap.dedent(PROCESSES))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "run.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "same\n"


# ---- training from a config


@pytest.fixture(scope="module")
def config_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    nlp = spacy.blank("en")
    DocBin(docs=[gold_doc(nlp, i) for i in range(4)], store_user_data=True).to_disk(folder / "train.spacy")
    write_huggingface(make_checkpoint(), folder / "checkpoint")
    classifier = {"@architectures": "spacy-luke.EntityClassifier.v1", "encoder": SHARED}
    components = {name: {"overlap": 32, "model": classifier} for name in ("luke_typer", "luke_relation")}
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "train_precision": "float32"}
    return write_config(
        folder / "config.cfg",
        {"luke_encoder": {"model": encoder}, **components},
        train=folder / "train.spacy",
        checkpoint=folder / "checkpoint",
        reader={"@readers": "spacy-luke.GoldCorpus.v1", "entities": True},
        dropout=0.1,
        accumulate_gradient=2,
        max_steps=4,
        eval_frequency=2,
        frozen_components=[],
    )


@pytest.mark.product
@pytest.mark.parametrize("frozen", ["", "trainable", "sourced"])
@pytest.mark.parametrize("optimizer", ["spacy-luke.AdamW.v1", "Adam.v1"])
def test_spacy_train(config_path, tmp_path, capsys, optimizer, frozen):
    """spaCy's own loop; what is frozen is bit-identical on disk."""
    config = load_config(config_path)
    config["training"]["optimizer"] = {"@optimizers": optimizer}
    if frozen == "trainable":
        config["components"]["luke_encoder"]["model"]["trainable"] = False
    if frozen == "sourced":
        init_nlp(load_config(config_path)).to_disk(tmp_path / "source")
        config["components"]["luke_encoder"] = {"source": str(tmp_path / "source")}
        config["training"]["frozen_components"] = ["luke_encoder"]
    config.to_disk(tmp_path / "config.cfg")
    first = state(init_nlp(load_config(tmp_path / "config.cfg")).get_pipe("luke_encoder").encoder)
    spacy_train(tmp_path / "config.cfg", tmp_path / "out")
    capsys.readouterr()
    nlp = spacy.load(tmp_path / "out/model-last")
    assert equal(first, state(nlp.get_pipe("luke_encoder").encoder)) == bool(frozen)
    assert {"types_micro_f", "relations_f", "luke_typer_loss", "luke_relation_loss"} <= set(nlp.meta["performance"])


def test_frozen_before_it_is_initialised(config_path):
    config = load_config(config_path)
    config["training"]["frozen_components"] = ["luke_encoder"]
    with pytest.raises(ValueError, match=r"is 'luke_encoder' in frozen_components\?.*set trainable = false in"):
        init_nlp(config)


def test_exact_resume(config_path, tmp_path):
    """`spacy luke train` with a shared encoder: stopped and resumed, bit for bit the same."""

    def run(folder, steps, **settings):
        quiet(start_training(config_path, training__max_steps=steps), folder, **settings)
        return {x.parent.name: x.read_bytes() for x in (folder / "model-last").rglob("model.safetensors")}

    whole = run(tmp_path / "whole", steps=4)
    run(tmp_path / "parts", steps=2)
    assert run(tmp_path / "parts", steps=4, resume=True) == whole
