"""Every file in configs/ is complete, valid, and trains two steps offline with a tiny checkpoint."""

from pathlib import Path

import pytest
import spacy
from spacy.cli.train import train
from spacy.tokens import DocBin
from spacy.util import load_config, load_model_from_config
from tiny import make_checkpoint

from spacy_luke.checkpoint.checkpoint import write_huggingface

CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*.cfg"))
TEXT = [("Ada", "B-PER"), ("Lovelace", "I-PER"), ("lived", "O"), ("in", "O"), ("London", "B-LOC"), (".", "O")]


def flatten(config, path=""):
    if not isinstance(config, dict):
        return {path: config}
    leaves = {path: {}} if not config else {}
    for name, value in config.items():
        leaves.update(flatten(value, f"{path}.{name}" if path else name))
    return leaves


@pytest.fixture(scope="module")
def overrides(tmp_path_factory):
    """Data of two sentences and a checkpoint of noise, in place of what the configs name."""
    folder = tmp_path_factory.mktemp("configs")
    checkpoint = make_checkpoint(max_positions=300)
    write_huggingface(checkpoint, folder / "tiny")
    words, tags = zip(*TEXT * 2, strict=True)
    nlp = spacy.blank("en")
    doc = spacy.tokens.Doc(
        nlp.vocab, words=words, sent_starts=[i % len(TEXT) == 0 for i in range(len(words))], ents=list(tags)
    )
    doc.spans["sc"] = [*doc.ents, spacy.tokens.Span(doc, 1, 2, "PER")]
    DocBin(docs=[doc] * 3).to_disk(folder / "data.spacy")
    return {
        "paths.weights": str(folder / "tiny"),
        "paths.train": str(folder / "data.spacy"),
        "paths.dev": str(folder / "data.spacy"),
        "system.gpu_allocator": None,
        "training.max_steps": 2,
        "training.eval_frequency": 1,
        "training.logger.progress_bar": None,
        "components.luke_ner.model.encoder.train_precision": "float32",
    }


def test_there_are_configs():
    assert len(CONFIGS) >= 5


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_complete(path):
    """Nothing is left for `spacy init fill-config` to fill in, and no setting is one that nothing reads."""
    config = load_config(path, interpolate=False)
    load_model_from_config(config, auto_fill=False)
    filled = load_model_from_config(config, auto_fill=True).config
    assert flatten(config) == flatten(filled)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_setting_of_ours_has_a_comment(path):
    lines = path.read_text(encoding="utf8").splitlines()
    start, end = lines.index("[components.luke_ner]"), lines.index("[corpora]")
    assert lines[0].startswith("# ")
    assert sum(line.startswith("#") for line in lines[start:end]) >= 10


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_trains_two_steps(path, overrides, tmp_path, capsys):
    train(path, tmp_path, overrides=overrides)
    assert "Saved pipeline" in capsys.readouterr().out
    nlp = spacy.load(tmp_path / "model-last")
    assert nlp.get_pipe("luke_ner").labels == ("LOC", "PER")
    doc = nlp("Ada Lovelace lived in London.")
    assert doc.has_annotation("SENT_START")
    if "nested" in path.stem:
        assert len(doc.spans["sc"].attrs["scores"]) == len(doc.spans["sc"])
