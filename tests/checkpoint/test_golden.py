"""Checkpoints that the reference code wrote: in, checked, and out again."""

import json

import pytest
import torch
from safetensors.torch import load_file

from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.files import find_weights, read_tensors
from spacy_luke.checkpoint.names import luke_names
from spacy_luke.model.luke import LukeEncoder, Mentions, Windows

CASES = {
    "model": "encoder",
    "model_plain": "encoder",
    "model_lite": "encoder",
    "masked_lm": "masked_lm",
    "masked_lm_bin": "masked_lm",
    "entity_classification": "entity_classification",
    "entity_pair_classification": "entity_pair_classification",
    "entity_span_classification": "span_classification",
    "span_lite": "span_classification",
    "question_answering": "question_answering",
    "token_classification": "token_classification",
    "sequence_classification": "sequence_classification",
}
TIED = {"lm_head.decoder.weight", "lm_head.decoder.bias", "entity_predictions.decoder.weight"}


@pytest.mark.parametrize("case", CASES)
def test_huggingface_in_and_out(shared, tmp_path, case):
    folder = shared(f"golden/hf_luke_{case}")
    checkpoint = read_checkpoint(folder)
    assert checkpoint.task == CASES[case]
    assert checkpoint.source["kind"] == "huggingface"
    assert len(checkpoint.tokenizer) == checkpoint.config.vocab_size
    assert len(checkpoint.entities) == checkpoint.config.entity_vocab_size
    data = json.loads((folder / "config.json").read_text())
    if "classifier" in str(list(checkpoint.tensors)):
        assert checkpoint.labels == [data["id2label"][str(i)] for i in range(len(data["id2label"]))]
    else:
        assert checkpoint.labels is None
    names = luke_names(checkpoint.config, root="" if checkpoint.task == "encoder" else "luke.")
    before = read_tensors(find_weights(folder))
    for theirs, ours in names.items():
        assert (ours in checkpoint.tensors) == (theirs in before)
        if theirs in before:
            assert torch.equal(checkpoint.tensors[ours], before[theirs])

    write_huggingface(checkpoint, tmp_path / "out")
    after = load_file(tmp_path / "out" / "model.safetensors")
    # The masked-word decoder is the word table, but transformers 5 must be told so.
    decoder = after.pop("lm_head.decoder.weight", None)
    assert (decoder is not None) == case.startswith("masked_lm")
    assert decoder is None or torch.equal(decoder, before["luke.embeddings.word_embeddings.weight"])
    assert set(before) - TIED == set(after)
    assert all(torch.equal(after[name], before[name]) and after[name].dtype == before[name].dtype for name in after)
    assert json.loads((tmp_path / "out" / "config.json").read_text()) == data
    assert json.loads((tmp_path / "out" / "entity_vocab.json").read_text()) == json.loads(
        (folder / "entity_vocab.json").read_text()
    )
    again = read_checkpoint(tmp_path / "out")
    assert again.config == checkpoint.config
    assert again.tokenizer.to_json() == read_checkpoint(tmp_path / "out").tokenizer.to_json()
    assert again.tokenizer.backend.get_vocab() == checkpoint.tokenizer.backend.get_vocab()


@pytest.mark.parametrize("case", CASES)
def test_transformers_reads_what_we_write(shared, tmp_path, case):
    transformers = pytest.importorskip("transformers")
    folder = shared(f"golden/hf_luke_{case}")
    write_huggingface(read_checkpoint(folder), tmp_path / "out")
    kind = getattr(transformers, json.loads((folder / "config.json").read_text())["architectures"][0])
    model, info = kind.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    state = model.state_dict()
    for name, tensor in read_tensors(find_weights(folder)).items():
        assert torch.equal(state[name], tensor), name


def test_special_entities_only(shared, tmp_path):
    folder = shared("golden/hf_luke_masked_lm_bin")
    whole, lite = read_checkpoint(folder), read_checkpoint(folder, entities="special")
    rows = [whole.entities.special_rows()[title] for title in lite.entities.titles()]
    assert lite.entities.titles() == ["[PAD]", "[UNK]", "[MASK]", "[MASK2]"]
    names = json.loads((folder / "entity_vocab.json").read_text("utf8"))
    assert rows == [names[title] for title in lite.entities.titles()]
    assert lite.config.entity_vocab_size == 4
    for name, tensor in lite.tensors.items():
        expected = whole.tensors[name]
        if name in ("encoder.entities.table.weight", "entity_head.bias"):
            expected = expected[rows]
        assert torch.equal(tensor, expected), name
    write_huggingface(lite, tmp_path / "lite")
    assert read_checkpoint(tmp_path / "lite").config == lite.config


def vocab_check(shared, archive):
    """What the reference finds in the archive's entity vocabulary."""
    archives = json.loads(shared("golden/luke_archives.json").read_text("utf8"))["archives"]
    return archives[f"{archive}.tar.gz"]["vocab_check"]


@pytest.mark.parametrize("name", ["tsv", "jsonl"])
def test_archive_of_an_encoder(shared, name):
    checkpoint = read_checkpoint(shared(f"golden/luke_archive_{name}.tar.gz"))
    weights = load_file(shared("golden/luke_encoder.safetensors"))
    weights = {key.removeprefix("weights/"): value for key, value in weights.items() if key.startswith("weights/")}
    table = luke_names(checkpoint.config, root="")
    assert {table[key]: 1 for key in weights} == dict.fromkeys(checkpoint.tensors, 1)
    assert all(torch.equal(checkpoint.tensors[table[key]], value) for key, value in weights.items())
    assert checkpoint.task == "encoder"
    assert checkpoint.tokenizer is None
    assert checkpoint.entities.row("Japan") == vocab_check(shared, f"luke_archive_{name}")["japan_none"]
    assert checkpoint.config.position_offset == 2
    assert any("position_ids" in line for line in checkpoint.report)


@pytest.mark.parametrize("name", ["pretraining", "multilingual"])
def test_archive_of_pretraining(shared, tmp_path, name):
    """The extra queries are copied, and the encoder computes what the reference computes."""
    checkpoint = read_checkpoint(shared(f"golden/luke_archive_{name}.tar.gz"))
    assert checkpoint.task == "masked_lm"
    assert {"lm_head.bias", "entity_head.bias"} <= set(checkpoint.tensors)
    check = vocab_check(shared, f"luke_archive_{name}")
    assert checkpoint.entities.row("Japan") == check["japan_none"]
    assert checkpoint.entities.row("Japan", language="en") == check["japan_en"]
    encoder = LukeEncoder(checkpoint.config).eval()
    encoder.load_state_dict(
        {key.removeprefix("encoder."): value for key, value in checkpoint.tensors.items() if key.startswith("encoder.")}
    )
    case = load_file(shared(f"golden/luke_archive_{name}_expected.safetensors"))
    words, entities = case["inputs/word_attention_mask"].bool(), case["inputs/entity_attention_mask"].bool()
    positions = case["inputs/entity_position_ids"][entities]
    windows = Windows(case["inputs/word_ids"][words], words.sum(1).tolist())
    mentions = Mentions(
        entities_E=case["inputs/entity_ids"][entities],
        first_E=positions[:, 0],
        last_E=positions.max(1).values,
        counts=entities.sum(1).tolist(),
    )
    with torch.no_grad():
        words_ND, entities_ED = encoder(windows, mentions)
    torch.testing.assert_close(words_ND, case["outputs/word_last_hidden"][words], atol=1e-5, rtol=0)
    torch.testing.assert_close(entities_ED, case["outputs/entity_last_hidden"][entities], atol=1e-5, rtol=0)
    write_huggingface(checkpoint, tmp_path / "out")
    again = read_checkpoint(tmp_path / "out")
    assert all(torch.equal(again.tensors[key], value) for key, value in checkpoint.tensors.items())


def test_archive_with_a_tokenizer(shared, tmp_path):
    """An archive has none; a given one gets the word markers, and the word table their rows."""
    import tarfile

    with tarfile.open(shared("golden/luke_archive_tsv.tar.gz")) as archive:
        archive.extractall(tmp_path / "a", filter="data")
    small = tmp_path / "tokenizer"
    small.mkdir()
    before = read_checkpoint(tmp_path / "a")
    size = before.config.vocab_size - 1  # one row is nobody's
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "@", "#", "a"]
    (small / "vocab.txt").write_text("\n".join(pieces + [f"w{i}" for i in range(size - len(pieces))]) + "\n")
    after = read_checkpoint(tmp_path / "a", tokenizer=small)
    assert after.config.vocab_size == size + 2
    one, two = (c.tensors["encoder.words.piece.weight"] for c in (before, after))
    assert (after.tokenizer.piece_id("<ent>"), after.tokenizer.piece_id("<ent2>")) == (size, size + 1)
    assert torch.equal(two[:size], one[:size])
    assert torch.equal(two[size:], one[[5, 6]])
    with pytest.raises(ValueError, match="tokenizer of its own"):
        read_checkpoint(shared("golden/hf_luke_model"), tokenizer=small)


def test_disambiguation(shared, tmp_path):
    """BERT's words, positions from 0, and the parameter that stands for [MASK] in the place of its row."""
    raw = torch.load(shared("golden/luke_ed_checkpoint") / "pytorch_model.bin", weights_only=True)
    table = raw["luke.entity_embeddings.entity_embeddings.weight"]
    checkpoint = read_checkpoint(shared("golden/luke_ed_checkpoint"))
    assert (checkpoint.task, checkpoint.config.position_offset) == ("entity_disambiguation", 0)
    ours = checkpoint.tensors["encoder.entities.table.weight"]
    mask = checkpoint.entities.mask_row
    others = [row for row in range(len(table)) if row != mask]
    assert torch.equal(ours[mask], raw["luke.entity_embeddings.mask_embedding"])
    assert not torch.equal(ours[mask], table[mask])
    assert torch.equal(ours[others], table[others])
    assert torch.equal(checkpoint.tensors["entity_head.bias"], raw["entity_predictions.bias"])
    small = read_checkpoint(shared("golden/luke_ed_checkpoint"), entities="special")
    assert torch.equal(small.tensors["encoder.entities.table.weight"][small.entities.mask_row], ours[mask])
