"""Every component on an encoder of each further family, read from its folder, in both attention modes."""

import json

import pytest
import spacy
import torch

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.checkpoint import read_checkpoint
from spacy_luke.pipelines.conversion import convert
from spacy_luke.pipelines.quantization import quantize
from tests import pipelines
from tests.components.every import MAKERS, facts, make_all
from tests.family_folders import write_folder
from tests.tiny import SENTENCES

FAMILIES = {  # and a parameter of its own
    "deberta-v2": "relative.table.weight",
    "modernbert": "final_norm.weight",
    "mpnet": "relative.weight",
    "electra": "words.project.weight",
    "distilbert": "entities.position.weight",
}
pytestmark = pytest.mark.product
TEXTS = [*SENTENCES, " ".join(SENTENCES), "", "Accra"]  # the fifth is longer than the reach and the buckets
asked = MAKERS["shared"][1]


@pytest.fixture(scope="module", params=FAMILIES)
def name(request):
    return request.param


@pytest.fixture(scope="module", params=["one_way", "full"])
def mode(request):
    return request.param


@pytest.fixture(scope="module")
def made(name, mode, tmp_path_factory):
    """A pipeline that has learned a step, the family, its encoders before that, and what it says."""
    folder = tmp_path_factory.mktemp("made")
    source = write_folder(folder / "checkpoint", name)
    nlp = make_all(folder, mode, weights=lambda: read_checkpoint(source, entity_size=12))
    before = [parameter(encoder, name) for encoder in encoders(nlp)]
    learn(nlp)
    if mode == "full":  # a head of noise finds next to nothing
        nlp.get_pipe("luke_ner").model.shims[0].module.classifier.bias.data[0] -= 4
    return nlp, name, before, predict(nlp, batch_size=3)


def encoders(nlp):
    """Each once."""
    found = {id(x.encoder): x.encoder for _, x in nlp.pipeline if hasattr(x, "own_shims") and x.encoder.ready}
    return list(found.values())


def parameter(encoder, name):
    return encoder.module.get_parameter(FAMILIES[name]).detach().clone()


def learn(nlp):
    examples = [pipelines.make_example(nlp, text, asked(nlp, text)) for text in SENTENCES[:3]]
    for example in examples:
        example.reference.cats = {"one": 1.0, "other": 0.0}
    names = [name for name in nlp.pipe_names if name not in ("entity_annotator", "luke_linker")]
    with nlp.select_pipes(enable=names):
        nlp.update(examples, sgd=make_adamw(learn_rate=1e-3))


def predict(nlp, **settings):
    return [
        facts(doc) for doc in nlp.pipe([asked(nlp, text) if text else nlp.make_doc(text) for text in TEXTS], **settings)
    ]


def assert_near(found, expected, *, tolerance):
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        ours = [key for key in one if key[0] != "category"]  # spaCy's own, which goes by the batch where Docs are empty
        assert all(abs(one[key] - other[key]) < tolerance for key in ours)


def test_a_step_is_learned(made):
    nlp, name, before, found = made
    assert any(not torch.equal(parameter(x, name), old) for x, old in zip(encoders(nlp), before, strict=True))
    assert all(x.settings["config"]["family"] == name for x in encoders(nlp))
    kinds = {key if isinstance(key, str) else key[0] for facts_of in found for key in facts_of}
    assert {"ent", "type", "relation", "link", "luke_answers", "luke_fillers"} <= kinds


@pytest.mark.parametrize("size", [1, 7])
def test_batches_change_nothing(made, size):
    nlp, _, _, expected = made
    assert_near(predict(nlp, batch_size=size), expected, tolerance=1e-4)


def test_saved_and_loaded(made, tmp_path):
    nlp, _, _, expected = made
    nlp.to_disk(tmp_path)
    assert predict(spacy.load(tmp_path), batch_size=3) == expected


@pytest.mark.slow
def test_bfloat16_is_near(made):
    nlp, _, _, expected = made
    nodes = [x.encoder_node for _, x in nlp.pipeline if hasattr(x, "own_shims")]
    try:
        for node in nodes:
            node.attrs["predict_precision"] = "bfloat16"
        found = predict(nlp)
    finally:
        for node in nodes:
            node.attrs["predict_precision"] = "float32"
    both = [(one[key], other[key]) for one, other in zip(found, expected) for key in one.keys() & other.keys()]
    assert len(both) > 0.5 * sum(map(len, expected))  # of the noise that these weights find; 0.58 to 0.92 were seen
    assert sum(abs(a - b) for a, b in both) / len(both) < 0.1


@pytest.mark.slow
def test_int8_predicts(made):
    nlp, _, _, expected = made
    nlp = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    quantize(nlp)
    found = predict(nlp)
    both = [(one[key], other[key]) for one, other in zip(found, expected) for key in one.keys() & other.keys()]
    assert len(both) > 0.6 * sum(map(len, expected))
    assert sum(abs(a - b) for a, b in both) / len(both) < 0.1
    again = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert predict(again) == found


def test_exported_and_converted(made, tmp_path):
    """Each component's checkpoint in the family's own folder: to the bit, and `convert` makes a pipeline of it."""
    nlp, name, _, _ = made
    written = []
    for proc_name, proc in nlp.pipeline:
        if not hasattr(proc, "to_checkpoint"):
            continue
        if proc_name in ("luke_typer", "luke_relation", "luke_linker"):  # their heads are no other code's
            with pytest.raises(ValueError, match="to export"):
                proc.to_checkpoint()
            continue
        checkpoint = proc.to_checkpoint()
        folder = tmp_path / proc_name
        written.append(proc_name)
        proc.encoder.kind.write(checkpoint, folder)
        assert json.loads((folder / "config.json").read_text())["model_type"] == name
        again = read_checkpoint(folder)
        assert (again.task, again.config) == (checkpoint.task, checkpoint.config)
        assert again.tensors.keys() == checkpoint.tensors.keys()
        assert all(torch.equal(x, checkpoint.tensors[key]) for key, x in again.tensors.items())
    assert {"luke_ner", "luke_qa"} <= set(written)
    ready, _, _ = convert(str(tmp_path / "luke_ner"), tmp_path / "ready")
    assert {ent.label_ for doc in ready.pipe(TEXTS) for ent in doc.ents} <= set(ready.get_pipe("luke_ner").labels)
