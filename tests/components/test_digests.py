"""Flipped bits of a saved component are found, and a component refuses another encoder than the one it was saved
with."""

import pickle
import random
import shutil

import numpy as np
import pytest
import spacy
import torch
from spacy.training import Example

from spacy_luke.bridge.digests import digest_tensors, digest_values, shim_digest
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.vectors.build import build_vectors
from tests.components.linker.linked import ENTITIES, SIZE, make_linker
from tests.pipelines import answers, make_gold, make_pipeline, other_weights
from tests.tiny import SENTENCES

NAMES = ("luke_ner", "luke_typer")
MIXTURE = "was saved with another encoder than the one in 'luke_encoder'"
SHARED = {"model": {"attention": "one_way", "encoder": {"@architectures": "spacy-luke.SharedEncoder.v1"}}}


def learn(nlp, *, frozen=()):
    golds = [make_gold(nlp, text) for text in SENTENCES[:2]]
    examples = [Example(gold.copy(), gold) for gold in golds]
    sgd = make_adamw(learn_rate=1e-3)
    with nlp.select_pipes(disable=frozen):
        nlp.update(examples, sgd=sgd)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digests")
    nlp = make_pipeline(*NAMES)
    nlp.to_disk(folder / "one")
    other_weights(nlp).to_disk(folder / "two")
    return folder


@pytest.fixture
def one(folders):
    return spacy.load(folders / "one")


@pytest.fixture
def mixed(folders, tmp_path):
    """What a kill after the encoder was written leaves."""
    shutil.copytree(folders / "one", tmp_path / "mixed")
    shutil.copytree(folders / "two/luke_encoder", tmp_path / "mixed/luke_encoder", dirs_exist_ok=True)
    return tmp_path / "mixed"


# ---- damage


@pytest.mark.parametrize("name", ["luke_encoder", "luke_ner"])
def test_flipped_bits(folders, tmp_path, name):
    """In the header (names, places, settings, labels), in numbers and in the tokenizer: nothing is loaded."""
    whole = (folders / "one" / name / "model.safetensors").read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    rng, pipe = random.Random(0), spacy.load(folders / "one").get_pipe(name)
    before = pickle.dumps([pipe.cfg, shim_digest(pipe.encoder)])
    for place in [rng.randrange(header) for _ in range(150)] + [rng.randrange(header, len(whole)) for _ in range(150)]:
        data = bytearray(whole)
        data[place] ^= 1 << rng.randrange(8)
        (tmp_path / "model.safetensors").write_bytes(data)
        with pytest.raises(
            ValueError, match=r"is damaged|is not a whole safetensors file|holds tensors, but not those"
        ):
            pipe.from_disk(tmp_path)
    assert pickle.dumps([pipe.cfg, shim_digest(pipe.encoder)]) == before
    (tmp_path / "model.safetensors").write_bytes(whole)
    pipe.from_disk(tmp_path)


def test_flipped_bits_of_bytes(one):
    data, rng = bytearray(one.get_pipe("luke_ner").to_bytes()), random.Random(0)
    start = data.index(b"F32")
    for _ in range(30):
        place = rng.randrange(start, len(data))
        data[place] ^= 1
        with pytest.raises(ValueError, match="damaged"):
            one.get_pipe("luke_ner").from_bytes(bytes(data))
        data[place] ^= 1
    one.get_pipe("luke_ner").from_bytes(bytes(data))


def test_digests_depend_on_everything():
    x = {"a": torch.arange(4.0), "b": torch.zeros(0), "c": torch.tensor(1)}
    others = [
        {**x, "a": torch.arange(4.0).reshape(2, 2)},
        {**x, "a": torch.arange(4.0).int()},
        {**x, "a": torch.arange(4.0).flip(0)},
        {"d": x["a"], "b": x["b"], "c": x["c"]},
        {"a": x["a"], "c": x["c"]},
    ]
    found = {digest_tensors(tensors, {"n": 1}) for tensors in [x, *others]} | {digest_tensors(x, {"n": 2})}
    assert len(found) == 7
    assert digest_tensors(dict(reversed(x.items())), {"n": 1}) in found
    assert digest_values({"a": 1, "b": (2, 0.1)}) == digest_values({"b": [2, 0.1], "a": 1})


# ---- another encoder


def test_a_mixture_of_two_pipelines(folders, mixed):
    with pytest.raises(ValueError, match=f"'luke_ner' {MIXTURE}.*digest .* instead of .*Save|save"):
        spacy.load(mixed)
    with pytest.raises(ValueError, match=f"'luke_ner' {MIXTURE}"):
        spacy.load(folders / "one").from_disk(mixed)
    shutil.copytree(folders / "two/luke_ner", mixed / "luke_ner", dirs_exist_ok=True)
    with pytest.raises(ValueError, match=f"'luke_typer' {MIXTURE}"):
        spacy.load(mixed)
    shutil.copytree(folders / "two/luke_typer", mixed / "luke_typer", dirs_exist_ok=True)
    assert answers(spacy.load(mixed)) == answers(spacy.load(folders / "two"))


def test_another_pipeline_over_a_loaded_one(folders):
    """In spaCy's order each part is replaced, so that nothing is a mixture at the end."""
    nlp = spacy.load(folders / "one").from_disk(folders / "two")
    assert answers(nlp) == answers(spacy.load(folders / "two"))
    data = spacy.load(folders / "one").to_bytes()
    assert answers(nlp.from_bytes(data)) == answers(spacy.load(folders / "one"))


def test_the_encoder_after_the_components(folders, one):
    nlp = spacy.blank("en").from_config(one.config)
    for name in NAMES:
        nlp.get_pipe(name).from_disk(folders / "one" / name)
    with pytest.raises(ValueError, match=f"'luke_ner' {MIXTURE}"):
        nlp.get_pipe("luke_encoder").from_disk(folders / "two/luke_encoder")
    nlp = spacy.blank("en").from_config(one.config)
    for name in reversed(nlp.pipe_names[1:]):
        nlp.get_pipe(name).from_disk(folders / "one" / name)
    assert answers(nlp) == answers(one)


def test_the_encoder_alone(folders, one):
    """Of a pipeline in memory: its components neither predict nor are saved, until they have learned."""
    one.get_pipe("luke_encoder").from_disk(folders / "two/luke_encoder")
    with pytest.raises(ValueError, match=f"'luke_ner' {MIXTURE}"):
        one(SENTENCES[0])
    with pytest.raises(ValueError, match=f"'luke_ner' {MIXTURE}"):
        one.to_bytes()
    learn(one)
    assert one(SENTENCES[0])
    again = spacy.blank("en").from_config(one.config).from_bytes(one.to_bytes())
    assert answers(again) == answers(one)


def test_sourced_components(folders, one):
    """Beside the encoder of its pipeline, and beside another one."""
    right = spacy.blank("en")
    for name in one.pipe_names:
        right.add_pipe(name, source=one)
    assert answers(right) == answers(one)
    wrong = spacy.load(folders / "two", exclude=["luke_ner"])
    with pytest.warns(UserWarning, match="'luke_ner' has read another encoder, and reads 'luke_encoder'"):
        wrong.add_pipe("luke_ner", source=spacy.load(folders / "one"), before="luke_typer")
    with pytest.raises(ValueError, match=f"'luke_ner' {MIXTURE}"):
        wrong(SENTENCES[0])


def test_sourced_from_an_equal_pipeline(folders, tmp_path):
    """Both go on and are saved: their encoders have the same weights."""
    one, other = spacy.load(folders / "one"), spacy.load(folders / "one")
    expected = answers(one)
    one.remove_pipe("luke_ner")
    one.add_pipe("luke_ner", source=other, before="luke_typer")
    assert answers(one) == answers(other) == expected
    for nlp in (one, other):
        nlp.to_disk(tmp_path)
        assert answers(spacy.load(tmp_path)) == expected


def test_a_fresh_encoder_under_a_saved_component(one):
    nlp = make_pipeline("luke_typer")
    nlp.add_pipe("luke_ner", source=one)
    assert nlp(SENTENCES[0])  # from the same checkpoint
    nlp = other_weights(make_pipeline("luke_typer"))
    with pytest.warns(UserWarning, match="also in the pipeline that it comes from.*replace_listeners"):
        nlp.add_pipe("luke_ner", source=one)
    with pytest.raises(ValueError, match=f"'luke_ner' {MIXTURE}"):
        nlp(SENTENCES[0])


def test_stores_of_another_pipeline(store, tmp_path):
    """A kill after the weights were written leaves the entity vectors of the pipeline before."""
    _, linker = make_linker(store)
    linker.to_disk(tmp_path / "one")
    rows = np.random.default_rng(1).normal(size=(len(ENTITIES), SIZE + 1)).astype(np.float32)
    _, other = make_linker(build_vectors(rows, tmp_path / "vectors", names=ENTITIES).store)
    other.to_disk(tmp_path / "two")
    shutil.copyfile(tmp_path / "two/model.safetensors", tmp_path / "one/model.safetensors")
    with pytest.raises(ValueError, match=r"entity_vectors is not the store that 'luke_linker' was saved with"):
        other.from_disk(tmp_path / "one")
    linker.from_disk(tmp_path / "two")
    assert (linker.vectors.gather([3]) == other.vectors.gather([3])).all()
    linker._vectors = None
    linker.to_disk(tmp_path / "two")  # beside the store of the one before
    linker.from_disk(tmp_path / "two")
    assert linker._vectors is None


def test_replaced_listeners(folders, one, tmp_path):
    expected = answers(one)
    one.replace_listeners("luke_encoder", "luke_ner", ["model.encoder"])
    assert answers(one) == expected
    one.to_disk(tmp_path)
    shutil.copytree(folders / "two/luke_encoder", tmp_path / "luke_encoder", dirs_exist_ok=True)
    with pytest.raises(ValueError, match=f"'luke_typer' {MIXTURE}"):
        spacy.load(tmp_path)
    alone = spacy.load(tmp_path, exclude=["luke_typer", "luke_encoder"])  # it has an encoder of its own
    assert [[x[:3] for x in doc] for doc in answers(alone)] == [[x[:3] for x in doc] for doc in expected]


@pytest.mark.parametrize("frozen", [[], ["luke_typer"], ["luke_encoder"]])
def test_trained_further(one, tmp_path, frozen):
    """Also where a component is frozen: what is trained together is saved together."""
    before = shim_digest(one.get_pipe("luke_encoder").encoder)
    learn(one, frozen=frozen)
    expected = answers(one)
    one.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert answers(again) == expected
    assert (shim_digest(again.get_pipe("luke_encoder").encoder) == before) == ("luke_encoder" in frozen)
    assert answers(spacy.blank("en").from_config(again.config).from_bytes(again.to_bytes())) == expected


def test_averaged_weights(one, tmp_path):
    """As `spacy train` saves them: other values stand in place of the parameters for a while."""
    shim = one.get_pipe("luke_encoder").encoder
    params = {(shim.id, name): p.detach().numpy() + 0.01 for name, p in shim.named_parameters()}
    one.to_disk(tmp_path / "before")
    with one.use_params(params):
        expected = answers(one)
        one.to_disk(tmp_path / "averages")
    one.to_disk(tmp_path / "after")
    assert answers(spacy.load(tmp_path / "averages")) == expected
    assert answers(spacy.load(tmp_path / "after")) == answers(spacy.load(tmp_path / "before")) == answers(one)


def test_other_processes(one):
    expected = answers(one)
    assert answers(pickle.loads(pickle.dumps(one))) == expected
    with torch.no_grad():
        one.get_pipe("luke_encoder").encoder.module.words.piece.weight.add_(0.01)  # changed by hand
    changed = answers(one)
    again = pickle.loads(pickle.dumps(one))
    assert answers(again) == changed
