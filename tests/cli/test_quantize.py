"""`spacy luke quantize`: int8 pipelines that are written only where they lose little."""

import re
import zlib

import pytest
import spacy
import torch
from spacy.cli._util import app as spacy_app
from spacy.tokens import DocBin, Span
from spacy.training import Example
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.pipelines import quantization
from spacy_luke.pipelines.quantization import dequantize, quantize
from spacy_luke.readers.docbin import write_docbin
from tests.pipelines import annotate, answers, as_gold, make_pipeline


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", *map(str, arguments)])
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A pipeline, and gold that says what it says in int8."""
    folder = tmp_path_factory.mktemp("quantize")
    nlp = make_pipeline(luke_relation={"none": None, "multi_label": True})
    nlp.to_disk(folder / "pipeline")
    quantize(nlp)
    write_docbin([as_gold(doc) for doc in annotate(nlp)], folder / "dev.spacy")
    return folder


def size(folder):
    return sum(x.stat().st_size for x in folder.rglob("*") if x.is_file())


def test_a_smaller_pipeline(saved, tmp_path):
    code, text = run("quantize", saved / "pipeline", tmp_path / "new", "--data", saved / "dev.spacy")
    assert code == 0, text
    for name in ("luke_ner", "luke_typer", "luke_relation", "luke_qa"):
        assert f"{name} " in text
    assert re.search(r"Words a second, in turns: [0-9,]+, in int8 [0-9,]+ \([0-9.]+ times\)", text)
    assert f"Saved to {tmp_path}/new: " in text.replace("\n", " ")
    found = spacy.load(tmp_path / "new")
    assert found.get_pipe("luke_encoder").encoder.is_int8
    expected = spacy.load(saved / "pipeline")
    assert not expected.get_pipe("luke_encoder").encoder.is_int8
    quantize(expected)
    assert answers(found) == answers(expected)
    assert found.config == expected.config
    assert size(tmp_path / "new") < size(saved / "pipeline")


def harm(nlp, piece_steps):
    """What a format that loses everything would do."""
    quantize(nlp, piece_steps)
    nlp.get_pipe("luke_encoder").encoder.module.layers[0].up.scale.zero_()


@pytest.mark.slow
def test_what_loses_is_refused(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(quantization, "quantize", harm)
    arguments = ("quantize", saved / "pipeline", tmp_path / "new", "--data", saved / "dev.spacy")
    code, text = run(*arguments)
    assert code == 1
    assert "Nothing was written." in text
    assert "falls by more than 0.2 points, which --max-loss allows" in text
    assert not (tmp_path / "new").exists()
    code, text = run(*arguments, "--max-loss", 100)
    assert code == 0, text
    assert (tmp_path / "new" / "meta.json").is_file()


def test_a_table_of_fewer_steps(saved, tmp_path):
    """It is as large on disk, and smaller in a wheel."""

    def zipped(name, *options):
        arguments = ("quantize", saved / "pipeline", tmp_path / name, "--data", saved / "dev.spacy", "--max-loss", 100)
        code, text = run(*arguments, *options)
        assert code == 0, text
        weights = tmp_path / name / "luke_encoder" / "model.safetensors"
        return weights.stat().st_size, len(zlib.compress(weights.read_bytes()))

    (size_127, zipped_127), (size_3, zipped_3) = zipped("usual"), zipped("three", "--piece-steps", 3)
    assert size_127 == size_3
    assert zipped_3 < zipped_127
    with pytest.raises(ValueError, match="piece_steps = 128; expected from 1 to 127"):
        quantize(spacy.load(saved / "pipeline"), 128)


def test_gold_that_is_given(saved, tmp_path):
    arguments = ("quantize", saved / "pipeline", tmp_path / "new", "--data", saved / "dev.spacy", "--gold-entities")
    code, text = run(*arguments, "--max-loss", 100)
    assert code == 0, text
    assert "luke_ner " not in text
    assert "luke_typer " in text
    nlp = spacy.load(tmp_path / "new")
    assert nlp.disabled == []
    assert "luke_ner" in nlp.pipe_names


def test_refused(saved, tmp_path):
    quantized = tmp_path / "int8"
    code, text = run("quantize", saved / "pipeline", quantized, "--data", saved / "dev.spacy", "--max-loss", 100)
    assert code == 0, text
    code, text = run("quantize", quantized, tmp_path / "new", "--data", saved / "dev.spacy")
    assert (code, "is int8 already" in text) == (1, True)
    code, text = run("export", quantized, tmp_path / "new", "--component", "luke_ner")
    assert (code, "it predicts, but cannot be trained or exported" in text) == (1, True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    code, text = run("quantize", saved / "pipeline", tmp_path / "mine", "--data", saved / "dev.spacy")
    assert (code, "it holds no pipeline" in text) == (1, True)
    code, text = run("quantize", saved / "pipeline", saved / "pipeline", "--data", saved / "dev.spacy")
    assert (code, "is the pipeline itself" in text) == (1, True)
    code, text = run("dequantize", quantized, quantized)
    assert (code, "is the pipeline itself" in text) == (1, True)
    write_docbin([spacy.blank("en")("Nothing .")], tmp_path / "plain.spacy")
    code, text = run("quantize", saved / "pipeline", tmp_path / "new", "--data", tmp_path / "plain.spacy")
    assert (code, "has nothing that the components" in text) == (1, True)
    assert not (tmp_path / "new").exists()


def test_gold_that_cannot_show_a_loss(saved, tmp_path):
    """Labels that the pipeline has not: 0 before and after is no proof."""
    gold = as_gold(spacy.blank("en")("Ada lives here ."))
    gold.ents = [Span(gold, 0, 1, "STRANGE")]
    write_docbin([gold], tmp_path / "strange.spacy")
    code, text = run("quantize", saved / "pipeline", tmp_path / "new", "--data", tmp_path / "strange.spacy")
    assert (code, "['luke_ner'] have a score of 0 on" in text) == (1, True), text
    assert not (tmp_path / "new").exists()
    golds = list(DocBin().from_disk(saved / "dev.spacy").get_docs(spacy.blank("en").vocab))
    for one in golds:
        one.spans["luke_types"] = [Span(one, x.start, x.end, "STRANGE") for x in one.spans["luke_types"]]
    write_docbin(golds, tmp_path / "partly.spacy")
    command = ("quantize", saved / "pipeline", tmp_path / "new", "--data", tmp_path / "partly.spacy", "--max-loss", 100)
    code, text = run(*command)
    assert (code, "The score of ['luke_typer'] is 0 before: these data cannot show" in text) == (0, True), text


@pytest.fixture(scope="module")
def small(saved):
    nlp = spacy.load(saved / "pipeline")
    quantize(nlp)
    nlp.to_disk(saved / "small")
    return saved / "small"


def test_float_again(small, tmp_path):
    """It is near the int8 one, and made int8 again it is that one."""
    code, text = run("dequantize", small, tmp_path / "start")
    assert code == 0, text
    nlp, expected = spacy.load(tmp_path / "start"), spacy.load(small)
    weights = nlp.get_pipe("luke_encoder").encoder.module.state_dict()
    rounded = expected.get_pipe("luke_encoder").encoder.module.state_dict()
    for name in ("layers.0.up", "words.piece"):
        expected_NK = rounded[f"{name}.weight"].float() * rounded[f"{name}.scale"].reshape(-1, 1)
        torch.testing.assert_close(weights[f"{name}.weight"], expected_NK, rtol=0, atol=0)
    quantize(nlp)
    assert answers(nlp) == answers(expected)


def test_what_was_int8_learns(small, saved):
    nlp = spacy.load(small)
    gold = DocBin().from_disk(saved / "dev.spacy").get_docs(nlp.vocab)
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in gold]
    optimizer = nlp.resume_training()
    with pytest.raises(ValueError, match="spacy luke dequantize"):
        nlp.update(examples, sgd=optimizer)
    dequantize(nlp)
    before = nlp.get_pipe("luke_encoder").encoder.module.layers[0].up.weight.detach().clone()
    nlp.update(examples, sgd=nlp.resume_training())
    assert not torch.equal(nlp.get_pipe("luke_encoder").encoder.module.layers[0].up.weight, before)


def test_float_stays(saved, tmp_path):
    code, text = run("dequantize", saved / "pipeline", tmp_path / "new")
    assert (code, "No encoder of the pipeline is int8" in text) == (1, True)
    assert not (tmp_path / "new").exists()
