"""ERNIE checkpoints that are damaged, or of something else."""

import pytest
import torch

from spacy_luke.checkpoint.ernie import read_ernie, write_ernie
from tests.checkpoint.plain import BERT, CHARACTERS
from tests.checkpoint.small_ernie import UP, make_tensors, write_small


def test_other_models_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"but there is nothing"):
        read_ernie(tmp_path / "none")
    with pytest.raises(ValueError, match=r"must hold ernie_config.json or a BERT's config.json; it holds \[\]"):
        read_ernie(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    with pytest.raises(
        ValueError, match=r"model_type 'roberta'; expected one of \['bert', 'mpnet', 'electra'\], or an ERNIE"
    ):
        read_ernie(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "ernie"}')
    with pytest.raises(ValueError, match=r"Baidu's ERNIE of the same name is another model"):
        read_ernie(tmp_path)


@pytest.mark.slow
def test_every_missing_tensor_is_named(tmp_path):
    tensors = make_tensors()
    for name in tensors:
        if name == "cls.predictions.decoder.weight":
            continue
        rest = {key: x for key, x in tensors.items() if key != name}
        folder = write_small(tmp_path / "a", rest)
        if name == "bert.embeddings.word_embeddings.weight":
            with pytest.raises(ValueError, match="word embeddings"):
                read_ernie(folder)
        else:
            with pytest.raises(ValueError, match=r"lacks 1 tensors"):
                read_ernie(folder)


@pytest.mark.parametrize(
    "name",
    [
        "bert.encoder.layer.4.output.dense.bias",
        "bert.encoder.layer.0.output.dense_ent.bias",
        "bert.odd",
        "classify.bias",
    ],
)
def test_extra_tensor(tmp_path, name):
    folder = write_small(tmp_path / "a", {**make_tensors(), name: torch.zeros(8)})
    with pytest.raises(ValueError, match=rf"1 tensors that its config does not account for: '{name}'"):
        read_ernie(folder)


def test_every_transposed_tensor(tmp_path):
    tensors = make_tensors()
    for name, x in tensors.items():
        if x.dim() == 2 and x.shape[0] != x.shape[1] and "decoder" not in name:
            spoilt = {key: y for key, y in tensors.items() if "decoder" not in key} | {name: x.T.contiguous()}
            with pytest.raises(ValueError, match=rf"{name}.*must have the shape.*but it has"):
                read_ernie(write_small(tmp_path / "a", spoilt))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_not_finite(tmp_path, bad):
    tensors = make_tensors()
    tensors[UP][3, 2] = bad
    with pytest.raises(ValueError, match=rf"{UP}.*must be finite.*row 3"):
        read_ernie(write_small(tmp_path / "a", tensors))


def test_untied_decoder(tmp_path):
    tensors = make_tensors()
    tensors["cls.predictions.decoder.weight"] = tensors["cls.predictions.decoder.weight"] + 1
    with pytest.raises(ValueError, match=r"decoder.weight' must equal 'bert.embeddings"):
        read_ernie(write_small(tmp_path / "a", tensors))


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_truncated_file(tmp_path, keep):
    folder = write_small(tmp_path / "a", make_tensors())
    content = (folder / "pytorch_model.bin").read_bytes()
    (folder / "pytorch_model.bin").write_bytes(content[: int(keep * len(content))])
    with pytest.raises(ValueError, match="truncated"):
        read_ernie(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer_types": None}, "must list the kinds of its layers in 'layer_types', but it gives None"),
        ({"layer_types": "norm"}, "but it gives 'norm'"),
        ({"layer_types": ["sim", "norm", "mix"]}, "does not account for|lacks"),
        ({"layer_types": ["sim"] * 5}, "names 5"),
        ({"layer_types": ["sum"]}, "layer 0 is 'sum'"),
        ({"num_hidden_layers": 3}, "does not account for"),
        ({"num_hidden_layers": 5}, r"lacks 16 tensors"),
        ({"hidden_size": None}, "'hidden_size' as a whole number"),
        ({"vocab_size": 14}, "must have the shape"),
    ],
)
def test_wrong_config(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_ernie(write_small(tmp_path / "a", make_tensors(), **changes))


def test_a_tokenizer_too_large(tmp_path):
    folder = write_small(tmp_path / "a", make_tensors())
    (folder / "vocab.txt").write_text("\n".join([*BERT, *CHARACTERS, "one", "two"]) + "\n")
    with pytest.raises(ValueError, match="has 17 pieces, but the word table only has 15 rows"):
        read_ernie(folder)


def test_no_tokenizer(tmp_path):
    folder = write_small(tmp_path / "a", make_tensors())
    (folder / "vocab.txt").unlink()
    checkpoint = read_ernie(folder)
    assert checkpoint.tokenizer is None
    assert checkpoint.report[-1] == "found no tokenizer"
    write_ernie(checkpoint, tmp_path / "b")
    assert not (tmp_path / "b" / "vocab.txt").exists()


def test_writing_refuses(tmp_path):
    checkpoint = read_ernie(write_small(tmp_path / "a", make_tensors()))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="it holds no ERNIE"):
        write_ernie(checkpoint, tmp_path / "full")
    before = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    name = "encoder.layers.2.entity_attention.key.weight"
    for change, message in (
        ({name: None}, "lacks"),
        ({"encoder.odd": torch.zeros(1)}, "no place for"),
        ({name: torch.zeros(3)}, "must have the shape"),
        ({name: torch.full((100, 100), float("nan"))}, "must be finite"),
    ):
        tensors = {key: x for key, x in {**checkpoint.tensors, **change}.items() if x is not None}
        spoilt = type(checkpoint)(**{**checkpoint.__dict__, "tensors": tensors})
        with pytest.raises(ValueError, match=message):
            write_ernie(spoilt, tmp_path / "a")
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == before
