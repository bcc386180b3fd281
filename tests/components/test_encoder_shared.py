"""`luke_encoder`: one encoder for several components."""

import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.bridge.optimizer import make_adamw
from tests.components.related import KEY, docs_of, make_examples, relations_of, settings_of, types_of
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
from tests.tiny import make_checkpoint, make_wordpiece

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


def test_unknown_words_are_said_once():
    """By the owner; by the component that comes first where that is not initialised, as of a sourced one."""
    nlp = make_shared()
    words = ["\u9a6c", "\u4e91", "\u4e1c", "\u4eac"]
    doc = Doc(nlp.vocab, words=words)
    doc.set_ents([Span(doc, 0, 1, "A")])
    checkpoint = make_checkpoint(tokenizer=make_wordpiece(), position_offset=0)
    owner, ner = nlp.get_pipe("luke_encoder"), nlp.get_pipe("luke_ner")

    def examples():
        return [Example(Doc(nlp.vocab, words=words), doc)]

    said = "100% of 4 words .* the encoder's vocabulary lacks, such as '\u9a6c'"
    with pytest.warns(UserWarning, match=f"'luke_encoder': {said}"):
        owner.initialize(examples, weights=lambda: checkpoint)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ner.initialize(examples)
    owner.sharing.knows_words = False
    with pytest.warns(UserWarning, match=f"'luke_ner': {said}"):
        ner.initialize(examples)


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
    with pytest.raises(ValueError, match="'luke_encoder' has no weights yet"):
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
    for save in (lambda: nlp.to_disk(tmp_path / "renamed"), nlp.to_bytes):  # the config still names the reader
        with pytest.raises(ValueError, match=r"called 'eyes' now.*nlp\.rename_pipe\('eyes', 'reader'\)"):
            save()
    nlp.rename_pipe("eyes", "reader")
    nlp.to_disk(tmp_path)
    same(expected, answers(spacy.load(tmp_path)), abs=1e-6)
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


@pytest.mark.slow
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
