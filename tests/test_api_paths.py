"""Paths as strings: what programs call with a file or a folder takes its name."""

import io
import re

import pytest
import spacy
from spacy.training.initialize import init_nlp
from spacy.util import load_config

from spacy_luke import api
from spacy_luke.pipelines.quantization import quantize
from tests.pipelines import annotate, as_gold, make_pipeline
from tests.tiny import SENTENCES
from tests.training_config import write_ner_training


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A pipeline, and gold that says what it says in int8."""
    folder = tmp_path_factory.mktemp("paths")
    nlp = make_pipeline("luke_ner")
    api.save(nlp, str(folder / "pipeline"))
    quantize(nlp)
    api.write_docbin([as_gold(doc) for doc in annotate(nlp)], str(folder / "dev.spacy"))
    (folder / "text.txt").write_text(SENTENCES[0], encoding="utf8")
    return folder


def test_gold_and_texts(saved):
    nlp, data = spacy.load(saved / "pipeline"), str(saved / "dev.spacy")
    assert len(api.read_gold(nlp, data)) == len(SENTENCES)
    assert len(api.read_gold(nlp, data, api.Given(sentences=True))) == len(SENTENCES)
    assert api.evaluate(nlp, data).documents == len(SENTENCES)
    assert api.annotate_file(nlp, str(saved / "text.txt")).doc.text == SENTENCES[0]
    with pytest.raises(ValueError, match=r"nowhere\.spacy, which does not exist"):
        api.evaluate(nlp, str(saved / "nowhere.spacy"))


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_saved_pipelines(saved, tmp_path, kind):
    pipeline, data, small, large = map(
        kind, (saved / "pipeline", saved / "dev.spacy", tmp_path / "small", tmp_path / "large")
    )
    quantized = api.quantize_pipeline(pipeline, data, small)
    assert not quantized.lost
    assert quantized.bytes_after < quantized.bytes_before
    api.dequantize_pipeline(small, large)
    tuned = api.tune_pipeline(large, data, least=1, calibrate=False, output=kind(tmp_path / "tuned"))
    assert tuned.setting == "none_bias"
    assert spacy.load(tmp_path / "tuned").get_pipe("luke_ner").cfg["none_bias"] == tuned.value
    with pytest.raises(ValueError, match="is the pipeline itself"):
        api.dequantize_pipeline(small, small)


def test_training(tmp_path):
    config = load_config(write_ner_training(tmp_path / "config.cfg"))
    config["training"]["max_steps"] = 2
    output = str(tmp_path / "output")
    best = api.train(init_nlp(config), output, stdout=io.StringIO(), stderr=io.StringIO())
    assert best == tmp_path / "output" / "model-best"
    assert spacy.load(best).get_pipe("luke_ner").labels


def test_checkpoints(tmp_path):
    write_ner_training(tmp_path / "config.cfg")
    checkpoint = api.read_checkpoint(api.find_source(tmp_path / "checkpoint"))
    api.write_huggingface(checkpoint, str(tmp_path / "again"))
    assert len(api.PieceTokenizer.from_folder(str(tmp_path / "again"))) == len(checkpoint.tokenizer)
    found = api.EntityVocab.from_file(str(tmp_path / "again"))
    assert found.to_json() == checkpoint.entities.to_json()
    with pytest.raises(ValueError, match="no file"):
        api.find_source(tmp_path / "nothing" / "here")


def test_graphs(tmp_path):
    (tmp_path / "train.tsv").write_text("Accra\tin\tGhana\nAda\tborn\tLondon\n", encoding="utf8")
    (tmp_path / "pairs.tsv").write_text("Ada\tLondon\n", encoding="utf8")
    train, pairs = str(tmp_path / "train.tsv"), str(tmp_path / "pairs.tsv")
    graph = api.read_graph([train], valid=train, exclude=pairs)
    assert {split: len(x) for split, x in graph.triples.items()} == {"train": 1, "valid": 1, "test": 0}


@pytest.mark.parametrize(("format", "reader"), [("jsonl", "JsonlCorpus"), ("conllu", "ColumnCorpus")])
def test_formats_that_are_read_elsewhere(tmp_path, format, reader):
    expected = rf"'{format}', which .*\"spacy-luke\.{reader}\.v1\".*--format {format}"
    with pytest.raises(ValueError, match=expected):
        api.read_dataset(str(tmp_path / "x"), format=format)
    assert spacy.registry.readers.get(f"spacy-luke.{reader}.v1")
    with pytest.raises(ValueError, match=re.escape("'jsn'.")):
        api.read_dataset("x", format="jsn")
