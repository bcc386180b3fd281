"""Damaged checkpoints: each is refused with a message that says what is wrong, and saving never spoils what is
there."""

import json

import pytest
import torch

from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.files import find_weights, read_tensors
from tests.checkpoint.small import make_small_luke, write_small

EXTRA = ("w2e_query", "e2w_query", "e2e_query")
UP = "luke.encoder.layer.1.intermediate.dense.weight"


@pytest.fixture(params=["model.safetensors", "pytorch_model.bin"])
def weights(request):
    return request.param


def required(tensors):
    return [name for name in tensors if not name.startswith(("lm_head", "entity_predictions", "luke.pooler"))]


def test_whole(tmp_path, weights):
    data, tensors = make_small_luke()
    checkpoint = read_checkpoint(write_small(tmp_path / "a", data, tensors, weights=weights))
    assert len(checkpoint.tensors) == len(tensors)
    assert checkpoint.tokenizer is None


def test_every_missing_tensor_is_named(tmp_path):
    data, tensors = make_small_luke()
    for name in tensors:
        rest = {key: value for key, value in tensors.items() if key != name}
        with pytest.raises(ValueError, match=r"lacks 1 tensors|word embeddings"):
            read_checkpoint(write_small(tmp_path / "a", data, rest, weights="pytorch_model.bin"))


@pytest.mark.parametrize("head", ["lm_head", "entity_predictions", "luke.pooler"])
def test_absent_heads(tmp_path, head):
    data, tensors = make_small_luke()
    rest = {name: value for name, value in tensors.items() if not name.startswith(head)}
    checkpoint = read_checkpoint(write_small(tmp_path / "a", data, rest))
    assert len(checkpoint.tensors) == len(rest)


def test_extra_tensor(tmp_path, weights):
    data, tensors = make_small_luke()
    tensors["luke.encoder.layer.2.output.dense.bias"] = torch.zeros(8)
    with pytest.raises(ValueError, match=r"1 tensors.*layer\.2\.output"):
        read_checkpoint(write_small(tmp_path / "a", data, tensors, weights=weights))


def test_every_transposed_tensor(tmp_path):
    data, tensors = make_small_luke()
    for name, tensor in tensors.items():
        if tensor.dim() == 2 and tensor.shape[0] != tensor.shape[1]:
            spoilt = {**tensors, name: tensor.T.contiguous()}
            with pytest.raises(ValueError, match=rf"{name}.*must have the shape.*but it has"):
                read_checkpoint(write_small(tmp_path / "a", data, spoilt, weights="pytorch_model.bin"))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nan(tmp_path, weights, bad):
    data, tensors = make_small_luke()
    tensors[UP][3, 2] = bad
    with pytest.raises(ValueError, match=rf"{UP}.*must be finite.*row 3"):
        read_checkpoint(write_small(tmp_path / "a", data, tensors, weights=weights))


def test_whole_numbers_are_no_weights(tmp_path):
    data, tensors = make_small_luke()
    tensors[UP] = tensors[UP].long()
    with pytest.raises(ValueError, match="floating-point"):
        read_checkpoint(write_small(tmp_path / "a", data, tensors))


def test_missing_queries_are_copied_but_only_all_of_them(tmp_path):
    data, tensors = make_small_luke()
    rest = {name: value for name, value in tensors.items() if not any(word in name for word in EXTRA)}
    checkpoint = read_checkpoint(write_small(tmp_path / "a", data, rest))
    for name in EXTRA:
        for part in ("weight", "bias"):
            copy = checkpoint.tensors[f"encoder.layers.1.attention.{name}.{part}"]
            query = checkpoint.tensors[f"encoder.layers.1.attention.query.{part}"]
            assert torch.equal(copy, query)
            assert copy.data_ptr() != query.data_ptr()
    assert any("copies of query" in line for line in checkpoint.report)
    some = {name: value for name, value in tensors.items() if "e2e_query" not in name}
    with pytest.raises(ValueError, match=r"lacks 4 tensors.*e2e_query"):
        read_checkpoint(write_small(tmp_path / "b", data, some))


def test_queries_that_the_config_switches_off(tmp_path):
    """As in the released mLUKE files; asking for them brings them back."""
    data, tensors = make_small_luke()
    folder = write_small(tmp_path / "a", {**data, "use_entity_aware_attention": False}, tensors)
    checkpoint = read_checkpoint(folder)
    assert not checkpoint.config.entity_aware
    assert not any(word in name for name in checkpoint.tensors for word in EXTRA)
    assert sum("entity-aware attention is off" in line for line in checkpoint.report) == 12
    again = read_checkpoint(folder, entity_aware=True)
    name = "encoder.layers.0.attention.w2e_query.weight"
    assert torch.equal(again.tensors[name], tensors["luke.encoder.layer.0.attention.self.w2e_query.weight"])


def test_tied_tensors_must_be_equal(tmp_path, weights):
    data, tensors = make_small_luke()
    tensors["lm_head.decoder.weight"] = tensors["luke.embeddings.word_embeddings.weight"].clone()
    tensors["lm_head.decoder.bias"] = tensors.pop("lm_head.bias")
    checkpoint = read_checkpoint(write_small(tmp_path / "a", data, tensors, weights=weights))
    assert torch.equal(checkpoint.tensors["lm_head.bias"], tensors["lm_head.decoder.bias"])
    tensors["lm_head.decoder.weight"][1, 1] += 1
    with pytest.raises(ValueError, match=r"lm_head\.decoder\.weight.*must equal"):
        read_checkpoint(write_small(tmp_path / "a", data, tensors, weights=weights))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 12}, "word_embeddings.*must have the shape"),
        ({"num_hidden_layers": 3}, "lacks 22 tensors"),
        ({"num_hidden_layers": 1}, "22 tensors that its config does not account for"),
        ({"hidden_size": None}, "'hidden_size' as a whole number"),
        ({"num_attention_heads": 3}, "multiple of num_heads"),
        ({"hidden_act": "swish"}, "activation must be one of"),
        ({"model_type": "gpt2"}, "model_type 'gpt2'; expected 'luke'"),
        ({"architectures": ["LukeForMultipleChoice"]}, "LukeForMultipleChoice"),
        ({"architectures": ["LukeForEntitySpanClassification"]}, r"lacks 1 tensors.*head\.classifier"),
        ({"architectures": ["LukeForQuestionAnswering"]}, r"lacks 2 tensors.*head\.qa_outputs"),
    ],
)
def test_config_that_does_not_fit(tmp_path, changes, message):
    data, tensors = make_small_luke()
    with pytest.raises(ValueError, match=message):
        read_checkpoint(write_small(tmp_path / "a", {**data, **changes}, tensors))


def test_classifier_and_its_labels(tmp_path):
    data, tensors = make_small_luke(architectures=["LukeForEntitySpanClassification"])
    tensors = {name: tensor for name, tensor in tensors.items() if name.startswith("luke.")}
    tensors.update({"classifier.weight": torch.zeros(3, 24), "classifier.bias": torch.zeros(3)})
    folder = tmp_path / "a"
    assert read_checkpoint(write_small(folder, data, tensors)).labels == ["LABEL_0", "LABEL_1", "LABEL_2"]
    labels = {"10": "X", "0": "NIL", "1": "PER", "2": "LOC"}
    with pytest.raises(ValueError, match="has 3 rows, so id2label must name 3"):
        read_checkpoint(write_small(folder, {**data, "id2label": labels}, tensors))
    labels.pop("10")
    assert read_checkpoint(write_small(folder, {**data, "id2label": labels}, tensors)).labels == ["NIL", "PER", "LOC"]
    nameless = {**data, "architectures": None}
    assert read_checkpoint(write_small(folder, nameless, tensors)).task == "span_classification"
    spoilt = {**tensors, "classifier.weight": torch.zeros(3, 8)}
    with pytest.raises(ValueError, match=r"classifier\.weight.*must have the shape \(3, 24\)"):
        read_checkpoint(write_small(folder, data, spoilt))
    with pytest.raises(ValueError, match="its task is unknown"):
        read_checkpoint(write_small(folder, nameless, spoilt))


def test_entity_vocabulary_that_does_not_fit(luke_folder):
    (luke_folder / "entity_vocab.json").write_text(json.dumps({"[MASK]": 0, "Japan": 7}))
    with pytest.raises(ValueError, match="8 rows, but the entity table only has 7"):
        read_checkpoint(luke_folder)
    (luke_folder / "entity_vocab.json").unlink()
    assert read_checkpoint(luke_folder).entities is None
    with pytest.raises(ValueError, match="needs the entity vocabulary"):
        read_checkpoint(luke_folder, entities="special")
    with pytest.raises(ValueError, match="must be 'all' or 'special'"):
        read_checkpoint(luke_folder, entities="some")


def test_nan_in_a_row_that_is_not_read(tmp_path):
    data, tensors = make_small_luke()
    tensors["luke.entity_embeddings.entity_embeddings.weight"][4] = float("nan")
    folder = write_small(tmp_path / "a", data, tensors)
    assert read_checkpoint(folder, entities="special").entities.titles() == ["[PAD]", "[UNK]", "[MASK]", "[MASK2]"]
    with pytest.raises(ValueError, match="row 4"):
        read_checkpoint(folder)


def test_tokenizer_that_does_not_fit(luke_folder):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefg"]
    (luke_folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    with pytest.raises(ValueError, match="12 pieces, but the word table only has 11 rows"):
        read_checkpoint(luke_folder)


def test_nothing_there(tmp_path):
    with pytest.raises(ValueError, match="there is nothing"):
        read_checkpoint(tmp_path / "none")
    with pytest.raises(ValueError, match=r"must hold config\.json"):
        read_checkpoint(tmp_path)
    (tmp_path / "metadata.json").write_text("{}")
    with pytest.raises(ValueError, match="model_config"):
        read_checkpoint(tmp_path)


def test_a_checkpoint_outlives_its_files(luke_folder):
    checkpoint = read_checkpoint(luke_folder)
    path = find_weights(luke_folder)
    before = {name: tensor.clone() for name, tensor in checkpoint.tensors.items()}
    path.write_bytes(bytes(path.stat().st_size))
    assert all(torch.equal(tensor, before[name]) for name, tensor in checkpoint.tensors.items())


def test_half_precision_stays(tmp_path):
    data, tensors = make_small_luke()
    folder = write_small(tmp_path / "a", data, {name: tensor.bfloat16() for name, tensor in tensors.items()})
    write_huggingface(read_checkpoint(folder), tmp_path / "b")
    after = read_tensors(tmp_path / "b" / "model.safetensors")
    assert all(torch.equal(after[name], tensor.bfloat16()) for name, tensor in tensors.items())


def test_export_leaves_the_old_folder_whole(luke_folder, tmp_path, monkeypatch):
    checkpoint = read_checkpoint(luke_folder)
    out = tmp_path / "out"
    write_huggingface(checkpoint, out)
    (out / "mark").touch()

    def no_space(*args, **kwargs):
        raise OSError(28, "No space left on device")

    for place in ("spacy_luke.checkpoint.files.save_file", "os.replace", "os.fsync"):
        with monkeypatch.context() as context:
            context.setattr(place, no_space)
            with pytest.raises(OSError, match="No space left"):
                write_huggingface(checkpoint, out)
        assert (out / "mark").exists()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["luke", "out"]
    write_huggingface(checkpoint, out)
    assert not (out / "mark").exists()


def test_export_refuses(luke_folder, tmp_path):
    checkpoint = read_checkpoint(luke_folder)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ValueError, match="holds no checkpoint"):
        write_huggingface(checkpoint, tmp_path / "mine")
    with pytest.raises(ValueError, match="is a file"):
        write_huggingface(checkpoint, luke_folder / "config.json")
    name = "encoder.layers.0.up.weight"
    good = checkpoint.tensors[name]
    for bad, message in ((good * float("nan"), "finite"), (good.T, "must have the shape")):
        checkpoint.tensors[name] = bad
        with pytest.raises(ValueError, match=message):
            write_huggingface(checkpoint, tmp_path / "out")
    del checkpoint.tensors[name]
    with pytest.raises(ValueError, match=rf"lacks.*{name}"):
        write_huggingface(checkpoint, tmp_path / "out")
    checkpoint.tensors[name] = good
    checkpoint.tensors["head.proposer"] = good
    with pytest.raises(ValueError, match=r"no place for \['head\.proposer'\]"):
        write_huggingface(checkpoint, tmp_path / "out")
    assert not (tmp_path / "out").exists()
