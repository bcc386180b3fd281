"""Folders of further families: how their entities begin; of DeBERTa-v3 and ModernBERT what is refused."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from spacy_luke.checkpoint import read_checkpoint
from spacy_luke.checkpoint.modernbert import modernbert_config, split_fused
from spacy_luke.model.families import build_encoder
from spacy_luke.pipelines.conversion import convert
from tests.family_folders import SETTINGS, SIZES, write_folder

NAMES = list(SETTINGS)
ENTITIES = {"entity_vocab_size": 4, "entity_size": 8, "entity_aware": True}


@pytest.mark.parametrize("start", ["words", "mention", "fresh"])
@pytest.mark.parametrize("name", NAMES)
def test_entities_begin(tmp_path, name, start):
    checkpoint = read_checkpoint(write_folder(tmp_path, name), entity_start=start, entity_size=8)
    tensors, tokenizer = checkpoint.tensors, checkpoint.tokenizer
    encoder = build_encoder(checkpoint.config, checkpoint.entities.special_rows().values())
    assert {f"encoder.{key}" for key in encoder.state_dict()} == set(tensors)
    table, row = tensors["encoder.entities.table.weight"], checkpoint.entities.mask_row
    if start == "fresh":
        assert table.shape[1] == 8
    else:
        piece = tensors["encoder.words.piece.weight"][tokenizer.mask_id]
        assert torch.equal(table[row], piece if start == "words" else torch.zeros_like(piece))
        assert torch.equal(tensors["encoder.entities.norm.weight"], tensors["encoder.words.norm.weight"])
    for i in range(checkpoint.config.num_layers):
        part = f"encoder.layers.{i}.attention."
        assert torch.equal(tensors[part + "w2e_query.weight"], tensors[part + "query.weight"])
        assert (part + "w2e_query.bias" in tensors) == checkpoint.config.has_biases
    assert {tokenizer.piece_id("<ent>"), tokenizer.piece_id("<ent2>")} <= set(range(checkpoint.config.vocab_size))


@pytest.mark.parametrize("name", NAMES)
def test_first_layers_are_kept(tmp_path, name):
    checkpoint = read_checkpoint(write_folder(tmp_path, name), layers=2)
    assert checkpoint.config.num_layers == 2
    build_encoder(checkpoint.config).load_state_dict(
        {key.removeprefix("encoder."): x for key, x in checkpoint.tensors.items() if key.startswith("encoder.")}
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_encoder_is_no_pipeline_yet(tmp_path, name):
    folder = write_folder(tmp_path / "folder", name)
    with pytest.raises(ValueError, match=r"this one is for 'encoder'. To train from it, name it in \[initialize"):
        convert(str(folder), tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "deberta-v2",
            {"relative_attention": False},
            "whose 'relative_attention' is True, but config.json gives F",
        ),
        ("deberta-v2", {"position_biased_input": True}, "whose 'position_biased_input' is False"),
        ("deberta-v2", {"share_att_key": False}, "whose 'share_att_key' is True"),
        ("deberta-v2", {"type_vocab_size": 2}, "whose 'type_vocab_size' is 0, but config.json gives 2"),
        ("deberta-v2", {"conv_kernel_size": 3}, "whose 'conv_kernel_size' is 0, but config.json gives 3"),
        ("deberta-v2", {"pos_att_type": "c2p"}, r"whose 'pos_att_type' is \['c2p', 'p2c'\]"),
        ("deberta-v2", {"norm_rel_ebd": "none"}, "whose 'norm_rel_ebd' is 'layer_norm'"),
        ("deberta-v2", {"embedding_size": 16}, "whose 'embedding_size' is 32"),
        ("deberta-v2", {"attention_head_size": 8}, "whose 'attention_head_size' is 16"),
        ("deberta-v2", {"position_buckets": "16"}, "'position_buckets' as a whole number, but it gives '16'"),
        (
            "modernbert",
            {"norm_bias": True},
            "without biases can be read, but config.json gives 'norm_bias'",
        ),
        ("modernbert", {"layer_types": ["sliding_attention"] * 4}, "layer_types must begin with 'full_attention'"),
        ("modernbert", {"rope_scaling": {"factor": 2}}, r"rope_scaling {'factor': 2}"),
        ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "must be those of ModernBERT"),
        ("modernbert", {"local_attention": 0}, "'local_attention' as a whole number from 1"),
    ],
)
def test_other_forms_are_refused(tmp_path, name, changes, message):
    folder = write_folder(tmp_path, name)
    data = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**data, **changes}))
    with pytest.raises(ValueError, match=message):
        read_checkpoint(folder)


def test_settings_of_both_versions_of_transformers():
    """Of ModernBERT's layers and angles: one number and two, or a list and a table."""
    data = {**SIZES, "vocab_size": 9, "num_hidden_layers": 6}
    kinds = ["full_attention", "sliding_attention", "sliding_attention"] * 2
    tables = {"full_attention": {"rope_theta": 5.0, "rope_type": "default"}, "sliding_attention": {"rope_theta": 7.0}}
    old = modernbert_config({**data, "global_rope_theta": 5.0, "local_rope_theta": 7.0}, **ENTITIES)
    new = modernbert_config({**data, "layer_types": kinds, "rope_parameters": tables}, **ENTITIES)
    assert old == new
    assert (new.global_every, new.global_theta, new.local_theta, new.reach) == (3, 5.0, 7.0, 64)
    usual = modernbert_config({**data, "local_rope_theta": None}, **ENTITIES)
    assert (usual.global_theta, usual.local_theta) == (160_000.0, 10_000.0)
    every = modernbert_config({**data, "layer_types": ["full_attention"] * 6}, **ENTITIES)
    assert [every.is_global(i) for i in range(6)] == [True] * 6


def test_tensors_that_do_not_fit(tmp_path):
    folder = write_folder(tmp_path, "modernbert")
    tensors = load_file(folder / "model.safetensors")
    fused = "model.layers.1.attn.Wqkv.weight"
    save_file({**tensors, fused: tensors[fused][:-1].clone()}, folder / "model.safetensors")
    with pytest.raises(ValueError, match=r"1 tensors that its config does not account for: 'model\.layers\.1"):
        read_checkpoint(folder)
    save_file({**tensors, fused: tensors[fused][:-3].clone()}, folder / "model.safetensors")
    with pytest.raises(ValueError, match=r"'model.layers.1.attn.query.weight' must have the shape \(32, 32\)"):
        read_checkpoint(folder)
    assert split_fused({"x": torch.zeros(3)}).keys() == {"x"}
