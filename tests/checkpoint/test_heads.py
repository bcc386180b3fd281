"""Fine-tuned heads in Hugging Face's layout: mLUKE, classifiers with and without bias, heads that it does not know."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.text.sentencepiece_model import CONTROL, NORMAL, UNKNOWN, SentencePieceModel, write_sentencepiece
from tests.checkpoint.fine_tuned import make_huggingface, noise, write_wordpiece

PAIRS = "LukeForEntityPairClassification"
LITE = {"[MASK]": 0, "[UNK]": 1, "[PAD]": 2, "[MASK2]": 3}
BY_LANGUAGE = {
    "en:[PAD]": 0, "ja:[PAD]": 0, "en:[UNK]": 1, "ja:[UNK]": 1, "en:[MASK]": 2, "ja:[MASK]": 2,
    "en:Japan": 3, "ja:日本": 3, "de:Japan": 3, "en:Ghana": 4, "[MASK2]": 5,
}  # fmt: skip


def write_sentencepieces(folder, pieces):
    """XLM-R's kind of tokenizer, with <ent> and <ent2> as its last pieces."""
    head = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    plain = [("▁", -2.0, NORMAL), *((chr(ord("a") + i), -3.0, NORMAL) for i in range(pieces - 8))]
    model = SentencePieceModel(pieces=head + plain, unk_id=0, byte_fallback=False, charsmap=b"")
    (folder / "sentencepiece.bpe.model").write_bytes(write_sentencepiece(model))
    (folder / "added_tokens.json").write_text(json.dumps({"<ent>": pieces - 2, "<ent2>": pieces - 1}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MLukeTokenizer"}))


def write_mluke(folder, *, entities, bias=True, aware=False, queries=False):
    """A checkpoint like mluke-large-lite-finetuned-kbp37. queries: the file has them although they are off."""
    changes = {"vocab_size": 30, "entity_vocab_size": 1 + max(entities.values()), "use_entity_aware_attention": aware}
    data, state = make_huggingface(PAIRS, width=2, labels=5, bias=bias, **changes)
    data["classifier_bias"] = bias
    if queries:
        generator = torch.Generator().manual_seed(7)
        for i in range(2):
            for name in ("w2e", "e2w", "e2e"):
                head = f"luke.encoder.layer.{i}.attention.self.{name}_query"
                state[f"{head}.weight"], state[f"{head}.bias"] = noise((16, 16), generator), noise((16,), generator)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(data))
    (folder / "entity_vocab.json").write_text(json.dumps(entities, ensure_ascii=False))
    write_sentencepieces(folder, 30)
    save_file(state, folder / "model.safetensors")
    return folder, data, state


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("entities", [LITE, BY_LANGUAGE])
def test_mluke_pairs_in_and_out(tmp_path, entities, bias):
    folder, data, state = write_mluke(tmp_path / "a", entities=entities, bias=bias)
    checkpoint = read_checkpoint(folder)
    assert (checkpoint.task, checkpoint.labels) == ("entity_pair_classification", [f"L{i}" for i in range(5)])
    assert ("head.classifier.bias" in checkpoint.tensors) == bias
    assert not checkpoint.config.entity_aware
    assert checkpoint.tokenizer.kind == "unigram"
    assert [checkpoint.tokenizer.piece_id(x) for x in ("<ent>", "<ent2>")] == [28, 29]
    assert checkpoint.entities.mask_row == (0 if entities is LITE else 2)
    assert checkpoint.entities.row("[MASK2]") == (3 if entities is LITE else 5)
    assert entities is LITE or checkpoint.entities.row("日本", language="ja") == 3
    write_huggingface(checkpoint, tmp_path / "out")
    after = load_file(tmp_path / "out" / "model.safetensors")
    assert set(after) == set(state)
    assert all(torch.equal(after[name], x) for name, x in state.items())
    written = json.loads((tmp_path / "out" / "config.json").read_text())
    assert {key: written[key] for key in data} == data
    names = json.loads((tmp_path / "out" / "entity_vocab.json").read_text())
    assert {key: names[key] for key in entities} == entities
    assert {key: names[key] for key in LITE} == checkpoint.entities.special_rows()


def test_mluke_with_queries_that_are_off(tmp_path):
    folder, _, state = write_mluke(tmp_path / "a", entities=LITE, queries=True)
    checkpoint = read_checkpoint(folder)
    assert sum("entity-aware attention is off" in line for line in checkpoint.report) == 12
    assert len(checkpoint.tensors) == len(state) - 12
    on = read_checkpoint(folder, entity_aware=True)
    name = "encoder.layers.1.attention.e2e_query.bias"
    assert torch.equal(on.tensors[name], state["luke.encoder.layer.1.attention.self.e2e_query.bias"])


@pytest.mark.parametrize("entities", [LITE, BY_LANGUAGE])
def test_transformers_reads_mluke(tmp_path, entities):
    transformers = pytest.importorskip("transformers")
    for package in ("sentencepiece", "google.protobuf"):
        pytest.importorskip(package, reason="MLukeTokenizer of transformers needs it")
    transformers.logging.set_verbosity_error()
    folder, _, state = write_mluke(tmp_path / "a", entities=entities, bias=False)
    write_huggingface(read_checkpoint(folder), tmp_path / "out")
    model, info = transformers.LukeForEntityPairClassification.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    got = model.state_dict()
    assert all(torch.equal(got[name], x) for name, x in state.items())
    tokenizer = transformers.MLukeTokenizer.from_pretrained(tmp_path / "out", task="entity_pair_classification")
    encoding = tokenizer("ab cd", entity_spans=[(0, 2), (3, 5)])
    rows = read_checkpoint(folder).entities
    assert encoding["entity_ids"] == [rows.mask_row, rows.row("[MASK2]")]
    markers = [i for i in encoding["input_ids"] if i >= 28]
    if int(transformers.__version__.split(".")[0]) < 5:
        assert markers == [28, 28, 29, 29]
    else:  # version 5 gives added pieces new ids, whatever ids the files give them
        assert len(markers) == 4


def write_head(folder, architecture, *, width, labels, bias):
    data, state = make_huggingface(architecture, width=width, labels=labels, bias=bias)
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(data))
    (folder / "entity_vocab.json").write_text(json.dumps(LITE))
    write_wordpiece(folder, 40, markers=("<ent>", "<ent2>"))
    save_file(state, folder / "model.safetensors")
    return folder, state


def test_a_typing_head_without_bias_gets_zeros_for_transformers(tmp_path):
    folder, state = write_head(tmp_path / "a", "LukeForEntityClassification", width=1, labels=3, bias=False)
    checkpoint = read_checkpoint(folder)
    assert "head.classifier.bias" not in checkpoint.tensors
    write_huggingface(checkpoint, tmp_path / "out")
    after = load_file(tmp_path / "out" / "model.safetensors")
    assert torch.equal(after.pop("classifier.bias"), torch.zeros(3))
    assert set(after) == set(state)


def test_cloze_heads_keep_their_encoder_for_transformers(tmp_path):
    """transformers has no such class; its LukeModel reads the encoder, and we all of it."""
    folder, state = write_head(tmp_path / "a", "LukeForEntitySpanQA", width=2, labels=1, bias=True)
    checkpoint = read_checkpoint(folder)
    assert (checkpoint.task, checkpoint.labels) == ("cloze", None)
    write_huggingface(checkpoint, tmp_path / "out")
    after = load_file(tmp_path / "out" / "model.safetensors")
    assert set(after) == set(state)
    assert all(torch.equal(after[name], x) for name, x in state.items())
    transformers = pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()
    model, info = transformers.LukeModel.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not info["missing_keys"]
    got = model.state_dict()
    assert all(torch.equal(got[name[5:]], x) for name, x in state.items() if name.startswith("luke."))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "width"),
    [
        ("LukeForEntityClassification", 1),
        (PAIRS, 2),
        ("LukeForEntitySpanQA", 2),
        ("LukeForEntitySpanClassification", 3),
    ],
)
def test_damage(tmp_path, architecture, width):
    folder, state = write_head(tmp_path / "a", architecture, width=width, labels=1, bias=True)
    for name, x in state.items():
        rest = {key: y for key, y in state.items() if key != name}
        if name != "classifier.bias":
            save_file(rest, folder / "model.safetensors")
            with pytest.raises(ValueError, match=r"lacks 1 tensors|word embeddings"):
                read_checkpoint(folder)
        bad = x.clone()
        bad.view(-1)[0] = float("nan")
        save_file({**rest, name: bad}, folder / "model.safetensors")
        with pytest.raises(ValueError, match="must be finite"):
            read_checkpoint(folder)
    for extra in ("qa_outputs.weight", "typing.weight", "scorer.weight", "span_scoring_layer.weight"):
        save_file({**state, extra: torch.zeros(2, 16)}, folder / "model.safetensors")
        with pytest.raises(ValueError, match=r"does not account for|has no place for"):
            read_checkpoint(folder)
    save_file({**state, "classifier.weight": state["classifier.weight"][:, 1:].clone()}, folder / "model.safetensors")
    with pytest.raises(ValueError, match=rf"must have the shape \(1, {width * 16}\)"):
        read_checkpoint(folder)
