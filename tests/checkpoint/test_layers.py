"""The first layers of checkpoints: they compute what those compute after so many layers, and are written and read."""

import json
from dataclasses import replace

import pytest
import torch

from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.ernie import read_ernie, write_ernie
from spacy_luke.checkpoint.sources import make_checkpoint_loader, make_ernie_loader
from spacy_luke.model.ernie import ErnieEncoder, Knowledge, default_layer_kinds
from spacy_luke.model.luke import Mentions, Windows
from tests.checkpoint.plain import make_encoder, make_plain
from tests.tiny import ENTITY_SIZE, make_checkpoint, make_ernie

WINDOWS = Windows(torch.tensor([0, 7, 9, 11, 2]), [5])
MENTIONS = Mentions(torch.tensor([3, 2]), torch.tensor([1, 2]), torch.tensor([1, 3]), [2])


def written(tmp_path, **changes):
    write_huggingface(make_checkpoint(num_layers=3, **changes), tmp_path / "whole")
    return tmp_path / "whole"


@pytest.mark.parametrize("layers", [1, 2])
@torch.no_grad()
def test_luke_computes_the_first_layers(tmp_path, layers):
    source = written(tmp_path)
    whole, small = make_encoder(read_checkpoint(source)), make_encoder(read_checkpoint(source, layers=layers))
    assert len(small.layers) == layers
    expected = whole.words(WINDOWS), whole.entities(MENTIONS)
    packing = whole._plan_pairs(WINDOWS, MENTIONS).packing
    for layer in list(whole.layers)[:layers]:
        expected = layer(*expected, packing)
    for found, wanted in zip(small(WINDOWS, MENTIONS), expected, strict=True):
        assert torch.equal(found, wanted)
    assert not torch.allclose(small(WINDOWS, MENTIONS)[0], whole(WINDOWS, MENTIONS)[0], atol=0.01)


def test_there_and_back(tmp_path):
    """Kept, written for Hugging Face, and read again: the same tensors, and a config that says so."""
    small = read_checkpoint(written(tmp_path, labels=["NIL", "PER"]), layers=2)
    assert small.config == replace(read_checkpoint(tmp_path / "whole").config, num_layers=2)
    assert "kept the first 2 of 3 layers; the head was trained on all of them: train it further" in small.report
    write_huggingface(small, tmp_path / "small")
    again = read_checkpoint(tmp_path / "small")
    assert again.config == small.config
    assert again.labels == small.labels
    assert again.tensors.keys() == small.tensors.keys()
    assert all(torch.equal(x, again.tensors[name]) for name, x in small.tensors.items())
    assert json.loads((tmp_path / "small" / "config.json").read_text())["num_hidden_layers"] == 2
    assert not any("kept the first" in line for line in again.report)


def test_transformers_reads_what_was_kept(tmp_path):
    transformers = pytest.importorskip("transformers")
    make_plain(transformers, tmp_path / "plain", "RobertaModel")
    small = make_checkpoint_loader(str(tmp_path / "plain"), layers=1)()
    write_huggingface(small, tmp_path / "small")
    theirs = transformers.LukeModel.from_pretrained(tmp_path / "small").eval()
    ids_N = torch.tensor([2, 6, 8, 7, 9, 3])
    with torch.no_grad():
        states_ND = make_encoder(small).encode_words(Windows(ids_N, [6])).states_ND
        expected_ND = theirs(input_ids=ids_N[None]).last_hidden_state[0]
    assert theirs.config.num_hidden_layers == 1
    torch.testing.assert_close(states_ND, expected_ND, atol=1e-5, rtol=0)


def test_as_many_as_there_are(tmp_path):
    source = written(tmp_path)
    whole, same = read_checkpoint(source), read_checkpoint(source, layers=3)
    assert (same.config, same.report) == (whole.config, whole.report)


@pytest.mark.parametrize("read", [read_checkpoint, read_ernie])
@pytest.mark.parametrize("layers", [0, -1])
def test_refuses_no_layers(tmp_path, read, layers):
    with pytest.raises(ValueError, match=f"layers must be at least 1, or null to keep all, but it is {layers}"):
        read(tmp_path, layers=layers)


def test_refuses_more_than_there_are(tmp_path):
    with pytest.raises(ValueError, match="layers must be at most the 3 that the checkpoint has, but it is 4"):
        read_checkpoint(written(tmp_path), layers=4)


def make_ernie_encoder(checkpoint):
    encoder = ErnieEncoder(checkpoint.config).eval()
    state = {k.removeprefix("encoder."): x for k, x in checkpoint.tensors.items() if k.startswith("encoder.")}
    encoder.load_state_dict(state)
    return encoder


def test_ernie_there_and_back(tmp_path):
    write_ernie(make_ernie(), tmp_path / "whole")
    whole, small = read_ernie(tmp_path / "whole"), read_ernie(tmp_path / "whole", layers=2)
    assert small.config == replace(whole.config, num_layers=2, layer_kinds=("sim", "mix"))
    assert small.report[-1] == "kept the first 2 of 3 layers"
    write_ernie(small, tmp_path / "small")
    again = read_ernie(tmp_path / "small")
    assert again.config == small.config
    assert all(torch.equal(x, again.tensors[name]) for name, x in small.tensors.items())
    knowledge = Knowledge(torch.ones(1, ENTITY_SIZE), torch.tensor([2]), [1])
    with torch.no_grad():
        states = [make_ernie_encoder(x)(WINDOWS, knowledge)[0] for x in (small, again, whole)]
    assert torch.equal(states[0], states[1])
    assert not torch.allclose(states[0], states[2], atol=0.01)


def test_ernie_refuses_layers_that_read_no_entities(tmp_path):
    write_ernie(make_ernie(), tmp_path / "whole")
    with pytest.raises(ValueError, match="layers must be at least 2: those before read no entities"):
        read_ernie(tmp_path / "whole", layers=1)


def test_bert_becomes_an_ernie_of_so_many_layers(tmp_path):
    """The layers that read entities are those of an ERNIE of this depth."""
    transformers = pytest.importorskip("transformers")
    make_plain(transformers, tmp_path, "BertModel")
    small = make_ernie_loader(str(tmp_path), layers=1)()
    assert small.config.layer_kinds == default_layer_kinds(1) == ("mix",)
    whole = read_ernie(tmp_path)
    same = [name for name in small.tensors if name in whole.tensors and ".entity" not in name]
    assert all(torch.equal(small.tensors[name], whole.tensors[name]) for name in same)
